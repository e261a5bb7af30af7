/* SPDX-License-Identifier: Apache-2.0 */
/* admin/control_backup.c - a copy of everything, made by the process that has it open.
 *
 * POST /api/backup/stream: into a folder of the one who asks (`cairn backup`), who does there what
 * this process says (base/netdisk.h, admin/exchange.h), with his own rights, and compares what is
 * in it in the end.
 *
 * POST /api/backup {"path": DIR}: into a folder of this process, absolute, new or empty, with its
 * rights and as it sees it. Compared before the answer.
 *
 *   K1  "Done" is said of what has been read again and compared with its manifest, by the one whose
 *       folder it is: nobody else can see that it is there.
 *   K2  A folder inside the data directory is refused: each copy would have all earlier ones. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "admin/exchange.h"
#include "admin/handler.h"
#include "base/disk.h"
#include "base/netdisk.h"
#include "object/shard.h"
#include "store/backup.h"

static bool is_cancelled(void *data)
{
    struct cn_control_call *call = data;
    return call->cancelled && call->cancelled(call);
}

static int back_up_store(const struct cn_control *control, struct cn_disk *to,
                         struct cn_backup_report *report, struct cn_buf *json, struct cn_err *err)
{
    struct cn_shard *only = cn_shards_hold_index(control->shards, 0);
    if (!only)
        return cn_err_set(err, CN_ECLOSED, "the store is closed");
    int rc = cn_store_backup(only->store, to, report, err);
    cn_shard_release(only);
    if (rc == 0 && !report->compared_there)
        rc = cn_store_backup_finish(to, err);
    if (rc == 0)
        cn_buf_printf(json, "{\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"lsn\":%" PRIu64 "}",
                      report->file_count, report->bytes, report->lsn);
    return rc;
}

/* A node of a cluster has parts of it: its backup is of all nodes (fleet/cluster_backup.h). */
static int back_up(struct cn_control_call *call, struct cn_disk *to, bool compared_there,
                   struct cn_err *err)
{
    struct cn_backup_report report = {
        .cancelled = is_cancelled, .data = call, .compared_there = compared_there};
    const struct cn_control *control = call->control;
    if (control->backup) /* deployments go on: U4 is enough */
        return control->backup(control->cluster_data, to, &report, &call->scratch, err);
    if (control->pause)
        control->pause(control->more_data, true);
    int rc = back_up_store(control, to, &report, &call->scratch, err);
    if (control->pause)
        control->pause(control->more_data, false);
    return rc;
}

int cn_control_backup(struct cn_control_call *call, struct cn_err *err)
{
    const char *path = cn_json_text(call->json, "path");
    if (!path || path[0] != '/')
        return cn_err_set(err, CN_EINVALID, "\"path\" must be an absolute path");
    const char *data = call->control->data_path;
    if (data && cn_disk_is_inside(path, data))
        return cn_err_set(err, CN_EINVALID, "%s is inside the data directory %s", path, data);
    struct cn_disk *to = NULL;
    if ((mkdir(path, 0700) < 0 && errno != EEXIST) || !(to = cn_disk_system_new(path)))
        return cn_err_errno(err, errno, "the server cannot write to %s%s", path,
                            errno == EACCES ? " (in a sandbox, --sandbox-write names it)" : "");
    int rc = back_up(call, to, false, err);
    cn_disk_system_free(to);
    return rc < 0 ? rc : cn_control_answer(call, &call->scratch);
}

/* --- into a folder of the one who asks -------------------------------------------------------- */

static int on_exchange(void *data, const struct cn_buf *run, struct cn_buf *answer)
{
    return cn_exchange_ask(data, run, answer);
}

int cn_control_backup_stream(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_exchange exchange;
    struct cn_err own = {0};
    const char *version = cn_control_param(call, "version");
    if (!call->control->exchanges)
        return cn_err_set(err, CN_EINVALID, "no server runs here");
    if (!version || strcmp(version, CN_EXCHANGE_VERSION) != 0)
        return cn_err_set(
            err, CN_EINVALID,
            "this call is for `cairn backup` of this server's version (version=" CN_EXCHANGE_VERSION
            "); {\"path\": DIR} to /api/backup makes a copy here");
    int rc = cn_exchange_begin(&exchange, call->control->exchanges, call);
    struct cn_disk *to = cn_netdisk_new(on_exchange, &exchange);
    rc = rc < 0 ? cn_err_set(&own, rc, "nobody listens") : back_up(call, to, true, &own);
    int last = rc == 0 ? cn_netdisk_flush(to) : 0;
    if (last < 0)
        rc = cn_err_errno(&own, -last, "cannot write the backup");
    cn_netdisk_free(to);
    cn_exchange_end(&exchange, rc, &call->scratch, &own);
    return 0;
}

int cn_control_backup_answer(struct cn_control_call *call, struct cn_err *err)
{
    int rc = cn_control_read_body(call, CN_NETDISK_MESSAGE_MAX, err);
    struct cn_exchanges *table = call->control->exchanges;
    if (rc == 0 && !table)
        rc = cn_err_set(err, CN_ENOTFOUND, "nobody waits for this answer");
    if (rc == 0)
        rc = cn_exchange_answer(table, call->path[3], call->body.data, call->body.size, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(&call->scratch, "{}");
    return cn_control_answer(call, &call->scratch);
}
