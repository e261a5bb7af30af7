/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_versions.c - `cairn versions`, `deployments`, `rollback`: which versions of a worker a
 * server has, and which of them serve. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/api.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/remote.h"
#include "cli/upload.h"
#include "cli/verb.h"
#include "config/config.h"

#define VERSION_MAX 2 /* of a deployment */

/* --- printing -------------------------------------------------------------------------------- */

static const char *text_of(const struct cn_json *object, const char *name)
{
    const char *text = cn_json_text(object, name);
    return text ? text : "";
}

static const char *annotation(const struct cn_json *item, const char *name)
{
    return text_of(cn_json_find(item, "annotations"), name);
}

static double share_of(const struct cn_json *version)
{
    const struct cn_json *share = cn_json_find(version, "percentage");
    return share && (share->kind == CN_JSON_INT || share->kind == CN_JSON_NUMBER) ? share->number
                                                                                  : 0;
}

/* "10%" of a version in a deployment; empty: none. */
static void print_share(const struct cn_json *deployment, const char *id, char text[32])
{
    const struct cn_json *list = cn_json_find(deployment, "versions");
    text[0] = 0;
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        if (strcmp(text_of(item, "version_id"), id) == 0)
            snprintf(text, 32, "%g%%", share_of(item));
    }
}

static void print_versions(const struct cn_json *items, const struct cn_json *serving)
{
    static const char *const heads[] = {"version", "created", "by", "tag", "message", "serves"};
    struct cn_table table;
    cn_table_init(&table, CN_ARRAY_COUNT(heads));
    for (size_t i = 0; i < CN_ARRAY_COUNT(heads); i++)
        cn_verb_cell(&table, heads[i]);
    for (const struct cn_json *item = items ? items->first : NULL; item; item = item->next) {
        const struct cn_json *metadata = cn_json_find(item, "metadata");
        char share[32];
        print_share(serving, text_of(item, "id"), share);
        cn_verb_cell(&table, text_of(item, "id"));
        cn_verb_cell(&table, text_of(metadata, "created_on"));
        cn_verb_cell(&table, text_of(metadata, "author_email"));
        cn_verb_cell(&table, annotation(item, "workers/tag"));
        cn_verb_cell(&table, annotation(item, "workers/message"));
        cn_verb_cell(&table, share);
    }
    cn_table_print(&table);
}

/* Why a version that should serve does not. */
static void print_failure(const struct cn_json *version)
{
    static const char *const names[] = {"failure", "way_back"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        const char *text = text_of(version, names[i]);
        if (!*text)
            continue;
        printf("          %s", i ? "" : "does not serve: ");
        cn_print_shown(text);
        printf("\n");
    }
}

static void print_deployment(const struct cn_json *deployment)
{
    const struct cn_json *list = cn_json_find(deployment, "versions");
    cn_print_shown(text_of(deployment, "created_on"));
    printf("  by ");
    cn_print_shown(text_of(deployment, "author_email"));
    if (*annotation(deployment, "workers/message"))
        printf("  ");
    cn_print_shown(annotation(deployment, "workers/message"));
    printf("\n");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        printf("  %5g%%  ", share_of(item));
        cn_print_shown(text_of(item, "version_id"));
        printf("\n");
        print_failure(item);
    }
}

static void print_fact(const char *name, const char *value)
{
    printf("%-20s", name);
    cn_print_shown(value);
    printf("\n");
}

/* --- calls ----------------------------------------------------------------------------------- */

/* GET workers/scripts/WORKER/REST */
static int get(struct cn_remote *remote, const char *worker, const char *rest,
               const struct cn_json **result, struct cn_err *err)
{
    char *target = cn_remote_script(worker, rest);
    int rc = cn_remote_ask(remote, "GET", target, result, err);
    cn_free(target);
    return rc < 0 ? cn_remote_context(err, worker) : rc;
}

/* The deployments, newest first, in a tree of the caller's; NULL with an error. */
static struct cn_json *get_deployments(struct cn_remote *remote, const char *worker,
                                       struct cn_err *err)
{
    const struct cn_json *result = NULL;
    if (get(remote, worker, "/deployments", &result, err) < 0)
        return NULL;
    struct cn_json *all = remote->last;
    remote->last = NULL; /* ours from here on */
    return all;
}

