/* SPDX-License-Identifier: Apache-2.0 */
/* cairn objects, backup and check on a data directory: what they print is for people, so the tests
 * look at exit codes and at what is on disk afterwards. */
#include <fcntl.h>
#include <stdarg.h>
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

/* Runs a command without showing what it prints; the words end with NULL. */
static int run(const struct cn_command *command, ...)
{
    char *argv[16];
    int argc = 0;
    va_list words;
    va_start(words, command);
    while ((argv[argc] = va_arg(words, char *)))
        argc++;
    va_end(words);
    fflush(stdout);
    fflush(stderr);
    int out = dup(1), err = dup(2), null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    struct cn_args args;
    int code = cn_args_parse(&args, command, argc, argv, NULL) < 0 ? 2 : command->run(&args);
    cn_args_fini(&args);
    fflush(stdout);
    fflush(stderr);
    dup2(out, 1);
    dup2(err, 2);
    close(out);
    close(err);
    close(null);
    return code;
}

/* `cairn objects export` and `restore` of the rig's object; bookmark NULL: none is given. */
static int export_to(const struct rig *rig, const char *file, const char *bookmark)
{
    return run(&cn_cmd_objects, "--data", rig->path, "export", namespace_of(rig), rig->id, file,
               bookmark ? "--bookmark" : NULL, bookmark, NULL);
}

static int restore_to(const struct rig *rig, const char *option, const char *moment)
{
    return run(&cn_cmd_objects, "--data", rig->path, "restore", namespace_of(rig), rig->id, option,
               moment, NULL);
}

TEST(offline, exports_and_restores_a_moment)
{
    struct rig rig;
    char file[160];
    rig_init(&rig);
    snprintf(file, sizeof(file), "%s/out.db", test_dir());
    const struct model_state *then = &rig.object->versions[rig.version].state;
    const struct model_state *now = model_state_at(rig.object, UINT64_MAX);
    CHECK_INT(0, export_to(&rig, file, rig.bookmark));
    if (model_compare_file(&rig.model, file, then) < 0)
        test_fail(__FILE__, __LINE__, "%s", rig.model.why);
    CHECK_INT(1, export_to(&rig, file, rig.bookmark)); /* it does not write over a file */
    CHECK_INT(1, restore_to(&rig, NULL, NULL));        /* to which moment? */
    CHECK_INT(1, restore_to(&rig, "--bookmark", "nonsense"));
    CHECK_INT(0, restore_to(&rig, "--bookmark", rig.bookmark));
    CHECK_INT(0, unlink(file));
    CHECK_INT(0, export_to(&rig, file, NULL));
    CHECK_INT(0, model_compare_file(&rig.model, file, then));
    CHECK_INT(0, unlink(file));
    /* The moment before the restore is still there. */
    char bookmark[CN_BOOKMARK_SIZE];
    cn_bookmark_format(
        &(struct cn_bookmark){.lsn = rig.object->versions[rig.object->version_count - 1].lsn},
        &rig.object->key, bookmark);
    /* Without tables there may be no database at all; then there is nothing to export. */
    int rc = export_to(&rig, file, bookmark);
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
    CHECK_INT(0, run(&cn_cmd_backup, target, "--data", rig.path, NULL));
    CHECK_INT(1, run(&cn_cmd_backup, target, "--data", rig.path, NULL)); /* not empty */
    CHECK_INT(0, run(&cn_cmd_check, target, NULL));
    struct cn_err err = {0};
    struct cn_offline dir;
    CHECK_INT(0, cn_offline_open(&dir, target, true, &err));
    if (model_compare_copy(&rig.model, dir.store, 0) < 0)
        test_fail(__FILE__, __LINE__, "%s", rig.model.why);
    CHECK_INT(3, run(&cn_cmd_check, target, NULL)); /* in use */
    cn_offline_close(&dir);
    struct cn_disk *disk = cn_disk_system_new(target);
    struct cn_disk_file *log;
    CHECK_INT(0, cn_disk_open(disk, "log/checkpoint", 0, &log));
    CHECK_INT(0, cn_disk_write_all(log, "x", 1, 20));
    cn_disk_close(log);
    CHECK_INT(1, run(&cn_cmd_check, target, NULL));
    CHECK_INT(0, cn_disk_replace(disk, "FORMAT", "cairn data format 99\n", 21));
    CHECK_INT(3, run(&cn_cmd_check, target, NULL)); /* newer than this version */
    cn_disk_system_free(disk);
    snprintf(file, sizeof(file), "%s/nothing", target);
    CHECK_INT(3, run(&cn_cmd_check, file, NULL));
    model_fini(&rig.model);
}

TEST(offline, lists_and_refuses_what_it_does_not_know)
{
    struct rig rig;
    rig_init(&rig);
    const struct cn_command *objects = &cn_cmd_objects;
    CHECK_INT(0, run(objects, "--data", rig.path, "list", NULL));
    CHECK_INT(0, run(objects, "--data", rig.path, "list", "--json", NULL));
    CHECK_INT(0, run(objects, "--data", rig.path, "list", "app/Room", NULL));
    CHECK_INT(0, run(objects, "--data", rig.path, "list", "app/Room", "--json", NULL));
    CHECK_INT(1, run(objects, "--data", rig.path, "list", "app/Nobody", NULL));
    CHECK_INT(2, run(objects, "--data", rig.path, "dance", "app/Nobody", NULL));
    CHECK_INT(2, run(objects, "--data", rig.path, NULL));
    CHECK_INT(1, restore_to(&rig, "--time", "yesterday"));
    /* Before everything: it would become empty, which has to be asked for. */
    CHECK_INT(1, restore_to(&rig, "--time", "2001-01-01T00:00:00Z"));
    CHECK_INT(0, run(objects, "--data", rig.path, "restore", namespace_of(&rig), rig.id, "--time",
                     "2001-01-01T00:00:00Z", "--empty", NULL));
    model_fini(&rig.model);
}
