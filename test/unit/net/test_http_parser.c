/* SPDX-License-Identifier: Apache-2.0 */
/* The request parser: what it accepts, what it refuses with which status, and that it does not
 * matter in which pieces the bytes arrive. */
#include "net/http_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "test/lib/test.h"

static char head_copy[1 << 18];
static struct cn_http_header headers[256];
static struct cn_http_message message;

/* Scans and parses; `step` bytes arrive at a time. Returns 0, -1 (incomplete) or a status. */
static int parse(const char *text, size_t size, size_t step)
{
    struct cn_http_scan scan = {0};
    memcpy(head_copy, text, size);
    for (size_t end = step;; end += step) {
        if (end > size)
            end = size;
        int rc = cn_http_scan_head(&scan, (uint8_t *)head_copy, end, &cn_http_limits_default);
        if (rc > 1)
            return rc;
        if (rc == 1) {
            CHECK(scan.pos <= end);
            message.headers = headers;
            return cn_http_parse_head(&scan, head_copy, &cn_http_limits_default, &message);
        }
        if (end == size)
            return -1;
    }
}

static int status_of(const char *text)
{
    int whole = parse(text, strlen(text), strlen(text));
    CHECK_INT(whole, parse(text, strlen(text), 1));
    CHECK_INT(whole, parse(text, strlen(text), 7));
    return whole;
}

static bool text_is(struct cn_http_text text, const char *want)
{
    return text.size == strlen(want) && memcmp(text.data, want, text.size) == 0;
}

#define HOST "Host: a.example\r\n"

TEST(http_parser, takes_a_plain_request_apart)
{
    CHECK_INT(0, status_of("GET /p/a?q=1 HTTP/1.1\r\nHost: a.example:81\r\nX-Long-Name:  v v \t\r\n"
                           "Empty:\r\nAccept:*/*\r\n\r\n"));
    CHECK_INT(CN_HTTP_GET, message.method);
    CHECK(text_is(message.method_text, "GET"));
    CHECK(text_is(message.target, "/p/a?q=1"));
    CHECK(text_is(message.host, "a.example:81"));
    CHECK_INT(1, message.version_minor);
    CHECK_INT(4, message.header_count);
    CHECK(message.keep_alive && !message.upgrade && !message.expect_continue);
    CHECK_INT(0, message.content_length);
    CHECK_INT(11, headers[1].name_size);
    CHECK(memcmp(headers[1].name, "x-long-name", 11) == 0);
    CHECK_INT(3, headers[1].value_size);
    CHECK(memcmp(headers[1].value, "v v", 3) == 0);
    CHECK_INT(0, headers[2].value_size);
    CHECK_INT(3, headers[3].value_size);
}

TEST(http_parser, knows_lengths_and_codings)
{
    CHECK_INT(0, status_of("POST / HTTP/1.1\r\n" HOST "Content-Length: 12\r\n\r\n"));
    CHECK_INT(12, message.content_length);
    CHECK_INT(0, status_of("PUT / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n"));
    CHECK_INT(-1, message.content_length);
    CHECK_INT(0, status_of("POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n"
                           "Content-Length: 1\r\n\r\n"));
    CHECK(message.expect_continue);
}

