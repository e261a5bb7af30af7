/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_deploy.c - `cairn deploy`: with --server a project goes to a server elsewhere; without,
 * what a deployment does to Durable Object classes of a data directory here, and doing it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/api.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/upload.h"
#include "config/config.h"
#include "deploy/deploy.h"
#include "project/deploy_classes.h"
#include "server/data.h"
#include "store/store.h"

struct options {
    struct cn_deploy_options deploy;
    const char *log;
    bool dry_run;
    struct cn_remote_options remote; /* of --server; its data directory is not one of those */
    bool keep_vars;
};

static void print_plan(const struct cn_plan *plan)
{
    struct cn_buf text = {0};
    cn_plan_print(plan, &text);
    printf("%s", text.size ? cn_buf_text(&text) : "nothing changes\n");
    cn_buf_fini(&text);
}

static struct cn_deploy_input input_of(const struct cn_deployer *deployer, struct cn_disk *disk)
{
    return (struct cn_deploy_input){deployer->projects, deployer->project_count,
                                    &deployer->options.wishes, disk, NULL};
}

/* Prints what would be done. 0 if it could be done. */
static int dry_run(const struct cn_deployer *deployer, struct cn_disk *disk, struct cn_err *err)
{
    struct cn_classes classes = {0};
    struct cn_plan plan;
    int rc = disk ? cn_classes_load(&classes, disk, err) : 0;
    if (rc < 0)
        return rc;
    struct cn_deploy_input input = input_of(deployer, disk);
    cn_deploy_plan(&input, &classes, &plan);
    print_plan(&plan);
    rc = cn_plan_check(&plan, err);
    cn_plan_fini(&plan);
    cn_classes_fini(&classes);
    return rc;
}

/* The data directory is in use: its server does it, with what we have been allowed. */
static int ask_server(const struct cn_deploy_wishes *wishes, struct cn_disk *disk, const char *data,
                      struct cn_err *err)
{
    struct cn_api api;
    struct cn_json *answer = NULL;
    int rc = cn_api_connect(&api, data, err);
    if (rc == 0)
        rc = cn_deploy_leave_request(wishes, disk, err);
    if (rc == 0)
        rc = cn_api_call(&api, "POST", "/api/deploy", NULL, &answer, err);
    if (rc == 0)
        printf("the server has deployed it\n");
    else
        cn_err_context(err, "the server that uses %s", data);
    cn_json_free(answer);
    cn_api_close(&api);
    return rc;
}

static int apply(const struct cn_deployer *deployer, struct cn_data *data, struct cn_err *err)
{
    struct cn_classes classes;
    struct cn_buf pending = {0};
    struct cn_deploy_input input = input_of(deployer, data->disk);
    int rc = cn_deploy_classes(&input, false, data->shards, &classes, &pending, err);
    if (rc == 0) {
        cn_classes_fini(&classes);
        rc = cn_deploy_classes_commit(data->disk, NULL, &pending, err);
    }
    cn_buf_fini(&pending);
    return rc;
}

static int bundle_all(struct cn_deployer *deployer, struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < deployer->project_count && rc == 0; i++)
        rc = cn_project_bundle(&deployer->projects[i], &deployer->bundler, NULL, false, NULL, err);
    for (size_t i = 0; i < deployer->project_count && rc == 0; i++)
        rc = cn_project_load_modules(&deployer->projects[i], err);
    return rc;
}

static int deploy(const struct cn_args *args, struct cn_deployer *deployer, struct cn_err *err)
{
    const struct options *given = args->options;
    struct cn_deploy_options asked = given->deploy;
    asked.paths = args->rest;
    asked.path_count = args->rest_count;
    int rc = cn_project_setup_log(given->log, err);
    if (rc == 0)
        rc = cn_deployer_init(deployer, &asked, err);
    if (rc == 0)
        rc = cn_deployer_open(deployer, err);
    if (rc == 0)
        rc = bundle_all(deployer, err);
    if (rc < 0)
        return rc;
    const char *path = deployer->projects[0].data;
    struct cn_disk *disk = cn_disk_system_new(path); /* NULL: there is none yet */
    rc = dry_run(deployer, disk, err);
    if (rc == 0 && !given->dry_run) {
        struct cn_data data;
        struct cn_data_options options = {
            .lane_count = 1, .history_ms = cn_project_history_ms(&deployer->projects[0])};
        rc = cn_data_open(&data, path, &options, err);
        if (rc == 0)
            rc = apply(deployer, &data, err);
        else if (rc == CN_ELOCKED)
            rc = ask_server(&asked.wishes, disk, path, err);
        cn_data_close(&data);
    }
    if (disk)
        cn_disk_system_free(disk);
    return rc;
}

