/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an answer, line by line: what is read, and what a hostile origin may not say. */
#include "net/client_head.h"

#include <string.h>

#include "base/mem.h"
#include "test/lib/test.h"

/* Feeds the lines of `text`; the result of the last one that was taken. */
static int feed(struct cn_client_head_reader *reader, const char *text, size_t size_max)
{
    int rc = 0;
    while (*text && rc == 0) {
        const char *end = strchr(text, '\n');
        size_t size = end ? (size_t)(end - text) + 1 : strlen(text);
        rc = cn_client_head_line(reader, text, size, size_max, NULL);
        text += size;
    }
    return rc;
}

static const char *header(const struct cn_client_head *head, const char *name)
{
    for (size_t i = 0; i < head->header_count; i++)
        if (strcmp(head->headers[i].name, name) == 0)
            return head->headers[i].value;
    return NULL;
}

TEST(client_head, status_version_reason_and_fields)
{
    struct cn_client_head_reader reader = {0};
    struct cn_client_header *headers;
    CHECK_INT(1,
              feed(&reader,
                   "HTTP/1.1 404 Not There\r\nA: b\r\nSet-Cookie:  x=1 \r\nset-cookie:\t\r\n\r\n",
                   1000));
    struct cn_client_head head = cn_client_head_take(&reader, &headers);
    CHECK_INT(404, head.status);
    CHECK_INT(11, head.http_version);
    CHECK_STR("Not There", head.reason);
    CHECK_INT(3, head.header_count);
    CHECK_STR("b", header(&head, "A"));
    CHECK_STR("x=1", header(&head, "Set-Cookie"));
    CHECK_STR("", header(&head, "set-cookie"));
    cn_free(headers);
    cn_client_head_fini(&reader);
}

TEST(client_head, of_http_2_and_without_a_reason)
{
    struct cn_client_head_reader reader = {0};
    struct cn_client_header *headers;
    CHECK_INT(1, feed(&reader, "HTTP/2 200 \r\n\r\n", 1000));
    struct cn_client_head head = cn_client_head_take(&reader, &headers);
    CHECK_INT(20, head.http_version);
    CHECK_STR("", head.reason);
    CHECK_INT(0, head.header_count);
    cn_free(headers);
    cn_client_head_fini(&reader);
}

TEST(client_head, interim_answers_are_forgotten_and_101_is_final_if_it_was_asked_for)
{
    struct cn_client_head_reader reader = {0};
    struct cn_client_header *headers;
    static const char text[] = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                               "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 Switch\r\nX: y\r\n\r\n";
    CHECK_INT(0, feed(&reader, text, 1000));
    CHECK_INT(1, feed(&reader, "HTTP/1.1 200 OK\r\nB: c\r\n\r\n", 1000));
    struct cn_client_head head = cn_client_head_take(&reader, &headers);
    CHECK_INT(200, head.status);
    CHECK_INT(1, head.header_count);
    CHECK_STR("c", header(&head, "B"));
    cn_free(headers);
    cn_client_head_fini(&reader);
    reader = (struct cn_client_head_reader){.upgrades = true};
    CHECK_INT(1, feed(&reader, text, 1000));
    CHECK_INT(101, reader.status);
    cn_client_head_fini(&reader);
}

TEST(client_head, folded_lines_are_joined_by_one_space)
{
    struct cn_client_head_reader reader = {0};
    struct cn_client_header *headers;
    CHECK_INT(
        1, feed(&reader, "HTTP/1.1 200 OK\r\nA: one\r\n \t two\r\n   \r\n\tthree\r\n\r\n", 1000));
    struct cn_client_head head = cn_client_head_take(&reader, &headers);
    CHECK_INT(1, head.header_count);
    CHECK_STR("one two three", header(&head, "A"));
    CHECK_INT(13, head.headers[0].value_length);
    cn_free(headers);
    cn_client_head_fini(&reader);
}

TEST(client_head, malformed_lines_are_refused)
{
    static const char *const heads[] = {"HTTP/1.1\r\n",
                                        "HTTP/1.1 20\r\n",
                                        "HTTP/1.1 2x0 OK\r\n",
                                        "HTTP/1.1 099 Low\r\n",
                                        "HTTP/1.1 2000\r\n",
                                        "HTTP/x 200 OK\r\n",
                                        "http/1.1 200 OK\r\n",
                                        "ICY 200 OK\r\n",
                                        "\r\n",
                                        "HTTP/1.1  200 OK\r\n",
                                        "HTTP/1.1 200 O\rK\r\n",
                                        "HTTP/1.1 200 OK\r\n folded onto nothing\r\n",
                                        "HTTP/1.1 200 OK\r\nno colon\r\n",
                                        "HTTP/1.1 200 OK\r\n: no name\r\n",
                                        "HTTP/1.1 200 OK\r\nspace before : x\r\n",
                                        "HTTP/1.1 200 OK\r\nA: b\rX: y\r\n",
                                        "HTTP/1.1 200 OK\r\nA\xff: b\r\n",
                                        "HTTP/1.1 200 OK\r\nA: b\r\n c\rd\r\n"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct cn_client_head_reader reader = {0};
        int rc = feed(&reader, heads[i], 1000);
        if (rc != CN_EPROTOCOL)
            test_fail(__FILE__, __LINE__, "%s: got %d", heads[i], rc);
        cn_client_head_fini(&reader);
    }
    struct cn_client_head_reader reader = {0};
    CHECK_INT(0, feed(&reader, "HTTP/1.1 200 OK\r\n", 1000));
    CHECK_INT(CN_EPROTOCOL, cn_client_head_line(&reader, "A: b\0c\r\n", 8, 1000, NULL));
    cn_client_head_fini(&reader);
}

TEST(client_head, all_of_it_with_interim_answers_is_bounded)
{
    struct cn_client_head_reader reader = {0};
    struct cn_err err;
    int rc = 0, lines = 0;
    while (rc == 0) { /* an origin that hints for ever */
        rc = cn_client_head_line(&reader, lines % 2 ? "\r\n" : "HTTP/1.1 103 More\r\n",
                                 lines % 2 ? 2 : 19, 1000, &err);
        lines++;
    }
    CHECK_INT(CN_ELIMIT, rc);
    CHECK_STR("the answer's headers exceed 1000 bytes", err.text);
    CHECK(lines < 120);
    cn_client_head_fini(&reader);
}