TEST(http_parser, knows_who_keeps_the_connection)
{
    CHECK_INT(0, status_of("GET / HTTP/1.1\r\n" HOST "Connection: foo, Close\r\n\r\n"));
    CHECK(!message.keep_alive);
    CHECK_INT(0, status_of("GET / HTTP/1.0\r\n\r\n"));
    CHECK(!message.keep_alive);
    CHECK(message.host.size == 0 && message.host.data != NULL); /* who looks for a port in it may */
    CHECK_INT(0, status_of("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    CHECK(message.keep_alive);
    CHECK_INT(0, status_of("GET /ws HTTP/1.1\r\n" HOST "Connection: keep-alive, Upgrade\r\n"
                           "Upgrade: websocket\r\n\r\n"));
    CHECK(message.upgrade);
    CHECK_INT(0, status_of("GET /ws HTTP/1.1\r\n" HOST "Upgrade: websocket\r\n\r\n"));
    CHECK(!message.upgrade);
}

TEST(http_parser, brings_targets_to_one_form)
{
    CHECK_INT(0, status_of("GET http://b.example:8/x?y HTTP/1.1\r\n" HOST "\r\n"));
    CHECK(text_is(message.target, "/x?y"));
    CHECK(text_is(message.host, "b.example:8"));
    /* P7: the field says the same, for whoever reads that one. */
    CHECK(message.header_count == 1 && message.headers[0].value_size == strlen("b.example:8"));
    CHECK(memcmp(message.headers[0].value, "b.example:8", strlen("b.example:8")) == 0);
    CHECK_INT(0, status_of("GET HTTPS://b.example HTTP/1.1\r\n" HOST "\r\n"));
    CHECK(text_is(message.target, "/"));
    CHECK_INT(0, status_of("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"));
    CHECK(text_is(message.target, "*"));
    CHECK_INT(0, status_of("GET /caf\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n"));
    CHECK_INT(400, status_of("GET * HTTP/1.1\r\n" HOST "\r\n"));
    CHECK_INT(400, status_of("GET ftp://a/ HTTP/1.1\r\n" HOST "\r\n"));
    CHECK_INT(400, status_of("GET http:///x HTTP/1.1\r\n" HOST "\r\n"));
    CHECK_INT(400, status_of("GET http://u@b/ HTTP/1.1\r\n" HOST "\r\n"));
    CHECK_INT(400, status_of("GET x HTTP/1.1\r\n" HOST "\r\n"));
    CHECK_INT(501, status_of("CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n"));
}

TEST(http_parser, refuses_what_could_be_read_in_two_ways)
{
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        {400, "GET / HTTP/1.1\n" HOST "\r\n"},                  /* bare LF after the line */
        {400, "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},       /* bare LF in a header */
        {400, "GET / HTTP/1.1\r\nHost: a\r\n\n"},               /* bare LF at the end */
        {400, "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},       /* bare CR */
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n"},  /* obs-fold, space */
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n"}, /* obs-fold, tab */
        {400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},            /* blank before the first */
        {400, "GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n"},       /* blank before the colon */
        {400, "GET / HTTP/1.1\r\n" HOST "X\t: a\r\n\r\n"},      /* the same, tab */
        {400, "GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n"},         /* no name */
        {400, "GET / HTTP/1.1\r\n" HOST "X\r\n\r\n"},           /* no colon */
        {400, "GET / HTTP/1.1\r\n" HOST "X(y): a\r\n\r\n"},     /* not a token */
        {400, "GET / HTTP/1.1\r\n" HOST "X\xe9: a\r\n\r\n"},    /* not a token */
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\x01"
              "b\r\n\r\n"},                                  /* control character */
        {400, "GET / HTTP/1.1\r\n" HOST "X: a\x7f\r\n\r\n"}, /* DEL */
        {400, "GET  / HTTP/1.1\r\n" HOST "\r\n"},            /* two spaces */
        {400, "GET /  HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /a b HTTP/1.1\r\n" HOST "\r\n"}, /* space in the target */
        {400, "GET /\ta HTTP/1.1\r\n" HOST "\r\n"},
        {400, " GET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1 \r\n" HOST "\r\n"},
        {400, "GET /\r\n" HOST "\r\n"}, /* HTTP/0.9 */
        {400, "GET / RTSP/1.0\r\n" HOST "\r\n"},
        {400, "SOURCE / ICE/1.0\r\n" HOST "\r\n"},
        {400, "GET / http/1.1\r\n" HOST "\r\n"},
        {505, "GET / HTTP/2.0\r\n" HOST "\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\n"},
        {505, "GET / HTTP/1.2\r\n" HOST "\r\n"},
        {505, "GET / HTTP/0.9\r\n" HOST "\r\n"},
        {501, "FROB / HTTP/1.1\r\n" HOST "\r\n"}, /* unknown method */
        {400, "G@T / HTTP/1.1\r\n" HOST "\r\n"},
        {501, "get / HTTP/1.1\r\n" HOST "\r\n"},      /* methods have a case */
        {400, "GET / HTTP/1.1\r\n\r\n"},              /* no Host */
        {400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"}, /* two of them */
        {400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"chunked\"\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST
              "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"},
        {417, "POST / HTTP/1.1\r\n" HOST "Expect: 200-maybe\r\n\r\n"},
        {400, "\x16\x03\x01\x02\x01\x01"}, /* a TLS hello */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (status_of(cases[i].text) != cases[i].status)
            test_fail(__FILE__, __LINE__, "want %d, got %d for: %s", cases[i].status,
                      status_of(cases[i].text), cases[i].text);
    static const char with_nul[] = "GET / HTTP/1.1\r\n" HOST "X: a\0b\r\n\r\n";
    CHECK_INT(400, parse(with_nul, sizeof(with_nul) - 1, 5));
}

TEST(http_parser, waits_for_the_end_of_a_head)
{
    const char *text = "GET / HTTP/1.1\r\n" HOST "\r\n";
    for (size_t size = 1; size < strlen(text); size++)
        CHECK_INT(-1, parse(text, size, size));
    CHECK_INT(0, parse(text, strlen(text), strlen(text)));
}

TEST(http_parser, has_limits_for_heads)
{
    struct cn_buf buf = {0};
    size_t target_max = cn_http_limits_default.target_size_max;
    for (int over = 0; over < 2; over++) {
        cn_buf_clear(&buf);
        cn_buf_append_str(&buf, "GET /");
        for (size_t i = 1; i < target_max + (size_t)over; i++)
            cn_buf_append_byte(&buf, 'a');
        cn_buf_append_str(&buf, " HTTP/1.1\r\n" HOST "\r\n");
        CHECK_INT(over ? 414 : 0, status_of(cn_buf_text(&buf)));
    }
    /* Far too long is refused before the line ends. */
    cn_buf_clear(&buf);
    cn_buf_append_str(&buf, "GET /");
    for (size_t i = 0; i < target_max + 100; i++)
        cn_buf_append_byte(&buf, 'a');
    CHECK_INT(414, status_of(cn_buf_text(&buf)));

    cn_buf_clear(&buf);
    cn_buf_append_str(&buf, "GET / HTTP/1.1\r\n" HOST "X: ");
    for (size_t i = 0; i < cn_http_limits_default.head_size_max; i++)
        cn_buf_append_byte(&buf, 'a');
    CHECK_INT(431, status_of(cn_buf_text(&buf)));

    cn_buf_clear(&buf);
    cn_buf_append_str(&buf, "GET / HTTP/1.1\r\n" HOST);
    for (size_t i = 1; i < cn_http_limits_default.header_count_max; i++)
        cn_buf_append_str(&buf, "x: y\r\n");
    struct cn_buf more = {0};
    cn_buf_append(&more, buf.data, buf.size);
    cn_buf_append_str(&buf, "\r\n");
    CHECK_INT(0, status_of(cn_buf_text(&buf)));
    cn_buf_append_str(&more, "x: y\r\n\r\n");
    CHECK_INT(431, status_of(cn_buf_text(&more)));
    cn_buf_fini(&buf);
    cn_buf_fini(&more);
}

/* Decodes with `step` bytes at a time; the data goes to `out`. Returns the last result; `left`
 * are the bytes after the end of the body. */
static int chunked(const char *text, size_t step, struct cn_buf *out, size_t *left)
{
    struct cn_http_chunked decoder = {0};
    size_t size = strlen(text), pos = 0, end = step < size ? step : size;
    cn_buf_clear(out);
    for (;;) {
        size_t used, data_size = 0;
        const uint8_t *data = NULL;
        int rc = cn_http_chunked_next(&decoder, (const uint8_t *)text + pos, end - pos, &used,
                                      &data, &data_size);
        CHECK(used <= end - pos);
        pos += used;
        *left = size - pos;
        if (rc == CN_HTTP_CHUNKED_DATA)
            cn_buf_append(out, data, data_size);
        else if (rc != CN_HTTP_CHUNKED_MORE)
            return rc;
        else if (end == size)
            return rc;
        else
            end = end + step < size ? end + step : size;
    }
}

static int chunked_all(const char *text, struct cn_buf *out, size_t *left)
{
    struct cn_buf other = {0};
    size_t other_left;
    int rc = chunked(text, strlen(text), out, left);
    for (size_t step = 1; step < 4; step++) {
        CHECK_INT(rc, chunked(text, step, &other, &other_left));
        if (rc == CN_HTTP_CHUNKED_END) {
            CHECK_INT(*left, other_left);
            CHECK_STR(cn_buf_text(out), cn_buf_text(&other));
        }
    }
    cn_buf_fini(&other);
    return rc;
}

TEST(http_chunked, takes_the_framing_off)
{
    struct cn_buf out = {0};
    size_t left;
    CHECK_INT(CN_HTTP_CHUNKED_END, chunked_all("5\r\nhello\r\n1\r\n \r\n5;a=\"b c\"\r\nworld\r\n"
                                               "0\r\n\r\nGET",
                                               &out, &left));
    CHECK_STR("hello world", cn_buf_text(&out));
    CHECK_INT(3, left);
    CHECK_INT(CN_HTTP_CHUNKED_END, chunked_all("00A \t;x\r\n0123456789\r\n000\r\nX-T: a\r\n"
                                               "y:\r\n\r\n",
                                               &out, &left));
    CHECK_STR("0123456789", cn_buf_text(&out));
    CHECK_INT(0, left);
    cn_buf_fini(&out);
}

TEST(http_chunked, refuses_bad_framing)
{
    static const char *const cases[] = {
        "\r\n",
        "g\r\n",
        "0x5\r\nhello\r\n",
        "-1\r\n",
        "+5\r\nhello\r\n",
        " 5\r\nhello\r\n",
        "5 \r\nhello\r\n", /* a blank without an extension */
        "5\nhello\r\n",    /* bare LF */
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhelloX\r\n", /* longer than it says */
        "5\r\nhell\r\n0\r\n\r\n",
        "5;a\n\r\nhello",  /* bare LF in an extension */
        "5;a\rb\r\nhello", /* bare CR in an extension */
        "5\rhello",
        "00000000000000001\r\n", /* 17 digits */
        "10000000000000000\r\n",
        "0\r\nX\r\n\r\n", /* a trailer without a colon */
        "0\r\n: a\r\n\r\n",
        "0\r\nX : a\r\n\r\n",
        "0\r\nX: a\n\r\n",
        "0\r\nX: a\r b\r\n\r\n",
        "0\r\nX: a\r\n b\r\n\r\n",
        "0\r\n\n",
        "0\r\n\rX",
    };
    struct cn_buf out = {0};
    size_t left;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (chunked_all(cases[i], &out, &left) != CN_EPROTOCOL)
            test_fail(__FILE__, __LINE__, "accepted: %s", cases[i]);
    cn_buf_fini(&out);
}

TEST(http_chunked, has_limits_for_extensions_and_trailers)
{
    struct cn_buf text = {0}, out = {0};
    size_t left;
    for (int i = 0; i < 5000; i++) /* small chunks whose extensions add up */
        cn_buf_append_str(&text, "1;abc\r\nx\r\n");
    CHECK_INT(CN_ELIMIT, chunked(cn_buf_text(&text), text.size, &out, &left));
    cn_buf_clear(&text);
    cn_buf_append_str(&text, "0\r\n");
    for (int i = 0; i < 5000; i++)
        cn_buf_append_str(&text, "a: b\r\n");
    CHECK_INT(CN_ELIMIT, chunked(cn_buf_text(&text), text.size, &out, &left));
    cn_buf_fini(&text);
    cn_buf_fini(&out);
}
