/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/command.c - cairn queues ...: queues, whether a server runs or not (cli/api.h).
 * Verbs that wrangler has are wrangler's; peek, send and redrive are ours. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/resource.h"
#include "cli/verb.h"
#include "config/config.h"
#include "service/queue/config.h"
#include "service/queue/queue.h"

struct options {
    struct cn_verb_options common; /* first: verb.c reads it */
    const char *limit, *to, *content_type, *delay, *server;
    bool ignored; /* wrangler's, without meaning here */
};

static const struct options *given(const struct cn_verb_run *cli)
{
    return cli->args->options;
}

#define REDRIVE_STEP 1000 /* messages of one call */

/* --- looking --------------------------------------------------------------------------------- */

static int add_queue(void *data, const struct cn_json *entry, struct cn_err *err)
{
    (void)err;
    struct cn_table *table = data;
    const struct cn_json *paused = cn_json_find(entry, "paused");
    const struct cn_json *consumers = cn_json_find(entry, "consumers");
    cn_verb_cell(table, cn_json_text(entry, "name"));
    cn_table_add_json(table, cn_json_find(entry, "backlog"));
    cn_verb_size_cell(table, cn_json_int(entry, "bytes"));
    cn_verb_time_cell(table, entry, "oldest");
    cn_verb_cell(table, paused && paused->boolean ? "paused" : "delivering");
    struct cn_buf names = {0};
    for (const struct cn_json *each = consumers ? consumers->first : NULL; each; each = each->next)
        cn_buf_printf(&names, "%s%s", names.size ? "," : "", cn_json_text(each, "worker"));
    cn_table_add(table, (char *)names.data, names.size);
    cn_buf_fini(&names);
    cn_verb_cell(table, cn_json_text(entry, "deadLetterQueue"));
    return 0;
}

static int run_list(struct cn_verb_run *cli, struct cn_err *err)
{
    static const char *const heading[] = {"QUEUE",    "BACKLOG",   "SIZE",        "OLDEST",
                                          "DELIVERY", "CONSUMERS", "DEAD LETTERS"};
    struct cn_table table;
    cn_verb_target(cli, "/api/queues", NULL);
    if (cli->common->json)
        return cn_verb_list(cli, "queues", cn_verb_print, NULL, err);
    cn_table_init(&table, CN_ARRAY_COUNT(heading));
    for (size_t i = 0; i < CN_ARRAY_COUNT(heading); i++)
        cn_verb_cell(&table, heading[i]);
    int rc = cn_verb_list(cli, "queues", add_queue, &table, err);
    cn_table_print(&table);
    return rc;
}

/* Prints settings and backlog, which the last answer has. */
static int print_info(struct cn_verb_run *cli)
{
    const struct cn_json *result = cn_json_find(cli->answer, "result");
    const struct cn_json *settings = cn_json_find(result, "settings");
    const struct cn_json *paused = cn_json_find(settings, "delivery_paused");
    char size[32];
    if (cli->common->json) {
        cn_print_line(result);
        return 0;
    }
    cn_print_size((uint64_t)cn_json_int(result, "backlog_bytes"), size);
    printf("queue      %s\n", cn_json_text(result, "queue_name"));
    printf("backlog    %" PRId64 " messages, %s\n", cn_json_int(result, "backlog_count"), size);
    printf("leased     %" PRId64 "\n", cn_json_int(result, "leased_count"));
    printf("dropped    %" PRId64 "\n", cn_json_int(result, "dropped_count"));
    printf("delivery   %s\n", paused && paused->boolean ? "paused" : "on");
    printf("retention  %" PRId64 " s\n", cn_json_int(settings, "message_retention_period"));
    return 0;
}

static int run_info(struct cn_verb_run *cli, struct cn_err *err)
{
    cn_verb_target(cli, "/api/queues", cli->rest[0], NULL);
    int rc = cn_verb_call(cli, "GET", err);
    return rc < 0 ? rc : print_info(cli);
}

