/* SPDX-License-Identifier: Apache-2.0 */
/* cli/import_s3.c - a bucket of any server that speaks S3 becomes a bucket of R2. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/import.h"
#include "net/caller.h"
#include "text/percent.h"

#define ANSWER_MAX ((size_t)64 << 20)

struct s3 {
    struct cn_import *import;
    const char *endpoint, *keys, *bucket;
    struct cn_buf url, answer, fields;
};

/* --- XML ------------------------------------------------------------------------------------- */

/* The text of the first <TAG> from *at on and before `end`, which moves behind it; NULL: there is
 * none. Owned. Keys are percent-encoded, and nothing else that is read has entities but quotes. */
static char *take_text(const char **at, const char *end, const char *tag)
{
    char open[64];
    int size = snprintf(open, sizeof(open), "<%s>", tag);
    const char *begin = strstr(*at, open);
    if (!begin || begin >= end)
        return NULL;
    begin += size;
    const char *stop = strstr(begin, "</");
    if (!stop || stop > end)
        return NULL;
    *at = stop;
    char *text = cn_memdup(begin, (size_t)(stop - begin) + 1);
    text[stop - begin] = 0;
    return text;
}

/* Without the quotes around it, in either form. */
static void trim_etag(char *etag)
{
    char *to = etag;
    for (const char *from = etag; *from;) {
        if (*from == '"')
            from++;
        else if (strncmp(from, "&quot;", 6) == 0 || strncmp(from, "&#34;", 5) == 0)
            from = strchr(from, ';') + 1;
        else
            *to++ = *from++;
    }
    *to = 0;
}

static int64_t read_time(const char *text)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    int64_t ms = rest && *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    return rest ? (int64_t)timegm(&tm) * 1000 + (ms >= 0 && ms < 1000 ? ms : 0) : 0;
}

/* --- requests -------------------------------------------------------------------------------- */

static int ask(struct s3 *s3, int file, struct cn_err *err)
{
    struct cn_caller_request request = {.method = "GET",
                                        .url = cn_buf_text(&s3->url),
                                        .s3_keys = s3->keys,
                                        .file = file,
                                        .fields = &s3->fields,
                                        .answer_max = ANSWER_MAX};
    cn_buf_clear(&s3->answer);
    cn_buf_clear(&s3->fields);
    int status = cn_caller_ask(&request, &s3->answer, err);
    if (status < 0 || status == 200)
        return status < 0 ? status : 0;
    const char *at = cn_buf_text(&s3->answer);
    char *message = take_text(&at, at + s3->answer.size, "Message");
    cn_err_set(err, status == 404 ? CN_ENOTFOUND : CN_EPROTOCOL, "the S3 server answers %d: %.200s",
               status, message ? message : "");
    cn_free(message);
    return err->code;
}

static void add_member(struct cn_buf *json, const char *name, const char *value)
{
    cn_buf_append_byte(json, json->size ? ',' : '{');
    cn_buf_append_json(json, name, strlen(name));
    cn_buf_append_byte(json, ':');
    cn_buf_append_json(json, value, strlen(value));
}

/* A field of the head: metadata of the object. */
static void take_field(struct cn_import_object *object, char *name, const char *value)
{
    static const struct {
        const char *field, *member;
    } fields[] = {{"content-type", "contentType"},
                  {"content-language", "contentLanguage"},
                  {"content-disposition", "contentDisposition"},
                  {"content-encoding", "contentEncoding"},
                  {"cache-control", "cacheControl"}};
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (size_t i = 0; i < CN_ARRAY_COUNT(fields); i++) {
        if (strcmp(name, fields[i].field) == 0)
            add_member(&object->http, fields[i].member, value);
    }
    if (strncmp(name, "x-amz-meta-", 11) == 0)
        add_member(&object->custom, name + 11, value);
}

static void take_fields(struct s3 *s3, struct cn_import_object *object)
{
    cn_buf_clear(&object->http);
    cn_buf_clear(&object->custom);
    char *rest = cn_buf_text(&s3->fields), *line;
    while ((line = strsep(&rest, "\n"))) {
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = 0;
        char *value = colon + 1 + strspn(colon + 1, " \t");
        value[strcspn(value, "\r")] = 0;
        take_field(object, line, value);
    }
    cn_buf_append_str(&object->http, object->http.size ? "}" : "{}");
    cn_buf_append_str(&object->custom, object->custom.size ? "}" : "{}");
}

