/* SPDX-License-Identifier: Apache-2.0 */
/* The class lifecycle of a deployment: nothing changes before it is committed (K1), deletions are
 * allowed by name, on the command line or by a request left for the server, and deleted classes go
 * when their time is over (K3). */
#include "project/deploy_classes.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confnode.h"
#include "object/node.h"
#include "project/project.h"
#include "service/ratelimit/ratelimit.h"
#include "store/database.h"
#include "store/store.h"
#include "test/lib/service_rig.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"
#include "worker/script.h"

#define NEW(tag, name) "[[migrations]]\ntag = \"" tag "\"\nnew_sqlite_classes = [\"" name "\"]\n"
#define DELETED(tag, name) "[[migrations]]\ntag = \"" tag "\"\ndeleted_classes = [\"" name "\"]\n"
#define BOUND(name) "[[durable_objects.bindings]]\nname = \"" name "\"\nclass_name = \"" name "\"\n"

struct world {
    struct simdisk *sim;
    struct cn_disk *disk;
    struct service_rig rig;
    struct cn_deploy_wishes asked;
    struct cn_classes classes;
    struct cn_buf pending;
    struct cn_err err;
};

static void open_world(struct world *world)
{
    memset(world, 0, sizeof(*world));
    world->sim = simdisk_new();
    world->disk = simdisk_disk(world->sim);
    service_rig_open(&world->rig, world->disk, &cn_ratelimit_class, "$ratelimit/7");
}

static void close_world(struct world *world)
{
    cn_buf_fini(&world->pending);
    service_rig_close(&world->rig);
    simdisk_free(world->sim);
}

