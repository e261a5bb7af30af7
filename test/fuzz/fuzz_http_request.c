/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a client to requests, as the server drives the parser, without sockets.
 *
 * The first byte says how many bytes arrive at a time. The same input in one piece must give the
 * same requests, the same body bytes and the same refusal. What is accepted must keep the
 * parser's promises (P1 to P6 of http_parser.c). */
#include <string.h>

#include "base/assert.h"
#include "base/map.h"
#include "base/mem.h"
#include "net/http_parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cn_http_limits limits = {
    .target_size_max = 200, .head_size_max = 1000, .header_count_max = 20, .body_size_max = 4096};

/* What a run saw, reduced to numbers. */
struct trace {
    uint64_t hash;
    size_t request_count;
    int end; /* status, error, or 0: more input was needed */
};

static void see(struct trace *trace, const void *bytes, size_t size)
{
    trace->hash = cn_hash_bytes(trace->hash, bytes, size);
}

static void check_message(const struct cn_http_message *message, const char *head, size_t size)
{
    CN_ASSERT(message->content_length >= -1);
    CN_ASSERT(message->target.size > 0 && message->target.size <= limits.target_size_max);
    CN_ASSERT(message->target.data[0] == '/' || message->method == CN_HTTP_OPTIONS);
    CN_ASSERT(message->version_minor <= 1);
    CN_ASSERT(cn_http_token_valid(message->method_text.data, message->method_text.size));
    unsigned hosts = 0, framings = 0;
    for (size_t i = 0; i < message->header_count; i++) {
        const struct cn_http_header *header = &message->headers[i];
        CN_ASSERT(header->name >= head && header->value >= head);
        CN_ASSERT(header->name + header->name_size <= head + size);
        CN_ASSERT(header->value + header->value_size <= head + size);
        CN_ASSERT(cn_http_token_valid(header->name, header->name_size));
        CN_ASSERT(cn_http_value_valid(header->value, header->value_size));
        for (size_t j = 0; j < header->name_size; j++)
            CN_ASSERT(header->name[j] < 'A' || header->name[j] > 'Z');
        hosts += cn_http_name_equal(header->name, header->name_size, "host", 4);
        framings += cn_http_name_equal(header->name, header->name_size, "content-length", 14);
        framings += cn_http_name_equal(header->name, header->name_size, "transfer-encoding", 17);
    }
    CN_ASSERT(hosts == 1 || (hosts == 0 && message->version_minor == 0));
    CN_ASSERT(framings <= 1 && (framings == 1 || message->content_length == 0));
}

/* A complete head at `bytes`. Returns 0 or a status. */
static int use_head(struct trace *trace, const struct cn_http_scan *scan, const uint8_t *bytes,
                    int64_t *content_length)
{
    CN_ASSERT(scan->header_count <= limits.header_count_max);
    struct cn_http_header headers[20];
    struct cn_http_message message = {.headers = headers};
    char *head = cn_memdup(bytes, scan->pos); /* of its own, so that no overrun stays unseen */
    int status = cn_http_parse_head(scan, head, &limits, &message);
    if (status == 0) {
        check_message(&message, head, scan->pos);
        see(trace, head, scan->pos);
        see(trace, &message.content_length, sizeof(message.content_length));
        see(trace, message.target.data, message.target.size);
        see(trace, message.host.data, message.host.size);
        trace->request_count++;
        *content_length = message.content_length;
    }
    cn_free(head);
    return status;
}

static struct trace run(const uint8_t *data, size_t size, size_t step)
{
    struct trace trace = {.hash = 1};
    struct cn_http_scan scan = {0};
    struct cn_http_chunked chunked = {0};
    bool in_body = false;
    int64_t left = 0;
    size_t pos = 0, end = 0;
    for (;;) {
        if (end < size)
            end = end + step < size ? end + step : size;
        bool more = true;
        while (more && trace.end == 0) {
            const uint8_t *bytes = data + pos, *piece = NULL;
            size_t used = 0, piece_size = 0;
            if (!in_body) {
                int rc = cn_http_scan_head(&scan, bytes, end - pos, &limits);
                CN_ASSERT(scan.pos <= end - pos);
                more = rc == 1;
                if (rc == 1) {
                    rc = use_head(&trace, &scan, bytes, &left);
                    used = scan.pos;
                    in_body = left != 0;
                    scan = (struct cn_http_scan){0};
                    chunked = (struct cn_http_chunked){0};
                }
                if (rc > 1)
                    trace.end = rc;
            } else if (left > 0) {
                used = piece_size = (uint64_t)left < end - pos ? (size_t)left : end - pos;
                piece = bytes;
                left -= (int64_t)used;
                in_body = left > 0;
                more = used > 0;
            } else {
                int rc =
                    cn_http_chunked_next(&chunked, bytes, end - pos, &used, &piece, &piece_size);
                CN_ASSERT(used <= end - pos);
                CN_ASSERT(piece_size == 0 ||
                          (piece >= bytes && piece + piece_size == bytes + used));
                if (rc == CN_HTTP_CHUNKED_END)
                    in_body = false;
                else if (rc < 0)
                    trace.end = rc;
                more = rc != CN_HTTP_CHUNKED_MORE;
            }
            for (size_t i = 0; i < piece_size; i++)
                see(&trace, piece + i, 1); /* pieces differ, their bytes must not */
            pos += used;
        }
        if (end == size || trace.end != 0)
            return trace;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    size_t step = data[0] == 0 ? 1 : data[0];
    struct trace whole = run(data + 1, size - 1, size);
    struct trace parts = run(data + 1, size - 1, step);
    CN_ASSERT(whole.request_count == parts.request_count);
    CN_ASSERT(whole.end == parts.end && whole.hash == parts.hash);
    return 0;
}
