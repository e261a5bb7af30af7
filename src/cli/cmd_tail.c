/* SPDX-License-Identifier: Apache-2.0 */
/* cairn tail [WORKER]: requests and messages of a running server, while they happen. Filters and
 * their names are wrangler's; they are applied here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/args.h"
#include "cli/print.h"

struct options {
    const char *data, *format, *status, *method, *search;
};

struct tail {
    const struct options *options;
    const char *worker; /* NULL: all */
    bool json, color;
    struct cn_buf line; /* what has come of the one that is not complete */
};

static bool matches(const struct tail *tail, const struct cn_json *line, const char *text)
{
    const struct options *options = tail->options;
    const char *worker = cn_json_text(line, "worker"), *method = cn_json_text(line, "method");
    const char *outcome = cn_json_text(line, "outcome"), *level = cn_json_text(line, "level");
    if (tail->worker && (!worker || strcmp(worker, tail->worker) != 0))
        return false;
    if (options->method && (!method || strcasecmp(method, options->method) != 0))
        return false;
    if (options->status) {
        /* A message counts by its level. */
        const char *is = outcome ? outcome : level && strcmp(level, "error") == 0 ? "error" : "ok";
        if (strcmp(is, options->status) != 0)
            return false;
    }
    return !options->search || strstr(text, options->search);
}

static void print_pretty(const struct tail *tail, const struct cn_json *line)
{
    const char *time = cn_json_text(line, "time"), *level = cn_json_text(line, "level");
    const char *worker = cn_json_text(line, "worker"), *message = cn_json_text(line, "message");
    const char *class_name = cn_json_text(line, "class"), *name = cn_json_text(line, "name");
    const char *object = cn_json_text(line, "object"), *request = cn_json_text(line, "request");
    const char *outcome = cn_json_text(line, "outcome"), *node = cn_json_text(line, "node");
    bool bad = (outcome && strcmp(outcome, "ok") != 0) || (level && strcmp(level, "error") == 0);
    printf("%.12s ", time && strlen(time) > 11 ? time + 11 : "");
    if (tail->color)
        fputs(bad ? "\033[31m" : outcome ? "\033[32m" : "", stdout);
    printf("%-5s", outcome ? outcome : level ? level : "");
    if (tail->color)
        fputs("\033[0m", stdout);
    if (node)
        printf(" %s", node);
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
    const char *node = cn_json_text(line, "node");
    if (dropped && dropped->kind == CN_JSON_INT)
        fprintf(stderr, "cairn: %lld lines%s%s were dropped: too many for this listener\n",
                (long long)dropped->integer, node ? " of node " : "", node ? node : "");
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

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    struct cn_api api;
    struct tail tail = {.options = options,
                        .worker = args->rest_count ? args->rest[0] : NULL,
                        .json = options->format && strcmp(options->format, "json") == 0,
                        .color = isatty(STDOUT_FILENO)};
    if (options->format && !tail.json && strcmp(options->format, "pretty") != 0) {
        fprintf(stderr, "cairn: --format must be json or pretty, not \"%s\"\n", options->format);
        return 2;
    }
    if (options->status && strcmp(options->status, "ok") != 0 &&
        strcmp(options->status, "error") != 0 && strcmp(options->status, "canceled") != 0) {
        fprintf(stderr, "cairn: --status must be ok, error or canceled, not \"%s\"\n",
                options->status);
        return 2;
    }
    int rc = cn_api_connect(&api, options->data, &err);
    if (rc == 0) {
        rc = cn_api_fetch(&api, "/api/tail", on_bytes, &tail, &err);
        cn_api_close(&api);
    }
    cn_buf_fini(&tail.line);
    return cn_print_outcome(rc, &err);
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA_FOUND(AT(data)),
    {"format", 0, "json|pretty", NULL, "form of what is printed (pretty)", AT(format), 0},
    {"status", 0, "ok|error|canceled", NULL, "only requests that ended so", AT(status), 0},
    {"method", 0, "METHOD", NULL, "only requests with this method", AT(method), 0},
    {"search", 0, "TEXT", NULL, "only lines that hold this text", AT(search), 0},
};

const struct cn_command cn_cmd_tail = {
    .name = "tail",
    .usage = "[WORKER] [OPTIONS]",
    .summary = "requests and messages while they happen",
    .text =
        "Shows what a running server does: each request with its answer, what workers and objects\n"
        "write to the console, and the server's own messages. Of a cluster it shows those of all\n"
        "nodes, each with the name of its node. Ends with the server, or Ctrl-C.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