static struct cn_config *parse(const char *text)
{
    struct cn_config *config = NULL;
    struct cn_err err = {0};
    char *toml = cn_sprintf("name = \"w\"\nmain = \"i.js\"\n%s", text);
    if (cn_config_load_text("/p/wrangler.toml", true, toml, strlen(toml), NULL, &config, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    cn_free(toml);
    return config;
}

/* Prepares a deployment of one project that exports `exports` (NULL: not known). */
static int prepare(struct world *world, const char *toml, const char *exports)
{
    struct cn_project project = {.config = parse(toml)};
    if (exports)
        project.bundle.manifest = cn_jsonc_parse("m", exports, strlen(exports), &world->err);
    struct cn_deploy_input input = {&project, 1, &world->asked, world->disk, NULL};
    world->err = (struct cn_err){0};
    int rc = cn_deploy_classes(&input, false, world->rig.shards, &world->classes, &world->pending,
                               &world->err);
    CHECK_INT(rc, world->err.code);
    cn_project_close(&project);
    return rc;
}

/* Prepares and commits it; the table is looked at by `lives`. */
static void deploy(struct world *world, const char *toml)
{
    if (prepare(world, toml, NULL) != 0)
        test_fail(__FILE__, __LINE__, "%s", world->err.text);
    CHECK_INT(0, cn_deploy_classes_commit(world->disk, NULL, &world->pending, &world->err));
    cn_classes_fini(&world->classes);
}

/* The namespace of a class as the file has it: 0 none, negative: deleted. */
static int64_t lives(struct world *world, const char *name)
{
    struct cn_classes classes;
    int64_t ns = 0;
    CHECK_INT(0, cn_classes_load(&classes, world->disk, &world->err));
    for (size_t i = 0; i < classes.entry_count; i++)
        if (strcmp(classes.entries[i].name, name) == 0)
            ns = classes.entries[i].deleted_ms ? -classes.entries[i].ns : classes.entries[i].ns;
    cn_classes_fini(&classes);
    return ns;
}

/* K1 */
TEST(deploy_classes, nothing_has_changed_before_the_commit)
{
    struct world world;
    open_world(&world);
    CHECK_INT(0, prepare(&world, NEW("1", "A"), NULL));
    CHECK(world.pending.size > 0);
    CHECK_INT(1, world.classes.entry_count);
    CHECK(world.classes.entries[0].ns > 0);
    cn_classes_fini(&world.classes);
    CHECK_INT(0, lives(&world, "A")); /* it did not start */
    deploy(&world, NEW("1", "A"));
    CHECK(lives(&world, "A") > 0);
    /* The same again changes nothing, and there is nothing to be written. */
    CHECK_INT(0, prepare(&world, NEW("1", "A"), NULL));
    CHECK_INT(0, world.pending.size);
    cn_classes_fini(&world.classes);
    close_world(&world);
}

TEST(deploy_classes, a_class_that_the_code_does_not_export_is_refused)
{
    struct world world;
    open_world(&world);
    CHECK(prepare(&world, NEW("1", "A") BOUND("A"), "{\"exports\":[\"default\",\"B\"]}") < 0);
    CHECK(world.err.text[0]);
    CHECK_INT(0, prepare(&world, NEW("1", "A") BOUND("A"), "{\"exports\":[\"default\",\"A\",7]}"));
    cn_classes_fini(&world.classes);
    /* A manifest without a list says nothing. */
    CHECK_INT(0, prepare(&world, NEW("1", "A") BOUND("A"), "{\"exports\":\"A\"}"));
    cn_classes_fini(&world.classes);
    close_world(&world);
}

TEST(deploy_classes, a_deletion_must_be_allowed_by_name)
{
    struct world world;
    open_world(&world);
    deploy(&world, NEW("1", "A") NEW("2", "B"));
    int64_t ns = lives(&world, "A");
    static const char without[] = NEW("1", "A") NEW("2", "B") DELETED("3", "A");
    CHECK(prepare(&world, without, NULL) < 0);
    CHECK_INT(ns, lives(&world, "A"));
    world.asked.allow_delete = "B";
    CHECK(prepare(&world, without, NULL) < 0);
    world.asked.allow_delete = "B, A";
    deploy(&world, without);
    CHECK_INT(-ns, lives(&world, "A"));
    CHECK(lives(&world, "B") > 0);
    /* It can be taken back, with its objects. */
    world.asked = (struct cn_deploy_wishes){.recover = "A"};
    deploy(&world, NEW("1", "A") NEW("2", "B") DELETED("3", "A") NEW("4", "A"));
    CHECK_INT(ns, lives(&world, "A"));
    close_world(&world);
}

/* K3 */
TEST(deploy_classes, a_deleted_class_goes_when_it_can_no_longer_be_taken_back)
{
    struct world world;
    open_world(&world);
    deploy(&world, NEW("1", "A"));
    world.asked.allow_delete = "A";
    static const char without[] = NEW("1", "A") DELETED("2", "A");
    deploy(&world, without);
    deploy(&world, without);
    CHECK(lives(&world, "A") < 0); /* for the usual time */
    world.asked = (struct cn_deploy_wishes){.history_ms = 1};
    int64_t before = cn_clock_wall_ms(cn_clock_system());
    while (lives(&world, "A") != 0) { /* a millisecond, and the next deployment */
        CHECK(cn_clock_wall_ms(cn_clock_system()) < before + 30000);
        deploy(&world, without);
    }
    close_world(&world);
}

TEST(deploy_classes, a_request_is_left_for_the_server_and_used_once)
{
    struct world world;
    struct cn_deploy_wishes wish = {.allow_delete = "\"odd\",A"};
    open_world(&world);
    static const char without[] = NEW("1", "A") DELETED("2", "A");
    deploy(&world, NEW("1", "A"));
    int64_t ns = lives(&world, "A");
    CHECK_INT(0, cn_deploy_leave_request(&(struct cn_deploy_wishes){0}, world.disk, &world.err));
    CHECK(prepare(&world, without, NULL) < 0); /* no wish is none */
    CHECK_INT(0, cn_deploy_leave_request(&wish, world.disk, &world.err));
    /* A deployment that does not start leaves it there. */
    CHECK_INT(0, prepare(&world, without, NULL));
    cn_classes_fini(&world.classes);
    deploy(&world, without);
    CHECK_INT(-ns, lives(&world, "A"));
    struct cn_disk_file *file;
    CHECK(cn_disk_open(world.disk, "deploy.json", CN_DISK_READONLY, &file) < 0);
    close_world(&world);
}

/* It may name a class to be deleted. */
TEST(deploy_classes, a_request_that_is_damaged_is_none)
{
    struct world world;
    struct cn_deploy_wishes wish = {.allow_delete = "A"};
    open_world(&world);
    deploy(&world, NEW("1", "A"));
    static const char without[] = NEW("1", "A") DELETED("2", "A");
    for (unsigned at = 0; at < 50; at += 7) {
        CHECK_INT(0, cn_deploy_leave_request(&wish, world.disk, &world.err));
        CHECK_INT(0, simdisk_damage(world.sim, "deploy.json", at, at % 8));
        CHECK(prepare(&world, without, NULL) < 0);
    }
    CHECK_INT(0, cn_disk_replace(world.disk, "deploy.json", "{\"allow_delete\": \"A\"}\n", 22));
    CHECK(prepare(&world, without, NULL) < 0); /* without its seal */
    CHECK(lives(&world, "A") > 0);
    close_world(&world);
}

/* K1: the n-th operation of the disk fails, for every n until it passes. */
TEST(deploy_classes, an_error_of_the_disk_leaves_the_table_before_or_after)
{
    unsigned failures = 0;
    for (unsigned at = 1;; at++) {
        struct world world;
        open_world(&world);
        simdisk_set_fault(
            world.sim,
            &(struct simdisk_fault){.kinds = SIMDISK_NAME | SIMDISK_SYNC, .at = at, .code = -5});
        int rc = prepare(&world, NEW("1", "A"), NULL);
        if (rc == 0) {
            cn_classes_fini(&world.classes);
            rc = cn_deploy_classes_commit(world.disk, NULL, &world.pending, &world.err);
        }
        simdisk_set_fault(world.sim, NULL);
        int64_t ns = lives(&world, "A");
        CHECK(rc == 0 ? ns > 0 : ns >= 0);
        close_world(&world);
        failures += rc != 0;
        if (rc == 0)
            break;
    }
    CHECK(failures > 0);
}

TEST(deploy_classes, a_script_gets_its_own_living_classes_and_what_its_bindings_reach)
{
    struct world world;
    open_world(&world);
    static const char toml[] = NEW("1", "A") NEW("2", "B") BOUND("B");
    CHECK_INT(0, prepare(&world, toml, NULL));
    CHECK_INT(0, cn_deploy_classes_commit(world.disk, NULL, &world.pending, &world.err));
    struct cn_config *config = parse(toml);
    struct cn_script *script = cn_script_new();
    CHECK_INT(0, cn_deploy_objects(script, config, world.rig.node, &world.classes, &world.err));
    CHECK_INT(2, script->class_count);
    CHECK_INT(1, script->namespace_count);
    CHECK_INT(lives(&world, "B"), script->namespaces[0]->id);
    CHECK_STR("w/B", script->namespaces[0]->name);
    cn_script_unref(script);
    script = cn_script_new();
    CHECK_INT(CN_EUNSUPPORTED,
              cn_deploy_objects(script, config, NULL, &(struct cn_classes){0}, &world.err));
    CHECK(strstr(world.err.text, "restart the server"));
    cn_script_unref(script);
    cn_config_free(config);
    cn_classes_fini(&world.classes);
    close_world(&world);
}