static const struct cn_json *newest(const struct cn_json *all)
{
    const struct cn_json *list = cn_json_find(cn_json_find(all, "result"), "deployments");
    return list ? list->first : NULL;
}

static int deploy(struct cn_remote *remote, const char *worker, const struct cn_buf *versions,
                  const struct cn_remote_options *options, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    struct cn_buf body = {0};
    cn_buf_append_str(&body, "{\"strategy\":\"percentage\",\"versions\":[");
    cn_buf_append(&body, versions->data, versions->size);
    cn_buf_append_byte(&body, ']');
    if (options->message) {
        cn_buf_append_str(&body, ",\"annotations\":{\"workers/message\":");
        cn_buf_append_json(&body, options->message, strlen(options->message));
        cn_buf_append_byte(&body, '}');
    }
    cn_buf_append_byte(&body, '}');
    char *target = cn_remote_script(worker, "/deployments");
    int rc = cn_remote_send(remote, "POST", target, &body, &result, err);
    cn_free(target);
    cn_buf_fini(&body);
    if (rc == 0 && options->json && result)
        cn_print_line(result);
    return rc;
}

static void put_version(struct cn_buf *list, const char *id, size_t id_size, double share)
{
    cn_buf_append_str(list, list->size ? ",{\"version_id\":" : "{\"version_id\":");
    cn_buf_append_json(list, id, id_size);
    cn_buf_printf(list, ",\"percentage\":%g}", share);
}

/* --- versions -------------------------------------------------------------------------------- */

static int run_list(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
                    struct cn_err *err)
{
    const struct cn_remote_options *options = args->options;
    const struct cn_json *result = NULL;
    char *worker = rest[0] ? cn_strdup(rest[0]) : cn_remote_worker(options, err);
    struct cn_json *all = worker ? get_deployments(remote, worker, err) : NULL;
    int rc = all ? get(remote, worker, "/versions", &result, err) : err->code;
    const struct cn_json *items = cn_json_find(result, "items");
    if (rc == 0 && options->json) {
        for (const struct cn_json *item = items ? items->first : NULL; item; item = item->next)
            cn_print_line(item);
    } else if (rc == 0) {
        print_versions(items, newest(all));
    }
    cn_json_free(all);
    cn_free(worker);
    return rc;
}

static void print_bindings(const struct cn_json *list)
{
    struct cn_table table;
    if (!list || !list->first)
        return;
    cn_table_init(&table, 3);
    cn_verb_cell(&table, "binding");
    cn_verb_cell(&table, "type");
    cn_verb_cell(&table, "");
    for (const struct cn_json *item = list->first; item; item = item->next) {
        struct cn_buf rest = {0};
        for (const struct cn_json *member = item->first; member; member = member->next) {
            if (strcmp(member->name, "name") == 0 || strcmp(member->name, "type") == 0)
                continue;
            cn_buf_printf(&rest, "%s%s=", rest.size ? " " : "", member->name);
            cn_json_write(&rest, member);
        }
        cn_verb_cell(&table, text_of(item, "name"));
        cn_verb_cell(&table, text_of(item, "type"));
        cn_verb_cell(&table, cn_buf_text(&rest));
        cn_buf_fini(&rest);
    }
    cn_table_print(&table);
}

static int run_view(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
                    struct cn_err *err)
{
    const struct cn_remote_options *options = args->options;
    const struct cn_json *result = NULL;
    char *worker = cn_remote_worker(options, err);
    if (!worker)
        return err->code;
    struct cn_buf target = {0};
    cn_buf_append_str(&target, "/versions/");
    cn_api_append_param(&target, NULL, rest[0]);
    int rc = get(remote, worker, cn_buf_text(&target), &result, err);
    cn_buf_fini(&target);
    cn_free(worker);
    if (rc < 0)
        return rc;
    if (options->json) {
        cn_print_line(result);
        return 0;
    }
    const struct cn_json *metadata = cn_json_find(result, "metadata");
    const struct cn_json *resources = cn_json_find(result, "resources");
    const struct cn_json *runtime = cn_json_find(resources, "script_runtime");
    print_fact("version", text_of(result, "id"));
    printf("%-20s%" PRId64 "\n", "number", cn_json_int(result, "number"));
    print_fact("created", text_of(metadata, "created_on"));
    print_fact("by", text_of(metadata, "author_email"));
    print_fact("tag", annotation(result, "workers/tag"));
    print_fact("message", annotation(result, "workers/message"));
    print_fact("compatibility date", text_of(runtime, "compatibility_date"));
    print_bindings(cn_json_find(resources, "bindings"));
    return 0;
}

