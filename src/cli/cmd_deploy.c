/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_deploy.c - `cairn deploy`: what a deployment does to Durable Object classes, and doing
 * it. */
#include <stdio.h>

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/api.h"
#include "cli/args.h"
#include "server/config.h"
#include "server/data.h"
#include "server/deploy.h"
#include "server/deploy_classes.h"
#include "store/store.h"

static void print_plan(const struct cn_plan *plan)
{
    struct cn_buf text = {0};
    cn_plan_print(plan, &text);
    printf("%s", text.size ? cn_buf_text(&text) : "nothing changes\n");
    cn_buf_fini(&text);
}

/* Prints what would be done. 0 if it could be done. */
static int dry_run(const struct cn_deployer *deployer, struct cn_disk *disk, struct cn_err *err)
{
    struct cn_classes classes = {0};
    struct cn_plan plan;
    int rc = disk ? cn_classes_load(&classes, disk, err) : 0;
    if (rc < 0)
        return rc;
    cn_deploy_plan(deployer->projects, deployer->project_count, deployer->args, disk, &classes,
                   &plan);
    print_plan(&plan);
    rc = cn_plan_check(&plan, err);
    cn_plan_fini(&plan);
    cn_classes_fini(&classes);
    return rc;
}

/* The data directory is in use: its server does it, with what we have been allowed. */
static int ask_server(const struct cn_args *args, struct cn_disk *disk, const char *data,
                      struct cn_err *err)
{
    struct cn_api api;
    struct cn_args there = {.data = data};
    struct cn_json *answer = NULL;
    int rc = cn_api_connect(&api, &there, err);
    if (rc == 0)
        rc = cn_deploy_leave_request(args, disk, err);
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
    int rc = cn_deploy_classes(deployer->projects, deployer->project_count, deployer->args, false,
                               data->disk, data->store, &classes, err);
    if (rc == 0)
        cn_classes_fini(&classes);
    return rc;
}

static int bundle_all(struct cn_deployer *deployer, struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < deployer->project_count && rc == 0; i++)
        rc = cn_project_bundle(&deployer->projects[i], &deployer->bundler, NULL, false, NULL, err);
    return rc;
}

static int deploy(const struct cn_args *args, struct cn_deployer *deployer, struct cn_err *err)
{
    int rc = cn_project_setup_log(args->log, err);
    if (rc == 0)
        rc = cn_deployer_init(deployer, args, false, err);
    if (rc == 0)
        rc = cn_deployer_open(deployer, err);
    if (rc == 0)
        rc = bundle_all(deployer, err);
    if (rc < 0)
        return rc;
    const char *path = deployer->projects[0].data;
    struct cn_disk *disk = cn_disk_system_new(path); /* NULL: there is none yet */
    rc = dry_run(deployer, disk, err);
    if (rc == 0 && !args->dry_run) {
        struct cn_data data;
        struct cn_data_options options = {
            .lane_count = 1, .history_ms = cn_project_history_ms(&deployer->projects[0])};
        rc = cn_data_open(&data, path, &options, err);
        if (rc == 0)
            rc = apply(deployer, &data, err);
        else if (rc == CN_ELOCKED)
            rc = ask_server(args, disk, path, err);
        cn_data_close(&data);
    }
    if (disk)
        cn_disk_system_free(disk);
    return rc;
}

int cn_cmd_deploy(const struct cn_args *args)
{
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
