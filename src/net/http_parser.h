/* SPDX-License-Identifier: Apache-2.0 */
/* net/http_parser.h - bytes of a client to the head of a request and the pieces of its body.
 *
 * No sockets, no memory of its own, no callbacks: three small machines that the
 * server (and the fuzzer) drive with whatever has arrived.
 *
 *   scan    finds the end of a head in bytes that grow; resumes where it stopped
 *   parse   takes a complete head apart, in place
 *   chunked takes the framing off a chunked body
 *
 * Threads: any; all state is in the caller's structs. */
#ifndef CN_NET_HTTP_PARSER_H
#define CN_NET_HTTP_PARSER_H
#include "net/http.h"

/* Where a scan stands. A zeroed struct is the start of a head. */
struct cn_http_scan {
    size_t pos;            /* bytes before it need no second look */
    size_t line_start;     /* of the line that holds pos */
    size_t first_line_end; /* 0 until the request line is complete */
    size_t header_count;   /* complete header lines so far */
};

/* Looks at `size` bytes, which begin with those of earlier calls. Returns 0 if the head is not
 * complete, 1 if it is (`scan->pos` is then its size), or the HTTP status that answers it. */
int cn_http_scan_head(struct cn_http_scan *scan, const uint8_t *bytes, size_t size,
                      const struct cn_http_limits *limits);

struct cn_http_message {
    struct cn_http_text method_text, target, host;
    struct cn_http_header *headers; /* the caller's array */
    size_t header_count;
    int64_t content_length; /* -1: chunked; 0: no body */
    enum cn_http_method method;
    uint8_t version_minor;
    bool keep_alive;
    bool upgrade;
    bool expect_continue;
};

/* Takes apart a head that cn_http_scan_head() found complete. `message->headers` has room for
 * `scan->header_count`. Names are lower-cased in place. Returns 0 or an HTTP status. */
int cn_http_parse_head(const struct cn_http_scan *scan, char *head,
                       const struct cn_http_limits *limits, struct cn_http_message *message);

/* A chunked body. A zeroed struct is its start. */
struct cn_http_chunked {
    int state;
    unsigned digit_count;
    uint64_t chunk_left;     /* bytes of data before the chunk's CRLF */
    uint32_t extension_size; /* of all chunks together */
    uint32_t trailer_size;
    uint32_t trailer_name_size; /* of the line at hand, until its colon */
};

enum { CN_HTTP_CHUNKED_MORE = 0, CN_HTTP_CHUNKED_DATA = 1, CN_HTTP_CHUNKED_END = 2 };

/* Consumes `*used` bytes and returns what they held: DATA (a piece at `*data`, inside `bytes`),
 * END (the last chunk and its trailers are over), MORE, or CN_EPROTOCOL / CN_ELIMIT. */
int cn_http_chunked_next(struct cn_http_chunked *chunked, const uint8_t *bytes, size_t size,
                         size_t *used, const uint8_t **data, size_t *data_size);

#endif