static int run_upload(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
                      struct cn_err *err)
{
    struct cn_upload_options options = *(const struct cn_upload_options *)args->options;
    struct cn_upload upload;
    options.path = rest[0] ? rest[0] : options.remote.config;
    options.only_version = true;
    options.project.env = options.remote.env;
    int rc = cn_upload_prepare(&upload, &options, err);
    if (rc == 0)
        rc = cn_upload_run(&upload, remote, err);
    if (rc == 0 && options.remote.json) {
        cn_print_line(cn_json_find(remote->last, "result"));
    } else if (rc == 0) {
        cn_upload_print_bindings(&upload);
        printf("Uploaded %s\nVersion ID: %s\n`cairn versions deploy %s` makes it serve\n",
               upload.project.config->name, upload.version, upload.version);
    }
    cn_upload_fini(&upload);
    return rc;
}

/* "ID" or "ID@PERCENT"; the percentage is -1 if it is not said. */
static int read_share(const char *text, size_t *id_size, double *share, struct cn_err *err)
{
    const char *at = strchr(text, '@');
    char *end;
    *id_size = at ? (size_t)(at - text) : strlen(text);
    *share = -1;
    if (!at)
        return 0;
    *share = strtod(at + 1, &end);
    if (*end == '%')
        end++;
    if (end == at + 1 || *end || !(*share >= 0 && *share <= 100))
        return cn_err_set(err, CN_EINVALID, "%.100s: a share is a number from 0 to 100", text);
    return 0;
}

/* What is not said is shared by those that do not say. */
static int read_shares(const char *const *rest, struct cn_buf *list, struct cn_err *err)
{
    double shares[VERSION_MAX], left = 100;
    size_t sizes[VERSION_MAX], count = 0, open = 0;
    for (; count < VERSION_MAX && rest[count]; count++) {
        int rc = read_share(rest[count], &sizes[count], &shares[count], err);
        if (rc < 0)
            return rc;
        open += shares[count] < 0;
        left -= shares[count] < 0 ? 0 : shares[count];
    }
    if (left < -1e-6 || (!open && fabs(left) > 1e-6))
        return cn_err_set(err, CN_EINVALID, "the shares of the versions must be 100 %% together");
    for (size_t i = 0; i < count; i++)
        put_version(list, rest[i], sizes[i], shares[i] < 0 ? left / (double)open : shares[i]);
    return 0;
}

static int run_deploy(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
                      struct cn_err *err)
{
    const struct cn_remote_options *options = args->options;
    struct cn_buf list = {0};
    int rc = read_shares(rest, &list, err);
    char *worker = rc == 0 ? cn_remote_worker(options, err) : NULL;
    if (rc == 0 && !worker)
        rc = err->code;
    if (rc == 0)
        rc = deploy(remote, worker, &list, options, err);
    if (rc == 0 && !options->json)
        printf("Deployed %s\n", worker);
    for (size_t i = 0; rc == 0 && !options->json && i < VERSION_MAX && rest[i]; i++)
        printf("  %s\n", rest[i]);
    cn_free(worker);
    cn_buf_fini(&list);
    return rc;
}

static int run_versions(const struct cn_args *args)
{
    static const struct cn_remote_verb verbs[] = {
        {"list", 0, 1, run_list},
        {"view", 1, 1, run_view},
        {"upload", 0, 1, run_upload},
        {"deploy", 1, VERSION_MAX, run_deploy},
    };
    return cn_remote_main(args, verbs, CN_ARRAY_COUNT(verbs),
                          "versions needs one of: list [WORKER] | view VERSION | upload [PROJECT] "
                          "| deploy VERSION[@PERCENT] [VERSION@PERCENT]; `cairn help versions` "
                          "explains them");
}