/* --- to a server elsewhere ---------------------------------------------------------------------
 */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_size(const struct cn_upload *upload)
{
    char text[32];
    cn_print_size(cn_upload_size(upload), text);
    printf("%s: %s of modules", upload->project.config->name, text);
    if (upload->assets)
        printf(", %zu new files of assets", upload->new_assets);
    printf("\n");
}

static int send_project(struct cn_upload *upload, const struct options *given, struct cn_err *err)
{
    struct cn_remote remote;
    const struct cn_remote_options options = upload->options->remote;
    double began = seconds();
    if (given->dry_run) {
        int rc = cn_upload_run(upload, NULL, err);
        if (rc == 0) {
            print_size(upload);
            cn_upload_print_bindings(upload);
            printf("--dry-run: nothing was sent\n");
        }
        return rc;
    }
    int rc = cn_remote_open(&remote, &options, err);
    if (rc < 0)
        return rc;
    rc = cn_upload_run(upload, &remote, err);
    if (rc == 0) {
        print_size(upload);
        cn_upload_print_bindings(upload);
        printf("Deployed %s to %s (%.2f sec)\n", upload->project.config->name, remote.url,
               seconds() - began);
        rc = cn_upload_triggers(upload, err);
        if (rc < 0)
            cn_err_context(err,
                           "the version %s serves, but not everything that belongs to it "
                           "could be set",
                           upload->version);
    }
    if (rc == 0)
        printf("Current Version ID: %s\n", upload->version);
    cn_remote_close(&remote);
    return rc;
}

static int run_remote(const struct cn_args *args, const struct options *given)
{
    struct cn_upload_options options = {.remote = given->remote,
                                        .project = given->deploy.project,
                                        .path = args->rest_count ? args->rest[0] : NULL,
                                        .keep_vars = given->keep_vars};
    struct cn_upload upload = {0};
    struct cn_err err = {0};
    if (args->rest_count > 1) {
        fprintf(stderr, "cairn: one project at a time goes to a server elsewhere\n");
        return 2;
    }
    options.project.data = NULL; /* --data is where a server here keeps its own */
    int rc = cn_project_setup_log(given->log, &err);
    if (rc == 0)
        rc = cn_upload_prepare(&upload, &options, &err);
    if (rc == 0)
        rc = send_project(&upload, given, &err);
    cn_upload_fini(&upload);
    return cn_print_outcome(rc, &err);
}

static int run(const struct cn_args *args)
{
    const struct options *given = args->options;
    if (cn_remote_is_meant(&given->remote))
        return run_remote(args, given);
    struct cn_err err = {0};
    struct cn_deployer deployer = {0};
    int rc = deploy(args, &deployer, &err);
    if (rc == CN_EDENIED)
        fprintf(stderr, "cairn: nothing was changed: the deployment is refused\n");
    else if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    cn_deployer_fini(&deployer);
    return rc < 0 ? 1 : 0;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(deploy.project.data)),
    CN_OPTION_ENV(AT(deploy.project.env)),
    CN_OPTION_VAR(AT(deploy.project.vars), AT(deploy.project.var_count)),
    CN_OPTION_LOG(AT(log)),
    CN_OPTION_SERVER(AT(remote.server)),
    CN_OPTION_WORKER(AT(remote.name)),
    CN_OPTION_MESSAGE(AT(remote.message)),
    {"tag", 0, "TEXT", NULL, "with --server: a short name of the version", AT(remote.tag), 0},
    {"keep-vars", 0, NULL, NULL, "with --server: variables that only the server has stay",
     AT(keep_vars), 0},
    {"dry-run", 0, NULL, NULL, "only say what would be done", AT(dry_run), 0},
    CN_OPTION_ALLOW_DELETE(AT(deploy.wishes.allow_delete)),
    CN_OPTION_RECOVER(AT(deploy.wishes.recover)),
    CN_OPTION_ALLOW_MISSING(AT(deploy.project.allow_missing)),
};

const struct cn_command cn_cmd_deploy = {
    .name = "deploy",
    .usage = "[PROJECT...] [OPTIONS]",
    .summary = "deploy a project to a server, or changes of classes to a data directory",
    .text = "With --server: bundles the project here and deploys it to a server elsewhere, as "
            "wrangler would\n"
            "(`cairn login` keeps the server's token).\n\n"
            "Without: bundles the projects, compares their Durable Object classes (migrations, "
            "exports) "
            "with what\n"
            "the data directory has, prints what is created, renamed, transferred, deleted and "
            "what is\n"
            "refused, and applies it. With --dry-run it only prints. If a server uses the data\n"
            "directory, it reloads. Exit code 0: done, 1: refused or failed.",
    .rest_max = 64,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
