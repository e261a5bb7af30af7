/* SPDX-License-Identifier: Apache-2.0 */
/* cairn objects, backup and check on a data directory: what they print is for people, so the tests
 * look at exit codes and at what is on disk afterwards. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/disk.h"
#include "cli/args.h"
#include "object/id.h"
#include "server/offline.h"
#include "store/history.h"
#include "store/store.h"
#include "test/lib/storemodel.h"
#include "test/lib/test.h"

/* A data directory with a known past. */
struct rig {
    const char *path;
    struct model model;
    struct model_object *object; /* one that has had tables for two commits */
    int version;                 /* index of the older of them */
    char id[CN_OBJECT_HEX_SIZE + 1];
    char bookmark[CN_BOOKMARK_SIZE];
};

static void rig_init(struct rig *rig)
{
    struct cn_err err = {0};
    struct cn_offline dir;
    memset(rig, 0, sizeof(*rig));
    rig->path = test_dir();
    model_init(&rig->model, test_seed(), 4);
    struct cn_disk *disk = cn_disk_system_new(rig->path);
    CHECK_INT(0, cn_disk_replace(disk, "FORMAT", "cairn data format 1\n", 20));
    cn_disk_system_free(disk);
    CHECK_INT(0, cn_offline_open(&dir, rig->path, false, &err));
    CHECK_INT(0, model_open_namespaces(&rig->model, dir.store));
    uint64_t lsn;
    for (int i = 0; i < 120; i++)
        CHECK_INT(0, model_turn(&rig->model, dir.store, &lsn));
    model_close_databases(&rig->model);
    for (int i = 0; !rig->object && i < rig->model.object_count; i++) {
        struct model_object *object = &rig->model.objects[i];
        for (int v = 1; v + 1 < object->version_count; v++) {
            if (object->versions[v].state.version == 0)
                continue;
            rig->object = object;
            rig->version = v;
            break;
        }
    }
    CHECK(rig->object);
    cn_id_to_hex(rig->object->key.id, rig->id);
    cn_bookmark_format(&(struct cn_bookmark){.lsn = rig->object->versions[rig->version].lsn},
                       &rig->object->key, rig->bookmark);
    cn_offline_close(&dir);
}

static const char *namespace_of(const struct rig *rig)
{
    return rig->object->key.namespace_id == 1 ? "app/Counter" : "app/Room";
}

/* Runs a command without showing what it prints. */
static int run(int (*command)(const struct cn_args *args), const struct cn_args *args)
{
    fflush(stdout);
    fflush(stderr);
    int out = dup(1), err = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    int code = command(args);
    fflush(stdout);
    fflush(stderr);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    close(null);
    return code;
}

TEST(offline, exports_and_restores_a_moment)
{
    struct rig rig;
    char file[160];
    rig_init(&rig);
    snprintf(file, sizeof(file), "%s/out.db", test_dir());
    const struct model_state *then = &rig.object->versions[rig.version].state;
    const struct model_state *now = model_state_at(rig.object, UINT64_MAX);
    struct cn_args export = {.data = rig.path,
                             .bookmark = rig.bookmark,
                             .rest = (const char *[]){"export", namespace_of(&rig), rig.id, file},
                             .rest_count = 4};
    CHECK_INT(0, run(cn_cmd_objects, &export));
    if (model_compare_file(&rig.model, file, then) < 0)
        test_fail(__FILE__, __LINE__, "%s", rig.model.why);
    CHECK_INT(1, run(cn_cmd_objects, &export)); /* it does not write over a file */
    struct cn_args restore = {.data = rig.path,
                              .rest = (const char *[]){"restore", namespace_of(&rig), rig.id},
                              .rest_count = 3};
    CHECK_INT(1, run(cn_cmd_objects, &restore)); /* to which moment? */
    restore.bookmark = "nonsense";
    CHECK_INT(1, run(cn_cmd_objects, &restore));
    restore.bookmark = rig.bookmark;
    CHECK_INT(0, run(cn_cmd_objects, &restore));
    CHECK_INT(0, unlink(file));
    export.bookmark = NULL;
    CHECK_INT(0, run(cn_cmd_objects, &export));
    CHECK_INT(0, model_compare_file(&rig.model, file, then));
    CHECK_INT(0, unlink(file));
    /* The moment before the restore is still there. */
    char bookmark[CN_BOOKMARK_SIZE];
    cn_bookmark_format(
        &(struct cn_bookmark){.lsn = rig.object->versions[rig.object->version_count - 1].lsn},
        &rig.object->key, bookmark);
    export.bookmark = bookmark;
    /* Without tables there may be no database at all; then there is nothing to export. */
    int rc = run(cn_cmd_objects, &export);
    CHECK(rc == 0 || !now->version);
    if (rc == 0)
        CHECK_INT(0, model_compare_file(&rig.model, file, now));
    model_fini(&rig.model);
}

