/* SPDX-License-Identifier: Apache-2.0 */
/* admin/control_backup.c - a copy of everything, made by the process that has it open.
 *
 * POST /api/backup {"path": DIR}: the folder, absolute, new or empty, as the server sees it. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "admin/handler.h"
#include "base/disk.h"
#include "object/shard.h"
#include "store/backup.h"

static bool is_cancelled(void *data)
{
    struct cn_control_call *call = data;
    return call->cancelled && call->cancelled(call);
}

/* A node of a cluster has parts of it: its backup is of all nodes (server/cluster_backup.h). */
static int back_up(const struct cn_control *control, struct cn_disk *to,
                   struct cn_backup_report *report, struct cn_buf *json, struct cn_err *err)
{
    if (control->backup)
        return control->backup(control->cluster_data, to, report, json, err);
    struct cn_shard *only = cn_shards_hold_index(control->shards, 0);
    if (!only)
        return cn_err_set(err, CN_ECLOSED, "the store is closed");
    int rc = cn_store_backup(only->store, to, report, err);
    cn_shard_release(only);
    if (rc == 0)
        cn_buf_printf(json, "{\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"lsn\":%" PRIu64 "}",
                      report->file_count, report->bytes, report->lsn);
    return rc;
}

int cn_control_backup(struct cn_control_call *call, struct cn_err *err)
{
    const char *path = cn_json_text(call->json, "path");
    struct cn_backup_report report = {.cancelled = is_cancelled, .data = call};
    if (!path || path[0] != '/')
        return cn_err_set(err, CN_EINVALID, "\"path\" must be an absolute path");
    struct cn_disk *to = NULL;
    if ((mkdir(path, 0700) < 0 && errno != EEXIST) || !(to = cn_disk_system_new(path)))
        return cn_err_errno(err, errno, "the server cannot write to %s%s", path,
                            errno == EACCES ? " (in a sandbox, --sandbox-write names it)" : "");
    const struct cn_control *control = call->control;
    bool pauses = control->pause && !control->backup; /* of a cluster, U4 is enough */
    if (pauses)
        control->pause(control->more_data, true);
    int rc = back_up(control, to, &report, &call->scratch, err);
    if (pauses)
        control->pause(control->more_data, false);
    cn_disk_system_free(to);
    return rc < 0 ? rc : cn_control_answer(call, &call->scratch);
}
