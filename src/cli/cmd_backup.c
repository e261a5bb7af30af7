/* SPDX-License-Identifier: Apache-2.0 */
/* cairn backup DIR: a consistent copy of a data directory. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/disk.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/datadir.h"
#include "store/backup.h"

int cn_cmd_backup(const struct cn_args *args)
{
    struct cn_err err = {0};
    struct cn_datadir dir;
    struct cn_backup_report report;
    if (args->rest_count != 1) {
        fprintf(stderr, "cairn: backup needs the folder to copy to: cairn backup DIR\n");
        return 2;
    }
    const char *target = args->rest[0];
    int rc = cn_datadir_open(&dir, cn_datadir_path(args), true, &err);
    if (rc < 0) {
        fprintf(stderr, "cairn: %s%s\n", err.text,
                rc == CN_ELOCKED ? "; stop the server first" : "");
        return 1;
    }
    struct cn_disk *to = NULL;
    if (mkdir(target, 0700) < 0 && errno != EEXIST)
        rc = cn_err_errno(&err, errno, "cannot make %s", target);
    if (rc == 0) {
        to = cn_disk_system_new(target);
        if (!to)
            rc = cn_err_errno(&err, errno, "cannot open %s", target);
    }
    if (rc == 0)
        rc = cn_store_backup(dir.store, to, &report, &err);
    cn_disk_system_free(to);
    cn_datadir_close(&dir);
    if (rc < 0) {
        fprintf(stderr, "cairn: %s\n", err.text);
        return 1;
    }
    printf("%s: %" PRIu64 " files, %" PRIu64 " bytes, as of commit %" PRIu64 "\n", target,
           report.file_count, report.bytes, report.lsn);
    return 0;
}
