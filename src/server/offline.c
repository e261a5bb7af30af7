/* SPDX-License-Identifier: Apache-2.0 */
#include "server/offline.h"

#include <errno.h>

#include "base/disk.h"
#include "base/overlay.h"
#include "object/shard.h"
#include "server/data.h"
#include "store/history.h"
#include "store/store.h"

int cn_offline_open(struct cn_offline *dir, const char *path, bool readonly, struct cn_err *err)
{
    struct cn_disk_file *format;
    *dir = (struct cn_offline){0};
    dir->real = cn_disk_system_new(path);
    if (!dir->real)
        return cn_err_errno(err, errno, "cannot open the data directory %s", path);
    int rc = cn_disk_open(dir->real, "FORMAT", CN_DISK_READONLY, &format);
    if (rc < 0) { /* opening a store would make a new one here */
        rc = cn_data_check(dir->real, false, err);
        if (rc < 0)
            goto close_dir;
        rc = cn_err_set(err, CN_ENOTFOUND, "not a data directory: there is no file FORMAT");
        goto close_dir;
    }
    cn_disk_close(format);
    rc = cn_data_check(dir->real, false, err);
    if (rc < 0)
        goto close_dir;
    if (readonly)
        dir->overlay = cn_disk_overlay_new(dir->real);
    struct cn_disk *disk = readonly ? dir->overlay : dir->real;
    /* How long history is kept is the server's to say: nothing goes because of a command. */
    struct cn_history_config history_config = {.disk = disk, .retention_ms = INT64_MAX / 2};
    rc = cn_history_open(&history_config, &dir->history, err);
    if (rc < 0)
        goto close_dir;
    struct cn_store_config config = {.disk = disk, .history = cn_history_callbacks(dir->history)};
    rc = cn_store_open(&config, &dir->store, err);
    if (rc == 0)
        rc = cn_shards_single(dir->store, dir->history, &dir->shards, err);
    if (rc == 0)
        return 0;
    if (rc == CN_ELOCKED)
        cn_data_tell_holder(path, err);
close_dir:
    cn_offline_close(dir);
    cn_err_context(err, "%s", path);
    return rc;
}

void cn_offline_close(struct cn_offline *dir)
{
    cn_shards_free(dir->shards);
    if (dir->store)
        cn_store_close(dir->store);
    cn_history_close(dir->history);
    cn_disk_overlay_free(dir->overlay);
    cn_disk_system_free(dir->real);
    *dir = (struct cn_offline){0};
}

struct cn_disk *cn_offline_disk(struct cn_offline *dir)
{
    return dir->overlay ? dir->overlay : dir->real;
}
