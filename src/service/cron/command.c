/* SPDX-License-Identifier: Apache-2.0 */
/* service/cron/command.c - cairn crons ...: the cron triggers of a running server. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/args.h"
#include "cli/print.h"
#include "service/cron/cron.h"

struct options {
    const char *data;
    bool json;
};

static void add_text(struct cn_table *table, const char *text)
{
    cn_table_add(table, text ? text : "", text ? strlen(text) : 0);
}

static void add_time(struct cn_table *table, const struct cn_json *object, const char *name)
{
    const struct cn_json *time = cn_json_find(object, name);
    char text[32] = "-";
    if (time && time->kind == CN_JSON_INT)
        cn_print_time(time->integer, text);
    add_text(table, text);
}

static int call(struct cn_api *api, const char *method, const struct cn_args *args,
                const char *suffix, const char *body, struct cn_json **answer, struct cn_err *err)
{
    struct cn_buf target = {0};
    cn_buf_append_str(&target, "/api/crons");
    if (args->rest_count > 1) {
        cn_buf_append_byte(&target, '/');
        cn_api_append_param(&target, NULL, args->rest[1]);
    }
    cn_buf_append_str(&target, suffix);
    int rc = cn_api_call(api, method, cn_buf_text(&target), body, answer, err);
    cn_buf_fini(&target);
    return rc;
}

static void print_schedules(const struct cn_json *list)
{
    static const char *const heading[] = {"WORKER", "CRON", "NEXT", "LAST", "OUTCOME"};
    struct cn_table table;
    cn_table_init(&table, CN_ARRAY_COUNT(heading));
    for (size_t i = 0; i < CN_ARRAY_COUNT(heading); i++)
        add_text(&table, heading[i]);
    for (const struct cn_json *each = list->first; each; each = each->next) {
        const struct cn_json *last = cn_json_find(each, "last");
        add_text(&table, cn_json_text(each, "worker"));
        add_text(&table, cn_json_text(each, "cron"));
        add_time(&table, each, "next");
        add_time(&table, last, "started");
        add_text(&table, cn_json_text(last, "outcome"));
    }
    cn_table_print(&table);
}

static void print_runs(const struct cn_json *list)
{
    static const char *const heading[] = {"STARTED", "CRON", "BY", "MS", "OUTCOME", "MESSAGE"};
    struct cn_table table;
    cn_table_init(&table, CN_ARRAY_COUNT(heading));
    for (size_t i = 0; i < CN_ARRAY_COUNT(heading); i++)
        add_text(&table, heading[i]);
    for (const struct cn_json *each = list->first; each; each = each->next) {
        const struct cn_json *ended = cn_json_find(each, "ended");
        const struct cn_json *manual = cn_json_find(each, "manual");
        const char *outcome = cn_json_text(each, "outcome");
        char ms[24] = "-";
        if (ended && ended->kind == CN_JSON_INT)
            snprintf(ms, sizeof(ms), "%" PRId64, ended->integer - cn_json_int(each, "started"));
        add_time(&table, each, "started");
        add_text(&table, cn_json_text(each, "cron"));
        add_text(&table, manual && manual->boolean ? "hand" : "clock");
        add_text(&table, ms);
        add_text(&table, outcome ? outcome : "running");
        add_text(&table, cn_json_text(each, "message"));
    }
    cn_table_print(&table);
}

/* Prints the list `name` of a result: line by line, or by `print`. */
static void print_list(const struct options *options, const struct cn_json *answer,
                       const char *name, void (*print)(const struct cn_json *list))
{
    const struct cn_json *list = cn_json_find(cn_json_find(answer, "result"), name);
    for (const struct cn_json *each = options->json ? list->first : NULL; each; each = each->next)
        cn_print_line(each);
    if (!options->json)
        print(list);
}

/* 1: the run did not end well. */
static int run_trigger(struct cn_api *api, const struct cn_args *args, struct cn_json **answer,
                       struct cn_err *err)
{
    const struct options *options = args->options;
    struct cn_buf body = {0};
    cn_buf_append_byte(&body, '{');
    if (args->rest_count > 2) {
        cn_buf_append_str(&body, "\"cron\":");
        cn_buf_append_json(&body, args->rest[2], strlen(args->rest[2]));
    }
    cn_buf_append_byte(&body, '}');
    int rc = call(api, "POST", args, "/trigger", cn_buf_text(&body), answer, err);
    cn_buf_fini(&body);
    if (rc < 0)
        return rc;
    const struct cn_json *run = cn_json_find(*answer, "result");
    const char *outcome = cn_json_text(run, "outcome"), *error = cn_json_text(run, "error");
    if (options->json)
        cn_print_line(run);
    else
        printf("%s (%s): %s after %" PRId64 " ms%s%s\n", args->rest[1], cn_json_text(run, "cron"),
               outcome, cn_json_int(run, "duration"), error ? ": " : "", error ? error : "");
    return strcmp(outcome, "ok") != 0;
}

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    const char *verb = args->rest_count ? args->rest[0] : "";
    bool list = strcmp(verb, "list") == 0 && args->rest_count == 1;
    bool runs = strcmp(verb, "runs") == 0 && args->rest_count == 2;
    bool trigger = strcmp(verb, "trigger") == 0 && args->rest_count >= 2;
    if (!list && !runs && !trigger) {
        fprintf(stderr, "cairn: crons needs one of: list | runs WORKER | trigger WORKER [CRON]; "
                        "`cairn help crons` explains them\n");
        return 2;
    }
    struct cn_err err = {0};
    struct cn_api api;
    struct cn_json *answer = NULL;
    int rc = cn_api_connect(&api, options->data, &err);
    if (rc == 0) {
        rc = trigger ? run_trigger(&api, args, &answer, &err)
                     : call(&api, "GET", args, "", NULL, &answer, &err);
        if (rc == 0 && list)
            print_list(options, answer, "schedules", print_schedules);
        else if (rc == 0 && runs)
            print_list(options, answer, "runs", print_runs);
        cn_api_close(&api);
    }
    cn_json_free(answer);
    if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    return rc == 0 ? 0 : 1;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA_FOUND(AT(data)),
    CN_OPTION_JSON(AT(json)),
};

const struct cn_command cn_cron_command = {
    .name = "crons",
    .usage = "list|runs|trigger ... [OPTIONS]",
    .summary = "list cron triggers and their runs, run one now",
    .text =
        "Asks a running server about the cron triggers of its workers.\n\n"
        "  cairn crons list                    expressions with their next and last runs\n"
        "  cairn crons runs WORKER             the last 100 runs\n"
        "  cairn crons trigger WORKER [CRON]   runs scheduled() now, for its first expression or\n"
        "                                      CRON, and waits. Exit code 0: it ended well, 1: not",
    .rest_max = 3,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
