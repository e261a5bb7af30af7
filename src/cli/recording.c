/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/recording.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "text/base64.h"

#define HEADERS_MAX 256
#define TIME_MS_MAX 8.64e15 /* the last moment that JavaScript knows */

static void add_header(struct cn_record *record, const char *name, const char *value)
{
    /* What frames the message is the client's, and the host that of the target. */
    static const char *const own[] = {"host", "content-length", "transfer-encoding", "connection"};
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcasecmp(name, own[i]) == 0)
            return;
    }
    if (record->header_count == HEADERS_MAX)
        return;
    record->headers =
        cn_realloc(record->headers, (record->header_count + 1) * sizeof(*record->headers));
    record->headers[record->header_count++] =
        (struct cn_record_header){cn_strdup(name), cn_strdup(value)};
}

/* {"name":"value"} or [["name","value"],...] */
static void read_headers(struct cn_record *record, const struct cn_json *headers)
{
    for (const struct cn_json *each = headers ? headers->first : NULL; each; each = each->next) {
        if (headers->kind == CN_JSON_OBJECT && each->kind == CN_JSON_STRING)
            add_header(record, each->name, each->text);
        const struct cn_json *name = each->first, *value = name ? name->next : NULL;
        if (headers->kind == CN_JSON_ARRAY && each->kind == CN_JSON_ARRAY && value &&
            name->kind == CN_JSON_STRING && value->kind == CN_JSON_STRING)
            add_header(record, name->text, value->text);
    }
}

static const char *find_header(const struct cn_json *headers, const char *name)
{
    for (const struct cn_json *each = headers && headers->kind == CN_JSON_OBJECT ? headers->first
                                                                                 : NULL;
         each; each = each->next) {
        if (strcasecmp(each->name, name) == 0 && each->kind == CN_JSON_STRING)
            return each->text;
    }
    return NULL;
}

/* "https://host/path?query", or from the path on. */
static int read_url(struct cn_record *record, const char *url, struct cn_err *err)
{
    const char *scheme = strstr(url, "://"), *path = url;
    if (scheme && strcspn(url, "/?#") > (size_t)(scheme - url)) {
        const char *host = scheme + 3;
        size_t size = strcspn(host, "/?#");
        record->host = cn_strndup(host, size);
        path = host + size;
    }
    if (*path && !strchr("/?#", *path))
        return cn_err_set(err, CN_EINVALID, "\"%.60s\" is no URL", url);
    size_t size = strcspn(path, "#");
    char *rest = cn_strndup(path, size);
    record->target = *rest == '/' ? cn_strdup(rest) : cn_sprintf("/%s", rest);
    cn_free(rest);
    return 0;
}

static int64_t read_time(const struct cn_json *time)
{
    struct cn_err err;
    int64_t time_ms;
    if (time && (time->kind == CN_JSON_INT || time->kind == CN_JSON_NUMBER))
        return time->number >= 0 && time->number <= TIME_MS_MAX ? (int64_t)time->number : -1;
    return time && time->kind == CN_JSON_STRING && cn_clock_parse(time->text, &time_ms, &err) == 0
               ? time_ms
               : -1;
}

/* A number, or a text of three digits, as some recordings have it. 0: it was not recorded. */
static int read_status(const struct cn_json *from)
{
    const char *text = cn_json_text(from, "status");
    int64_t status = cn_json_int(from, "status");
    if (text && strlen(text) == 3 && strspn(text, "0123456789") == 3)
        status = strtoll(text, NULL, 10);
    return status >= 100 && status <= 999 ? (int)status : 0;
}

/* A method whose requests have bodies; only a header could say that this one had none. */
static bool has_body(const char *method, const char *content_length)
{
    if (content_length)
        return strtoull(content_length, NULL, 10) > 0;
    return strcasecmp(method, "POST") == 0 || strcasecmp(method, "PUT") == 0 ||
           strcasecmp(method, "PATCH") == 0;
}

