/* SPDX-License-Identifier: Apache-2.0 */
/* cairn check: is everything in a data directory what was written? Exit code 0: clean; 1: damaged;
 * 3: it could not be checked (in use, of a newer version, not a data directory). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analytics/points_scan.h"
#include "base/assert.h"
#include "base/disk.h"
#include "base/err.h"
#include "cli/args.h"
#include "config/adminconf.h"
#include "fleet/backup_manifest.h"
#include "fleet/cluster_restore.h"
#include "object/moved.h"
#include "object/secret.h"
#include "project/classes.h"
#include "server/offline.h"
#include "server/data.h"
#include "store/check.h"
#include "v4/depot.h"
#include "v4/tokens.h"

struct options {
    const char *data;
};

static void print_problem(void *data, const char *text)
{
    (void)data;
    printf("%s\n", text);
}

static void found(struct cn_check_report *report, const char *text)
{
    report->problem_count++;
    print_problem(NULL, text);
}

static void on_points(void *data, const char *path, uint64_t holes)
{
    char text[640];
    snprintf(text, sizeof(text), CN_POINTS_DIR "/%s: %" PRIu64 " damaged blocks", path, holes);
    found(data, text);
}

static void on_deployed(void *data, const char *text)
{
    found(data, text);
}

/* What is not the store's: keys, the table of classes, data points, what was deployed, tokens. */
static void check_others(struct cn_disk *disk, const char *path, struct cn_check_report *report)
{
    struct cn_err err = {0};
    struct cn_classes classes;
    struct cn_tokens *tokens;
    struct cn_moved *moved;
    if (cn_secret_check(disk, &err) < 0)
        found(report, err.text);
    if (cn_moved_load(disk, &moved, &err) < 0)
        found(report, err.text);
    else
        cn_moved_free(moved);
    if (cn_classes_load(&classes, disk, &err) < 0)
        found(report, err.text);
    else
        cn_classes_fini(&classes);
    if (cn_adminconf_check(path, &err) < 0)
        found(report, err.text);
    cn_depot_check(disk, on_deployed, report);
    if (cn_tokens_open(disk, &tokens, &err) < 0)
        found(report, err.text);
    else
        cn_tokens_close(tokens);
    if (cn_points_check(disk, on_points, report, &err) < 0)
        found(report, err.text);
}

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    const char *path = args->rest_count > 0 ? args->rest[0] : cn_args_data(options->data);
    struct cn_err err = {0};
    struct cn_check_report report = {.problem = print_problem};
    struct cn_disk *disk = cn_disk_system_new(path);
    if (!disk) {
        fprintf(stderr, "cairn: cannot open %s: %s\n", path, strerror(errno));
        return 3;
    }
    bool backup = cn_manifest_is_there(disk); /* of a cluster */
    int rc = backup ? cn_restore_check(disk, &report, &err) : cn_check(disk, &report, &err);
    if (rc == 0 && !backup)
        check_others(disk, path, &report);
    cn_disk_system_free(disk);
    if (rc == CN_ELOCKED)
        cn_data_tell_holder(path, &err);
    if (rc < 0) {
        fprintf(stderr, "cairn: %s: %s\n", path, err.text);
        return 3;
    }
    printf("%s: %" PRIu64 " objects (%" PRIu64 " bytes), %" PRIu64 " log records, %" PRIu64
           " archives, %" PRIu64 " blobs: ",
           path, report.object_count, report.object_bytes, report.record_count,
           report.archive_count, report.blob_count);
    if (report.problem_count == 0) {
        puts("clean");
        return 0;
    }
    printf("%" PRIu64 " problem%s\n", report.problem_count, report.problem_count == 1 ? "" : "s");
    return 1;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA_FOUND(AT(data)),
};

const struct cn_command cn_cmd_check = {
    .name = "check",
    .usage = "[DATA] [OPTIONS]",
    .summary = "verify a data directory",
    .text = "Reads every log record, database, archive and blob of a data directory that no server "
            "uses,\n"
            "or of a backup, and says what is wrong. Changes nothing. Exit code 0: clean, 1: "
            "damaged, 3: cannot check.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
