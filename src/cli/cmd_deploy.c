/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_deploy.c - `cairn deploy`: what a deployment does to Durable Object classes, and doing
 * it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/config.h"
#include "cli/data.h"
#include "cli/deploy.h"
#include "cli/deploy_classes.h"
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

static bool is_server(long pid)
{
    char path[64], line[4096];
    snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t size = fread(line, 1, sizeof(line) - 1, file);
    fclose(file);
    line[size] = 0;
    const char *command = line + strlen(line) + 1; /* words end in NUL */
    return command < line + size && (strcmp(command, "serve") == 0 || strcmp(command, "dev") == 0);
}

/* The server that holds the lock of the data directory, or 0. */
static long find_server(const char *data)
{
    char *path = cn_sprintf("%s/LOCK", data), line[256];
    struct stat info;
    long found = 0;
    FILE *locks = stat(path, &info) == 0 ? fopen("/proc/locks", "r") : NULL;
    while (locks && !found && fgets(line, sizeof(line), locks)) {
        long pid;
        unsigned major_no, minor_no;
        unsigned long inode;
        if (sscanf(line, "%*d: FLOCK %*s %*s %ld %x:%x:%lu", &pid, &major_no, &minor_no, &inode) ==
                4 &&
            inode == info.st_ino && is_server(pid))
            found = pid;
    }
    if (locks)
        fclose(locks);
    cn_free(path);
    return found;
}

/* The data directory is in use: its server does it. */
static int ask_server(const struct cn_args *args, struct cn_disk *disk, const char *data,
                      struct cn_err *err)
{
    long pid = find_server(data);
    if (!pid)
        return cn_err_set(
            err, CN_ELOCKED,
            "%s is in use, and by no server that can be found; if there is one, send it SIGHUP",
            data);
    int rc = cn_deploy_leave_request(args, disk, err);
    if (rc == 0 && kill((pid_t)pid, SIGHUP) < 0)
        rc = cn_err_errno(err, errno, "cannot ask the server (process %ld) to reload", pid);
    if (rc == 0)
        printf("asked the server (process %ld) to reload; its log says what came of it\n", pid);
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