/* --- the forms ------------------------------------------------------------------------------- */

static int read_own_line(struct cn_record *record, const struct cn_json *line, struct cn_err *err)
{
    const char *method = cn_json_text(line, "method"), *target = cn_json_text(line, "target");
    const char *host = cn_json_text(line, "host");
    if (!method || !target)
        return cn_err_set(err, CN_EINVALID, "a request has no method or no target");
    int rc = read_url(record, target, err);
    if (rc < 0)
        return rc;
    record->method = cn_strdup(method);
    if (!record->host && host && *host)
        record->host = cn_strdup(host);
    record->body_missing = has_body(method, NULL);
    record->status = read_status(line);
    record->time_ms = read_time(cn_json_find(line, "time"));
    return 1;
}

static int read_trace(struct cn_record *record, const struct cn_json *line,
                      const struct cn_json *event, struct cn_err *err)
{
    const struct cn_json *request = cn_json_find(event, "request");
    const struct cn_json *headers = cn_json_find(request, "headers");
    const char *method = cn_json_text(request, "method"), *url = cn_json_text(request, "url");
    if (!request || !url)
        return 0; /* an alarm, a batch of a queue */
    int rc = read_url(record, url, err);
    if (rc < 0)
        return rc;
    record->method = cn_strdup(method ? method : "GET");
    read_headers(record, headers);
    const char *coding = find_header(headers, "transfer-encoding");
    record->body_missing =
        coding || has_body(record->method, find_header(headers, "content-length"));
    record->status = read_status(cn_json_find(event, "response"));
    record->time_ms = read_time(cn_json_find(line, "eventTimestamp"));
    return 1;
}

static int read_plain(struct cn_record *record, const struct cn_json *line, struct cn_err *err)
{
    const char *method = cn_json_text(line, "method"), *url = cn_json_text(line, "url");
    const struct cn_json *body = cn_json_find(line, "body");
    const struct cn_json *base64 = cn_json_find(line, "bodyBase64");
    if (!url)
        return 0;
    int rc = read_url(record, url, err);
    if (rc < 0)
        return rc;
    record->method = cn_strdup(method ? method : "GET");
    read_headers(record, cn_json_find(line, "headers"));
    if (base64 && (base64->kind != CN_JSON_STRING ||
                   !cn_base64_decode(&record->body, base64->text, base64->size)))
        return cn_err_set(err, CN_EINVALID, "\"bodyBase64\" is not base64");
    if (body && body->kind == CN_JSON_STRING)
        cn_buf_append(&record->body, body->text, body->size);
    else if (body && body->kind != CN_JSON_NULL)
        cn_json_write(&record->body, body);
    record->status = read_status(line);
    record->time_ms = read_time(cn_json_find(line, "time"));
    return 1;
}

int cn_record_parse(struct cn_record *record, const char *line, size_t size, struct cn_err *err)
{
    *record = (struct cn_record){.time_ms = -1};
    struct cn_json *json = cn_json_parse(line, size, err);
    if (!json)
        return CN_EINVALID;
    const struct cn_json *event = cn_json_find(json, "event");
    int rc = event && event->kind == CN_JSON_OBJECT ? read_trace(record, json, event, err)
             : !event                               ? read_plain(record, json, err)
             : event->kind == CN_JSON_STRING && strcmp(event->text, "request") == 0
                 ? read_own_line(record, json, err)
                 : 0;
    if (rc <= 0)
        cn_record_fini(record);
    cn_json_free(json);
    return rc;
}

void cn_record_fini(struct cn_record *record)
{
    for (size_t i = 0; i < record->header_count; i++) {
        cn_free(record->headers[i].name);
        cn_free(record->headers[i].value);
    }
    cn_free(record->headers);
    cn_free(record->method);
    cn_free(record->host);
    cn_free(record->target);
    cn_buf_fini(&record->body);
    *record = (struct cn_record){.time_ms = -1};
}
