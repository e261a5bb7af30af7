/* SPDX-License-Identifier: Apache-2.0 */
/* net/http.h - the vocabulary of HTTP/1.1: methods, header fields, statuses, limits.
 *
 * Plain values and checks, shared by the parser, the server and their users.
 *
 * Threads: any; nothing here has state. */
#ifndef CN_NET_HTTP_H
#define CN_NET_HTTP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cn_http_method {
    CN_HTTP_GET,
    CN_HTTP_HEAD,
    CN_HTTP_POST,
    CN_HTTP_PUT,
    CN_HTTP_DELETE,
    CN_HTTP_PATCH,
    CN_HTTP_OPTIONS,
    CN_HTTP_OTHER, /* any other registered method; its text says which */
};

/* A run of text that is not NUL-terminated and belongs to somebody else. */
struct cn_http_text {
    const char *data;
    size_t size;
};

/* One header field. Request names are lower-case; values have no blanks at either end. */
struct cn_http_header {
    const char *name;
    const char *value;
    uint32_t name_size;
    uint32_t value_size;
};

/* What is refused, and when. Zero in a field means its default (cn_http_limits_default). */
struct cn_http_limits {
    size_t target_size_max;        /* 16 KiB; 414 */
    size_t head_size_max;          /* 128 KiB, request line not counted; 431 */
    size_t header_count_max;       /* 256; 431 */
    uint64_t body_size_max;        /* 100 MiB; 413 */
    uint64_t drain_size_max;       /* 256 KiB of an unread body are skipped to keep a connection */
    size_t output_high_bytes;      /* 256 KiB queued: writers are told to wait */
    size_t output_size_max;        /* 16 MiB queued: further writes are refused */
    size_t input_high_bytes;       /* 64 KiB unread: the socket is not read further */
    unsigned connection_count_max; /* 10,000 per lane; 503 */
    unsigned
        head_timeout_ms; /* 10 s from the first byte (or the TLS hello) to the head's end; 408 */
    unsigned idle_timeout_ms;   /* 75 s between requests; closed in silence */
    unsigned body_timeout_ms;   /* 60 s without a byte while the handler waits for some; aborted */
    unsigned write_timeout_ms;  /* 60 s in which the client takes nothing; aborted */
    unsigned linger_timeout_ms; /* 2 s for the client to read a last answer before the close */
};
extern const struct cn_http_limits cn_http_limits_default;

/* The text of a status line after the number, "Unknown" if unregistered. Static storage. */
const char *cn_http_reason(int status);

/* A non-empty token of RFC 9110: what a field name or a method may be. */
bool cn_http_token_valid(const char *text, size_t size);
/* No control characters but the tabulator, no CR, LF, NUL: what may be sent as a field value. */
bool cn_http_value_valid(const char *text, size_t size);
/* ASCII case-insensitive; `lower` is lower-case already. */
bool cn_http_name_equal(const char *name, size_t size, const char *lower, size_t lower_size);
/* Whether a comma-separated list such as Connection's holds `lower` (ASCII case-insensitive). */
bool cn_http_list_has(const char *value, size_t size, const char *lower);

#endif