static int fetch(struct cn_import_object *object, void *data, struct cn_err *err)
{
    struct s3 *s3 = data;
    int file = open(s3->import->scratch, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        return cn_err_errno(err, errno, "cannot write %s", s3->import->scratch);
    cn_buf_clear(&s3->url);
    cn_buf_printf(&s3->url, "%s/%s/", s3->endpoint, s3->bucket);
    for (const char *part = object->key; part;) { /* slashes stay */
        const char *slash = strchr(part, '/');
        cn_percent_encode(&s3->url, part, slash ? (size_t)(slash - part) : strlen(part),
                          CN_PERCENT_UNRESERVED);
        if (slash)
            cn_buf_append_byte(&s3->url, '/');
        part = slash ? slash + 1 : NULL;
    }
    int rc = ask(s3, file, err);
    if (close(file) < 0 && rc == 0)
        rc = cn_err_errno(err, errno, "cannot write %s", s3->import->scratch);
    if (rc == 0)
        take_fields(s3, object);
    return rc;
}

/* --- the list -------------------------------------------------------------------------------- */

static int import_entry(struct s3 *s3, const char *entry, const char *end, struct cn_err *err)
{
    const char *at[] = {entry, entry, entry, entry};
    char *key = take_text(&at[0], end, "Key"), *etag = take_text(&at[1], end, "ETag");
    char *size = take_text(&at[2], end, "Size"), *time = take_text(&at[3], end, "LastModified");
    struct cn_import_object object = {.fetch = fetch, .data = s3};
    struct cn_buf name = {0};
    int rc = key && etag && size && time
                 ? 0
                 : cn_err_set(err, CN_EPROTOCOL, "the S3 server's list cannot be read");
    if (rc == 0) {
        cn_buf_reserve(&name, strlen(key) + 1);
        ptrdiff_t length = cn_percent_decode(key, strlen(key), 0, (char *)name.data);
        name.size = length > 0 ? (size_t)length : 0;
        trim_etag(etag);
        object.key = cn_buf_text(&name);
        object.etag = etag;
        object.size = strtoll(size, NULL, 10);
        object.uploaded_ms = read_time(time);
        rc = cn_import_r2_object(s3->import, s3->bucket, &object, err);
    }
    cn_buf_fini(&object.http);
    cn_buf_fini(&object.custom);
    cn_buf_fini(&name);
    cn_free(key);
    cn_free(etag);
    cn_free(size);
    cn_free(time);
    return rc;
}

/* A page of the list. *token: where the next one begins, owned; NULL: there is none. */
static int import_page(struct s3 *s3, char **token, struct cn_err *err)
{
    cn_buf_clear(&s3->url);
    cn_buf_printf(&s3->url, "%s/%s?", s3->endpoint, s3->bucket);
    if (*token) {
        cn_api_append_param(&s3->url, "continuation-token", *token);
        cn_buf_append_byte(&s3->url, '&');
    }
    cn_buf_append_str(&s3->url, "encoding-type=url&list-type=2&max-keys=1000");
    cn_free(*token);
    *token = NULL;
    int rc = ask(s3, 0, err);
    if (rc < 0)
        return rc;
    struct cn_buf page = s3->answer;
    s3->answer = (struct cn_buf){0};
    const char *at = cn_buf_text(&page), *next = at, *last = at + page.size;
    for (const char *entry; rc == 0 && (entry = strstr(at, "<Contents>"));) {
        const char *end = strstr(entry, "</Contents>");
        rc = end ? import_entry(s3, entry, end, err)
                 : cn_err_set(err, CN_EPROTOCOL, "the S3 server's list is cut");
        at = end ? end : entry;
    }
    *token = take_text(&next, last, "NextContinuationToken");
    cn_buf_fini(&page);
    return rc;
}

int cn_import_s3(struct cn_import *import, const char *endpoint, const char *keys,
                 struct cn_err *err)
{
    struct s3 s3 = {
        .import = import, .endpoint = endpoint, .keys = keys, .bucket = import->source + 3};
    struct cn_json *answer = NULL;
    char *token = NULL, *target = cn_sprintf("/api/r2/%s", s3.bucket);
    int rc = 0;
    if (!endpoint || !keys)
        rc = cn_err_set(err, CN_EINVALID,
                        "which server? --endpoint URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY");
    else if (!*s3.bucket ||
             strspn(s3.bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(s3.bucket))
        rc = cn_err_set(err, CN_EINVALID,
                        "a bucket's name has lower-case letters, digits and hyphens");
    if (rc == 0 && !import->verify)
        rc = cn_api_call(&import->api, "PUT", target, NULL, &answer, err);
    do {
        if (rc == 0)
            rc = import_page(&s3, &token, err);
    } while (rc == 0 && token);
    cn_json_free(answer);
    cn_free(token);
    cn_free(target);
    cn_buf_fini(&s3.url);
    cn_buf_fini(&s3.answer);
    cn_buf_fini(&s3.fields);
    return rc;
}