/* --- deployments ----------------------------------------------------------------------------- */

static int show_deployments(struct cn_remote *remote, const struct cn_args *args, const char *given,
                            bool all_of_them, struct cn_err *err)
{
    const struct cn_remote_options *options = args->options;
    char *worker = given ? cn_strdup(given) : cn_remote_worker(options, err);
    struct cn_json *all = worker ? get_deployments(remote, worker, err) : NULL;
    cn_free(worker);
    if (!all)
        return err->code;
    for (const struct cn_json *item = newest(all); item; item = all_of_them ? item->next : NULL) {
        if (options->json)
            cn_print_line(item);
        else
            print_deployment(item);
    }
    cn_json_free(all);
    return 0;
}

static int run_deployments_list(struct cn_remote *remote, const struct cn_args *args,
                                const char *const *rest, struct cn_err *err)
{
    return show_deployments(remote, args, rest[0], true, err);
}

static int run_deployments_status(struct cn_remote *remote, const struct cn_args *args,
                                  const char *const *rest, struct cn_err *err)
{
    return show_deployments(remote, args, rest[0], false, err);
}

/* What serves of every worker. */
static int run_deployments_all(struct cn_remote *remote, const struct cn_args *args,
                               const char *const *rest, struct cn_err *err)
{
    const struct cn_remote_options *options = args->options;
    const struct cn_json *result = NULL;
    (void)rest;
    int rc = cn_remote_ask(remote, "GET", "workers/scripts", &result, err);
    struct cn_json *workers = remote->last;
    remote->last = NULL; /* ours from here on */
    if (rc == 0 && !options->json && !result->first)
        printf("nothing is deployed\n");
    for (const struct cn_json *worker = rc == 0 ? result->first : NULL; worker && rc == 0;
         worker = worker->next) {
        if (!options->json) {
            cn_print_shown(text_of(worker, "id"));
            printf("  ");
        }
        rc = show_deployments(remote, args, text_of(worker, "id"), false, err);
    }
    cn_json_free(workers);
    return rc;
}

static int run_deployments(const struct cn_args *args)
{
    static const struct cn_remote_verb verbs[] = {
        {"list", 0, 1, run_deployments_list},
        {"status", 0, 1, run_deployments_status},
        {"all", 0, 0, run_deployments_all},
    };
    const char *all[] = {"all"};
    struct cn_args every = *args;
    if (!args->rest_count) {
        every.rest = all;
        every.rest_count = CN_ARRAY_COUNT(all);
        args = &every;
    }
    return cn_remote_main(
        args, verbs, CN_ARRAY_COUNT(verbs),
        "deployments takes list [WORKER] | status [WORKER], or nothing; `cairn help "
        "deployments` explains them");
}

/* --- rollback -------------------------------------------------------------------------------- */

/* The version that served alone before the one that serves now. */
static const char *find_before(const struct cn_json *all)
{
    const struct cn_json *now = newest(all);
    const char *serves = text_of(
        cn_json_find(now, "versions") ? cn_json_find(now, "versions")->first : NULL, "version_id");
    for (const struct cn_json *item = now ? now->next : NULL; item; item = item->next) {
        const struct cn_json *list = cn_json_find(item, "versions");
        const char *id = list && list->first && !list->first->next
                             ? cn_json_text(list->first, "version_id")
                             : NULL;
        if (id && strcmp(id, serves) != 0)
            return id;
    }
    return NULL;
}

static int roll_back(struct cn_remote *remote, const char *worker, const char *version,
                     const struct cn_remote_options *options, struct cn_err *err)
{
    struct cn_buf list = {0};
    char *question = cn_sprintf("Deploy the version %s of %s to all requests?", version, worker);
    int rc = cn_remote_confirm(options, question, err);
    if (rc == 0) {
        put_version(&list, version, strlen(version), 100);
        rc = deploy(remote, worker, &list, options, err);
    }
    if (rc == 0 && !options->json)
        printf("%s is back at the version %s; data and Durable Objects stay as they are\n", worker,
               version);
    cn_free(question);
    cn_buf_fini(&list);
    return rc;
}