TEST(offline, backs_up_and_checks)
{
    struct rig rig;
    char target[160], file[200];
    rig_init(&rig);
    snprintf(target, sizeof(target), "%s/copy", test_dir());
    struct cn_args backup = {.data = rig.path, .rest = (const char *[]){target}, .rest_count = 1};
    CHECK_INT(0, run(cn_cmd_backup, &backup));
    CHECK_INT(1, run(cn_cmd_backup, &backup)); /* not empty */
    struct cn_args check = {.rest = (const char *[]){target}, .rest_count = 1};
    CHECK_INT(0, run(cn_cmd_check, &check));
    struct cn_err err = {0};
    struct cn_offline dir;
    CHECK_INT(0, cn_offline_open(&dir, target, true, &err));
    if (model_compare_copy(&rig.model, dir.store, 0) < 0)
        test_fail(__FILE__, __LINE__, "%s", rig.model.why);
    CHECK_INT(3, run(cn_cmd_check, &check)); /* in use */
    cn_offline_close(&dir);
    struct cn_disk *disk = cn_disk_system_new(target);
    struct cn_disk_file *log;
    CHECK_INT(0, cn_disk_open(disk, "log/checkpoint", 0, &log));
    CHECK_INT(0, cn_disk_write_all(log, "x", 1, 20));
    cn_disk_close(log);
    CHECK_INT(1, run(cn_cmd_check, &check));
    CHECK_INT(0, cn_disk_replace(disk, "FORMAT", "cairn data format 99\n", 21));
    CHECK_INT(3, run(cn_cmd_check, &check)); /* newer than this version */
    cn_disk_system_free(disk);
    snprintf(file, sizeof(file), "%s/nothing", target);
    check.rest[0] = file;
    CHECK_INT(3, run(cn_cmd_check, &check));
    model_fini(&rig.model);
}

TEST(offline, lists_and_refuses_what_it_does_not_know)
{
    struct rig rig;
    rig_init(&rig);
    struct cn_args list = {.data = rig.path, .rest = (const char *[]){"list", "app/Room"}};
    for (list.rest_count = 1; list.rest_count <= 2; list.rest_count++) {
        CHECK_INT(0, run(cn_cmd_objects, &list));
        list.json = true;
        CHECK_INT(0, run(cn_cmd_objects, &list));
    }
    list.rest_count = 2;
    list.rest[1] = "app/Nobody";
    CHECK_INT(1, run(cn_cmd_objects, &list));
    list.rest[0] = "dance";
    CHECK_INT(2, run(cn_cmd_objects, &list));
    list.rest_count = 0;
    CHECK_INT(2, run(cn_cmd_objects, &list));
    struct cn_args time = {.data = rig.path,
                           .time = "yesterday",
                           .rest = (const char *[]){"restore", namespace_of(&rig), rig.id},
                           .rest_count = 3};
    CHECK_INT(1, run(cn_cmd_objects, &time));
    time.time = "2001-01-01T00:00:00Z"; /* before everything: it becomes empty */
    CHECK_INT(0, run(cn_cmd_objects, &time));
    model_fini(&rig.model);
}
