/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/dashboard.h"

#include <string.h>

#include "base/assert.h"
#include "net/server.h"

/* D1. Images may be data: what an object or a bucket holds is shown that way. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

const struct cn_dashboard_file *cn_dashboard_find(const struct cn_http_request *http)
{
    const char *query = memchr(http->target.data, '?', http->target.size);
    size_t size = query ? (size_t)(query - http->target.data) : http->target.size;
    for (unsigned i = 0; i < cn_dashboard_file_count; i++) {
        const struct cn_dashboard_file *file = &cn_dashboard_files[i];
        if (strlen(file->path) == size && memcmp(file->path, http->target.data, size) == 0)
            return file;
    }
    return NULL;
}

/* Whether a field with this name has this word in it. */
static bool has_word(const struct cn_http_request *http, const char *name, const char *word)
{
    const struct cn_http_header *header = cn_http_request_find(http, name);
    return header && memmem(header->value, header->value_size, word, strlen(word));
}

struct fields {
    struct cn_http_header list[12];
    size_t count;
};

static void add(struct fields *fields, const char *name, const char *value)
{
    CN_ASSERT(fields->count < CN_ARRAY_COUNT(fields->list));
    fields->list[fields->count++] =
        (struct cn_http_header){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
}

void cn_dashboard_answer(const struct cn_dashboard_file *file, struct cn_http_request *http)
{
    /* "gzip;q=0" is nothing that a browser sends. */
    bool packed = has_word(http, "accept-encoding", "gzip");
    bool known = has_word(http, "if-none-match", file->etag);
    struct fields fields = {0};
    add(&fields, "content-type", file->type);
    add(&fields, "cache-control",
        file->fixed ? "public, max-age=31536000, immutable" : "no-cache"); /* D2 */
    add(&fields, "etag", file->etag);
    add(&fields, "vary", "accept-encoding");
    add(&fields, "x-content-type-options", "nosniff");
    add(&fields, "referrer-policy", "no-referrer");
    add(&fields, "cross-origin-opener-policy", "same-origin");
    add(&fields, "cross-origin-resource-policy", "same-origin");
    add(&fields, "x-frame-options", "DENY");
    add(&fields, "content-security-policy", policy);
    if (packed && !known)
        add(&fields, "content-encoding", "gzip");
    struct cn_http_head head = {known ? 304 : 200, fields.list, fields.count, NULL};
    const void *bytes = packed ? file->gzip : file->plain;
    size_t size = packed ? file->gzip_size : file->plain_size;
    (void)cn_http_respond(http, &head, known ? NULL : bytes, known ? 0 : size, NULL,
                          NULL); /* or the client is gone */
    cn_http_request_release(http);
}