static int run_rollback(const struct cn_args *args)
{
    const struct cn_remote_options *options = args->options;
    struct cn_err err = {0};
    struct cn_remote remote = {.socket_dir = -1};
    char *worker = cn_remote_worker(options, &err);
    int rc = worker ? cn_remote_open(&remote, options, &err) : err.code;
    struct cn_json *all = rc == 0 ? get_deployments(&remote, worker, &err) : NULL;
    if (rc == 0 && !all)
        rc = err.code;
    const char *version = args->rest_count ? args->rest[0] : find_before(all);
    if (rc == 0 && !version)
        rc = cn_err_set(&err, CN_ENOTFOUND, "%s had no other version before this one", worker);
    if (rc == 0)
        rc = roll_back(&remote, worker, version, options, &err);
    cn_json_free(all);
    cn_remote_close(&remote);
    cn_free(worker);
    return cn_print_outcome(rc, &err);
}

/* --- the commands ---------------------------------------------------------------------------- */

#define AT(member) offsetof(struct cn_remote_options, member)
#define UPLOAD_AT(member) offsetof(struct cn_upload_options, member)

static const struct cn_option versions_flags[] = {
    CN_OPTIONS_REMOTE,
    CN_OPTION_MESSAGE(AT(message)),
    {"tag", 0, "TEXT", NULL, "upload: a short name of the version", AT(tag), 0},
    CN_OPTION_VAR(UPLOAD_AT(project.vars), UPLOAD_AT(project.var_count)),
    {"keep-vars", 0, NULL, NULL, "upload: variables that only the server has stay",
     UPLOAD_AT(keep_vars), 0},
    CN_OPTION_JSON(AT(json)),
    CN_OPTION_REMOTE_YES("accepted: nothing is asked"),
};

const struct cn_command cn_cmd_versions = {
    .name = "versions",
    .usage = "list | view VERSION | upload [PROJECT] | deploy VERSION[@PERCENT]... [OPTIONS]",
    .summary = "versions of a worker on a server",
    .text = "  cairn versions list [WORKER]          newest first, and how much each serves\n"
            "  cairn versions view VERSION           what it is bound to\n"
            "  cairn versions upload [PROJECT]       a version that serves nobody yet\n"
            "  cairn versions deploy VERSION         makes it serve all requests\n"
            "  cairn versions deploy A@10 B@90       or a share of them",
    .rest_max = 3,
    .options = versions_flags,
    .option_count = CN_ARRAY_COUNT(versions_flags),
    .options_size = sizeof(struct cn_upload_options),
    .run = run_versions,
};

static const struct cn_option deployments_flags[] = {CN_OPTIONS_REMOTE, CN_OPTION_JSON(AT(json))};

const struct cn_command cn_cmd_deployments = {
    .name = "deployments",
    .usage = "[list [WORKER] | status [WORKER]] [OPTIONS]",
    .summary = "what was deployed to a server, when and by whom",
    .text = "  cairn deployments                   what serves of every worker, and what does not\n"
            "  cairn deployments list [WORKER]     newest first\n"
            "  cairn deployments status [WORKER]   what serves now",
    .rest_max = 2,
    .options = deployments_flags,
    .option_count = CN_ARRAY_COUNT(deployments_flags),
    .options_size = sizeof(struct cn_remote_options),
    .run = run_deployments,
};

static const struct cn_option rollback_flags[] = {
    CN_OPTIONS_REMOTE,
    CN_OPTION_MESSAGE(AT(message)),
    CN_OPTION_JSON(AT(json)),
    CN_OPTION_REMOTE_YES("without asking"),
};

const struct cn_command cn_cmd_rollback = {
    .name = "rollback",
    .usage = "[VERSION] [OPTIONS]",
    .summary = "deploy an earlier version of a worker on a server",
    .text = "Makes a version serve all requests again (default: the one that served before the "
            "current one).\n"
            "Data, Durable Objects and their migrations are not rolled back.",
    .rest_max = 1,
    .options = rollback_flags,
    .option_count = CN_ARRAY_COUNT(rollback_flags),
    .options_size = sizeof(struct cn_remote_options),
    .run = run_rollback,
};
