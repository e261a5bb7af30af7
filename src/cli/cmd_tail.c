/* SPDX-License-Identifier: Apache-2.0 */
/* cairn tail [WORKER]: requests and messages of a running server, while they happen. Filters and
 * their names are wrangler's; they are applied here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/args.h"

struct tail {
    const struct cn_args *args;
    const char *worker; /* NULL: all */
    bool json, color;
    struct cn_buf line; /* what has come of the one that is not complete */
};

static bool matches(const struct tail *tail, const struct cn_json *line, const char *text)
{
    const struct cn_args *args = tail->args;
    const char *worker = cn_json_text(line, "worker"), *method = cn_json_text(line, "method");
    const char *outcome = cn_json_text(line, "outcome"), *level = cn_json_text(line, "level");
    if (tail->worker && (!worker || strcmp(worker, tail->worker) != 0))
        return false;
    if (args->method && (!method || strcasecmp(method, args->method) != 0))
        return false;
    if (args->status) {
        /* A message counts by its level. */
        const char *is = outcome ? outcome : level && strcmp(level, "error") == 0 ? "error" : "ok";
        if (strcmp(is, args->status) != 0)
            return false;
    }
    return !args->search || strstr(text, args->search);
}

static void print_pretty(const struct tail *tail, const struct cn_json *line)
{
    const char *time = cn_json_text(line, "time"), *level = cn_json_text(line, "level");
    const char *worker = cn_json_text(line, "worker"), *message = cn_json_text(line, "message");
    const char *class_name = cn_json_text(line, "class"), *name = cn_json_text(line, "name");
    const char *object = cn_json_text(line, "object"), *request = cn_json_text(line, "request");
    const char *outcome = cn_json_text(line, "outcome");
    bool bad = (outcome && strcmp(outcome, "ok") != 0) || (level && strcmp(level, "error") == 0);
    printf("%.12s ", time && strlen(time) > 11 ? time + 11 : "");
    if (tail->color)
        fputs(bad ? "\033[31m" : outcome ? "\033[32m" : "", stdout);
    printf("%-5s", outcome ? outcome : level ? level : "");
    if (tail->color)
        fputs("\033[0m", stdout);
    printf(" %s", worker ? worker : "-");
    if (class_name)
        printf("/%s(%.16s)", class_name, name ? name : object ? object : "");
    if (request)
        printf(" [%s]", request);
    printf(" %s\n", message ? message : "");
}

static void take_line(struct tail *tail, struct cn_err *err)
{
    const char *text = cn_buf_text(&tail->line);
    struct cn_json *line = cn_json_parse(text, tail->line.size, err);
    const struct cn_json *dropped = cn_json_find(line, "dropped");
    if (dropped && dropped->kind == CN_JSON_INT)
        fprintf(stderr, "cairn: %lld lines were dropped: too many for this listener\n",
                (long long)dropped->integer);
    else if (line && !cn_json_find(line, "listening") && matches(tail, line, text)) {
        if (tail->json)
            puts(text);
        else
            print_pretty(tail, line);
    }
    cn_json_free(line);
    cn_buf_clear(&tail->line);
}

static int on_bytes(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    struct tail *tail = data;
    const char *at = bytes, *end = at + size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        cn_buf_append(&tail->line, at, (size_t)((newline ? newline : end) - at));
        if (newline)
            take_line(tail, err);
        at = newline ? newline + 1 : end;
    }
    if (fflush(stdout) != 0) /* whoever read it is gone */
        return cn_err_errno(err, errno, "cannot write");
    return 0;
}

int cn_cmd_tail(const struct cn_args *args)
{
    struct cn_err err = {0};
    struct cn_api api;
    struct tail tail = {.args = args,
                        .worker = args->rest_count ? args->rest[0] : NULL,
                        .json = args->format && strcmp(args->format, "json") == 0,
                        .color = isatty(STDOUT_FILENO)};
    if (args->format && !tail.json && strcmp(args->format, "pretty") != 0) {
        fprintf(stderr, "cairn: --format must be json or pretty, not \"%s\"\n", args->format);
        return 2;
    }
    if (args->status && strcmp(args->status, "ok") != 0 && strcmp(args->status, "error") != 0 &&
        strcmp(args->status, "canceled") != 0) {
        fprintf(stderr, "cairn: --status must be ok, error or canceled, not \"%s\"\n",
                args->status);
        return 2;
    }
    int rc = cn_api_connect(&api, args, &err);
    if (rc == 0) {
        rc = cn_api_fetch(&api, "/api/tail", on_bytes, &tail, &err);
        cn_api_close(&api);
    }
    cn_buf_fini(&tail.line);
    if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    return rc < 0 ? 1 : 0;
}