/* How many with --limit; `fallback` without. */
static int read_limit(const struct options *options, uint64_t fallback, uint64_t *limit,
                      struct cn_err *err)
{
    char *end = NULL;
    *limit = options->limit ? strtoull(options->limit, &end, 10) : fallback;
    return options->limit && (*end || !*limit || options->limit[0] == '-')
               ? cn_err_set(err, CN_EINVALID, "--limit must be a number from 1 on, not \"%.40s\"",
                            options->limit)
               : 0;
}

static void print_message(const struct cn_json *message)
{
    char time[32];
    struct cn_buf body = {0};
    cn_print_time(cn_json_int(message, "timestamp"), time);
    cn_json_write(&body, cn_json_find(message, "body"));
    printf("%s  %s  %" PRId64 "  %-5s", cn_json_text(message, "id"), time,
           cn_json_int(message, "attempts"), cn_json_text(message, "contentType"));
    if (cn_json_int(message, "due")) {
        cn_print_time(cn_json_int(message, "due"), time);
        printf("  due %s", time);
    }
    printf("  %s\n", cn_buf_text(&body));
    cn_buf_fini(&body);
}

static int run_peek(struct cn_verb_run *cli, struct cn_err *err)
{
    uint64_t limit, count = 0;
    char *cursor = NULL;
    int rc = read_limit(given(cli), 10, &limit, err);
    while (rc == 0 && count < limit) {
        char page[16];
        snprintf(page, sizeof(page), "%d", (int)(limit - count < 100 ? limit - count : 100));
        cn_verb_target(cli, "/api/queues", cli->rest[0], "messages", NULL);
        cn_verb_param(cli, "limit", page);
        cn_verb_param(cli, "cursor", cursor);
        rc = cn_verb_call(cli, "GET", err);
        const struct cn_json *messages = cn_json_find(cli->answer, "messages");
        for (const struct cn_json *each = messages ? messages->first : NULL; each;
             each = each->next, count++) {
            if (cli->common->json)
                cn_print_line(each);
            else
                print_message(each);
        }
        cn_free(cursor);
        cursor = NULL;
        const char *next = cn_json_text(cli->answer, "cursor");
        if (!next)
            break;
        cursor = cn_strdup(next);
    }
    cn_free(cursor);
    return rc;
}

/* --- changing -------------------------------------------------------------------------------- */

static int set_paused(struct cn_verb_run *cli, bool paused, struct cn_err *err)
{
    cn_verb_target(cli, "/api/queues", cli->rest[0], NULL);
    cn_buf_printf(&cli->body, "{\"settings\":{\"delivery_paused\":%s}}", paused ? "true" : "false");
    int rc = cn_verb_call(cli, "PATCH", err);
    return rc < 0 ? rc : print_info(cli);
}

static int run_pause(struct cn_verb_run *cli, struct cn_err *err)
{
    return set_paused(cli, true, err);
}

static int run_resume(struct cn_verb_run *cli, struct cn_err *err)
{
    return set_paused(cli, false, err);
}

static int run_purge(struct cn_verb_run *cli, struct cn_err *err)
{
    char *question = cn_sprintf("Delete every message of %s?", cli->rest[0]);
    int rc = cn_verb_confirm(cli, question, err);
    cn_free(question);
    if (rc < 0)
        return rc;
    cn_verb_target(cli, "/api/queues", cli->rest[0], "purge", NULL);
    rc = cn_verb_call(cli, "POST", err);
    return rc < 0 ? rc : print_info(cli);
}

