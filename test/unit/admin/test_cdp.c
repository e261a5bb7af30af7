/* SPDX-License-Identifier: Apache-2.0 */
/* What workers log and throw as events of the DevTools Protocol. */
#include "admin/cdp.h"

#include <string.h>

#include "base/json.h"
#include "test/lib/test.h"

/* The event as a tree: it is JSON whatever the text is. */
static struct cn_json *event_of(const char *text, bool exception, enum cn_diag_level level)
{
    struct cn_buf out = {0};
    struct cn_err err = {0};
    struct cn_cdp_note note = {.time_ms = 5,
                               .level = level,
                               .exception = exception,
                               .worker = "w",
                               .context = 2,
                               .text = text,
                               .size = strlen(text)};
    cn_cdp_append_note(&out, &note);
    struct cn_json *json = cn_json_parse((char *)out.data, out.size, &err);
    CHECK(json);
    cn_buf_fini(&out);
    return json;
}

TEST(cdp_note, is_a_console_line_of_its_level)
{
    static const char *const types[] = {"debug", "log", "warning", "error"};
    for (unsigned i = 0; i < 4; i++) {
        struct cn_json *json = event_of("a \"b\"\n\x01", false, (enum cn_diag_level)i);
        const struct cn_json *params = cn_json_find(json, "params");
        CHECK_STR("Runtime.consoleAPICalled", cn_json_text(json, "method"));
        CHECK_STR(types[i], cn_json_text(params, "type"));
        CHECK_STR("a \"b\"\n\x01", cn_json_text(cn_json_find(params, "args")->first, "value"));
        CHECK_INT(2, cn_json_int(params, "executionContextId"));
        cn_json_free(json);
    }
}

TEST(cdp_note, is_an_exception_with_the_places_of_its_stack)
{
    struct cn_json *json =
        event_of("Uncaught TypeError: x\n    at f (src/a.js:3:7)\n    at src/b.ts:10:1\n"
                 "    at native\n  3 | code (a:1:2)",
                 true, CN_DIAG_ERROR);
    const struct cn_json *details = cn_json_find(cn_json_find(json, "params"), "exceptionDetails");
    const struct cn_json *frames = cn_json_find(cn_json_find(details, "stackTrace"), "callFrames");
    const struct cn_json *thrown = cn_json_find(details, "exception");
    CHECK_STR("Runtime.exceptionThrown", cn_json_text(json, "method"));
    CHECK_STR("file:///w/src/a.js", cn_json_text(details, "url"));
    CHECK_INT(2, cn_json_int(details, "lineNumber"));
    CHECK_INT(6, cn_json_int(details, "columnNumber"));
    CHECK_STR("f", cn_json_text(frames->first, "functionName"));
    CHECK_STR("file:///w/src/b.ts", cn_json_text(frames->first->next, "url"));
    CHECK(!frames->first->next->next);
    CHECK_STR("TypeError", cn_json_text(thrown, "className"));
    CHECK(strncmp("TypeError: x\n    at f", cn_json_text(thrown, "description"), 21) == 0);
    cn_json_free(json);
}

TEST(cdp_note, takes_any_text)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "Uncaught ",
                                        "    at ",
                                        "  at (",
                                        "  at )",
                                        "  at a:b:c",
                                        "  at x (:1:1)",
                                        "at a:0:1",
                                        "at a:1:99999999999999",
                                        "at (((a:1:1)",
                                        ":"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        cn_json_free(event_of(texts[i], true, CN_DIAG_ERROR));
}

TEST(cdp_method, is_refused_with_a_reason_or_is_a_wish_not_both)
{
    CHECK(cn_cdp_refusal("Debugger.stepInto"));
    CHECK(cn_cdp_refusal("Runtime.evaluate"));
    CHECK(!cn_cdp_refusal("Runtime.enable"));
    CHECK(cn_cdp_is_wish("Debugger.setPauseOnExceptions"));
    CHECK(!cn_cdp_is_wish("Debugger.stepInto"));
    CHECK(!cn_cdp_is_wish(""));
}
