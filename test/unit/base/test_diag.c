/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: what a line of JSON is, and who besides standard error reads them. */
#include "base/diag.h"

#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "test/lib/test.h"

static const char *line_of(const struct cn_diag_note *note)
{
    static struct cn_buf line;
    cn_buf_clear(&line);
    cn_diag_append_note(&line, note);
    return cn_buf_text(&line);
}

TEST(diag, a_line_of_json_stays_one_line_whatever_is_in_it)
{
    static const struct cn_diag_field fields[] = {{"worker", "shop", 0, false},
                                                  {"object", NULL, 0, false},
                                                  {"path", "/a\"b\nc and more", 6, false}};
    struct cn_diag_note note = {.time_ms = 1769860800123,
                                .level = CN_DIAG_WARN,
                                .fields = fields,
                                .count = 3,
                                .text = "it\n\"broke\"\x01",
                                .length = 11};
    CHECK_STR("{\"time\":\"2026-01-31T12:00:00.123Z\",\"level\":\"warn\",\"worker\":\"shop\","
              "\"path\":\"/a\\\"b\\nc\",\"message\":\"it\\n\\\"broke\\\"\\u0001\"}\n",
              line_of(&note));
    note = (struct cn_diag_note){.level = CN_DIAG_DEBUG, .text = ""};
    CHECK_STR("{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"debug\",\"message\":\"\"}\n",
              line_of(&note));
}

TEST(diag, a_number_is_a_number_in_json)
{
    static const struct cn_diag_field fields[] = {{"status", "200", 0, true},
                                                  {"code", "200", 0, false}};
    struct cn_diag_note note = {.fields = fields, .count = 2, .text = "", .level = CN_DIAG_INFO};
    CHECK_STR("{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"status\":200,"
              "\"code\":\"200\",\"message\":\"\"}\n",
              line_of(&note));
}

struct reader {
    struct cn_diag_tap tap;
    unsigned notes;
    enum cn_diag_level last;
    size_t length;
};

static void count_note(struct cn_diag_tap *tap, const struct cn_diag_note *note)
{
    struct reader *reader = (struct reader *)tap;
    reader->notes++;
    reader->last = note->level;
    reader->length = note->length;
}

TEST(diag, a_reader_sees_every_level_and_requests_only_if_it_asked)
{
    struct reader plain = {.tap = {.note = count_note}};
    struct reader curious = {.tap = {.note = count_note, .requests = true}};
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR);
    CHECK(!cn_diag_enabled(CN_DIAG_WARN) && cn_diag_enabled(CN_DIAG_ERROR));
    cn_diag_tap_add(&plain.tap);
    CHECK(!cn_diag_tapped());
    cn_diag_tap_add(&curious.tap);
    CHECK(cn_diag_tapped());
    cn_diag(CN_DIAG_DEBUG, "below what is printed: %d", 1);
    CHECK_INT(1, plain.notes);
    CHECK_INT(CN_DIAG_DEBUG, plain.last);
    cn_diag_tap_fields(CN_DIAG_INFO, NULL, 0, "GET /", 5);
    CHECK_INT(1, plain.notes);
    CHECK_INT(2, curious.notes);
    CHECK_INT(5, curious.length);
    cn_diag_tap_remove(&plain.tap); /* the one that is not first in the list */
    cn_diag(CN_DIAG_INFO, "unheard by one");
    CHECK_INT(1, plain.notes);
    CHECK_INT(3, curious.notes);
    cn_diag_tap_remove(&curious.tap);
    CHECK(!cn_diag_tapped());
    cn_diag(CN_DIAG_INFO, "unheard");
    CHECK_INT(3, curious.notes);
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_INFO);
}

TEST(diag, a_message_that_is_too_long_is_cut)
{
    struct reader reader = {.tap = {.note = count_note}};
    char word[5000];
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR);
    cn_diag_tap_add(&reader.tap);
    cn_diag(CN_DIAG_INFO, "%s", word);
    cn_diag_tap_remove(&reader.tap);
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_INFO);
    CHECK_INT(1023, reader.length);
}