/* BODY is JSON if it can be read so, else a text; --content-type decides. */
static int run_send(struct cn_verb_run *cli, struct cn_err *err)
{
    const char *type = given(cli)->content_type, *text = cli->rest[1];
    struct cn_err bad = {0};
    const char *delay = given(cli)->delay;
    if (delay && (!*delay || strspn(delay, "0123456789") != strlen(delay) || strlen(delay) > 9))
        return cn_err_set(err, CN_EINVALID, "--delay must be a number of seconds, not \"%.40s\"",
                          delay);
    if (type && strcmp(type, "json") != 0 && strcmp(type, "text") != 0)
        return cn_err_set(err, CN_EINVALID, "--content-type must be json or text");
    struct cn_json *json =
        type && strcmp(type, "text") == 0 ? NULL : cn_json_parse(text, strlen(text), &bad);
    if (!json && type && strcmp(type, "json") == 0)
        return cn_err_set(err, CN_EINVALID, "the body is no JSON: %s", bad.text);
    cn_verb_target(cli, "/api/queues", cli->rest[0], "messages", NULL);
    cn_buf_printf(&cli->body, "{\"content_type\":\"%s\",\"body\":", json ? "json" : "text");
    if (json)
        cn_json_write(&cli->body, json);
    else
        cn_buf_append_json(&cli->body, text, strlen(text));
    if (delay)
        cn_buf_printf(&cli->body, ",\"delay_seconds\":%ld", strtol(delay, NULL, 10));
    cn_buf_append_byte(&cli->body, '}');
    cn_json_free(json);
    int rc = cn_verb_call(cli, "POST", err);
    if (rc == 0 && cli->common->json)
        cn_print_line(cn_json_find(cli->answer, "result"));
    else if (rc == 0)
        puts("sent");
    return rc;
}

/* --- dead letters ---------------------------------------------------------------------------- */

/* The one queue of the project that has this one for its dead letters, or NULL. A server knows
 * better; this is for a directory without one. */
static const char *source_of(struct cn_verb_run *cli)
{
    const struct cn_config *config = cli->project.config;
    const char *found = NULL;
    const struct cn_queue_entries *queues = config ? cn_queue_entries(config) : NULL;
    for (size_t i = 0; queues && i < queues->consumers.count; i++) {
        const struct cn_config_consumer *consumer = &queues->consumers.items[i];
        if (!consumer->dead_letter_queue || strcmp(consumer->dead_letter_queue, cli->rest[0]) != 0)
            continue;
        if (found)
            return NULL;
        found = consumer->queue;
    }
    return found;
}

static int run_redrive(struct cn_verb_run *cli, struct cn_err *err)
{
    const char *to = given(cli)->to ? given(cli)->to : cli->api.online ? NULL : source_of(cli);
    uint64_t limit, moved = 0, count;
    struct cn_progress progress;
    int rc = read_limit(given(cli), UINT64_MAX, &limit, err);
    if (rc == 0) {
        /* No more than there are now: what fails again waits for the next time. */
        cn_verb_target(cli, "/api/queues", cli->rest[0], NULL);
        rc = cn_verb_call(cli, "GET", err);
    }
    if (rc < 0)
        return rc;
    uint64_t there = (uint64_t)cn_json_int(cn_json_find(cli->answer, "result"), "backlog_count");
    limit = there < limit ? there : limit;
    char *target = NULL;
    cn_progress_begin(&progress, "moving", limit, false);
    do {
        uint64_t step = limit - moved < REDRIVE_STEP ? limit - moved : REDRIVE_STEP;
        cn_verb_target(cli, "/api/queues", cli->rest[0], "redrive", NULL);
        cn_buf_printf(&cli->body, "{\"limit\":%" PRIu64, step ? step : 1);
        if (to) {
            cn_buf_append_str(&cli->body, ",\"to\":");
            cn_buf_append_json(&cli->body, to, strlen(to));
        }
        cn_buf_append_byte(&cli->body, '}');
        rc = cn_verb_call(cli, "POST", err);
        count = rc == 0 ? (uint64_t)cn_json_int(cli->answer, "moved") : 0;
        const char *where = cn_json_text(cli->answer, "to");
        if (!target && where)
            target = cn_strdup(where);
        moved += count;
        cn_progress_add(&progress, count);
    } while (rc == 0 && count > 0 && moved < limit);
    cn_progress_end(&progress);
    if (rc == 0 && cli->common->json)
        printf("{\"moved\":%" PRIu64 "}\n", moved);
    else if (rc == 0)
        printf("moved %" PRIu64 " messages to %s\n", moved, target ? target : "nowhere");
    else if (moved)
        cn_err_context(err, "after %" PRIu64 " messages", moved);
    cn_free(target);
    return rc;
}

/* --- the command ----------------------------------------------------------------------------- */

/* create and delete, and list of a server elsewhere; -1: another verb. */
static int run_resource(const struct cn_args *args)
{
    const struct options *options = args->options;
    const char *data = options->common.project.data, *verb = args->rest[0];
    struct cn_remote_options remote = {.server = options->server,
                                       .data = options->server ? data : cn_args_data(data),
                                       .json = options->common.json,
                                       .yes = options->common.force};
    if (args->rest_count == 2 && (strcmp(verb, "create") == 0 || strcmp(verb, "delete") == 0))
        return cn_resource_main(&remote, "queue", verb, args->rest[1]);
    if (args->rest_count == 1 && strcmp(verb, "list") == 0 && options->server)
        return cn_resource_main(&remote, "queue", verb, NULL);
    return -1;
}

static int run(const struct cn_args *args)
{
    int status = args->rest_count ? run_resource(args) : -1;
    if (status >= 0)
        return status;
    static const struct cn_verb verbs[] = {
        {NULL, "list", 0, 0, false, run_list},
        {NULL, "info", 1, 1, false, run_info},
        {NULL, "peek", 1, 1, false, run_peek},
        {NULL, "send", 2, 2, true, run_send},
        {NULL, "pause-delivery", 1, 1, true, run_pause},
        {NULL, "resume-delivery", 1, 1, true, run_resume},
        {NULL, "purge", 1, 1, true, run_purge},
        {NULL, "redrive", 1, 1, true, run_redrive},
    };
    return cn_verb_main(args, verbs, CN_ARRAY_COUNT(verbs),
                        "queues needs one of: list | create QUEUE | delete QUEUE | info QUEUE | "
                        "peek QUEUE | send QUEUE BODY | "
                        "pause-delivery QUEUE | resume-delivery QUEUE | purge QUEUE | redrive "
                        "QUEUE; `cairn help queues` explains them");
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(common.project.data)),
    CN_OPTION_ENV(AT(common.project.env)),
    CN_OPTION_ALLOW_MISSING(AT(common.project.allow_missing)),
    {"limit", 0, "N", NULL, "peek, redrive: how many messages (10; all)", AT(limit), 0},
    {"to", 0, "QUEUE", NULL, "redrive: where to, if not where they came from", AT(to), 0},
    {"content-type", 0, "json|text", NULL, "send: what the body is", AT(content_type), 0},
    {"delay", 0, "S", NULL, "send: seconds before it is delivered", AT(delay), 0},
    CN_OPTION_SERVER(AT(server)),
    CN_OPTION_FORCE(AT(common.force)),
    CN_OPTION_JSON(AT(common.json)),
    CN_OPTION_CONFIG(AT(common.config)),
    CN_OPTION_LOCAL(AT(ignored)),
    CN_OPTION_REMOTE(AT(ignored)),
};

const struct cn_command cn_queue_command = {
    .name = "queues",
    .usage = "list|create|delete|info|peek|send|purge|redrive|... [OPTIONS]",
    .summary = "list queues, look at messages, pause, purge, send dead letters back",
    .text = "Works on a data directory, also while a server uses it.\n\n"
            "  cairn queues list                   backlog, oldest message, consumers\n"
            "  cairn queues create QUEUE           for workers that are deployed to a server\n"
            "  cairn queues delete QUEUE\n"
            "  cairn queues info QUEUE             one of them\n"
            "  cairn queues peek QUEUE             the next messages, without taking them\n"
            "  cairn queues send QUEUE BODY        sends JSON, or a text if it is none\n"
            "  cairn queues pause-delivery QUEUE   consumers get nothing until resume-delivery\n"
            "  cairn queues resume-delivery QUEUE\n"
            "  cairn queues purge QUEUE            deletes every message\n"
            "  cairn queues redrive QUEUE          moves the messages of a dead letter queue back "
            "where\n"
            "                                      they came from, or --to another queue\n\n"
            "Exit code 0: done, 1: failed, 2: wrong command line.",
    .rest_max = 3,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
