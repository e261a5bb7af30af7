/* SPDX-License-Identifier: Apache-2.0 */
/* Class lifecycle: what configurations do to the table of classes, and what is refused. */
#include "project/migrate.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "object/shard.h"
#include "store/catalog.h"
#include "store/store.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

/* ---- a data directory, deployed to again and again ---- */

struct world {
    struct cn_disk *disk;
    struct cn_store *store;
    struct cn_shards *shards;
    char out[4096];              /* the plan of the last deployment */
    const char *allow, *recover; /* one name each, for the next one */
    int64_t now_ms;              /* 0: 1000 */
    const char *code;            /* "A B": what the first project exports; NULL: not known */
};

static void world_open(struct world *world)
{
    struct cn_err err;
    *world = (struct world){.disk = cn_disk_system_new(test_dir())};
    struct cn_store_config config = {
        .disk = world->disk, .sync = CN_LOG_OS, .segment_size = 1 << 20};
    CHECK_INT(0, cn_store_open(&config, &world->store, &err));
    CHECK_INT(0, cn_shards_single(world->store, NULL, &world->shards, &err));
}

static void world_close(struct world *world)
{
    cn_shards_free(world->shards);
    cn_store_close(world->store);
    cn_disk_system_free(world->disk);
}

static struct cn_config *parse(const char *name, const char *text)
{
    struct cn_config *config;
    struct cn_config_options options = {0};
    struct cn_err err;
    char *toml = cn_sprintf("name = \"%s\"\nmain = \"i.js\"\n%s", name, text);
    int rc =
        cn_config_load_text("wrangler.toml", true, toml, strlen(toml), &options, &config, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    CHECK_INT(0, rc);
    cn_free(toml);
    return config;
}

static void split_words(char *text, struct cn_strings *words, const char *items[])
{
    char *state = NULL;
    words->items = items;
    for (char *word = strtok_r(text, " ", &state); word; word = strtok_r(NULL, " ", &state))
        words->items[words->count++] = word;
}

/* Deploys one project, or two. True if it was applied. */
static bool deploy(struct world *world, const char *a, const char *toml_a, const char *b,
                   const char *toml_b)
{
    struct cn_err err;
    struct cn_classes classes;
    struct cn_plan plan;
    struct cn_buf text = {0};
    struct cn_strings code = {0};
    const char *items[8];
    char words[100];
    struct cn_config *configs[2] = {parse(a, toml_a), b ? parse(b, toml_b) : NULL};
    struct cn_migrate_project projects[2] = {{configs[0], NULL}, {configs[1], NULL}};
    if (world->code) {
        snprintf(words, sizeof(words), "%s", world->code);
        split_words(words, &code, items);
        projects[0].exported = &code;
    }
    int64_t now_ms = world->now_ms ? world->now_ms : 1000;
    struct cn_migrate_options options = {.allow_delete = &world->allow,
                                         .allow_delete_count = world->allow ? 1 : 0,
                                         .recover = &world->recover,
                                         .recover_count = world->recover ? 1 : 0,
                                         .now_ms = now_ms,
                                         .retention_ms = 1000};
    CHECK_INT(0, cn_classes_load(&classes, world->disk, &err));
    CHECK_INT(0, cn_classes_settle(&classes, world->shards, &err));
    cn_plan_make(&plan, &classes, projects, b ? 2 : 1, &options);
    cn_plan_print(&plan, &text);
    snprintf(world->out, sizeof(world->out), "%s", cn_buf_text(&text));
    bool refused = cn_plan_check(&plan, &err) < 0;
    CHECK_INT(refused, plan.refused > 0);
    if (!refused)
        CHECK_INT(0, cn_plan_apply(&plan, world->disk, world->shards, &err));
    cn_buf_fini(&text);
    cn_plan_fini(&plan);
    cn_classes_fini(&classes);
    cn_config_free(configs[0]);
    if (configs[1])
        cn_config_free(configs[1]);
    return !refused;
}

#define APPLIES(world, ...)                        \
    do {                                           \
        bool applied = deploy(world, __VA_ARGS__); \
        if (!applied)                              \
            fprintf(stderr, "%s", (world)->out);   \
        CHECK(applied);                            \
    } while (0)
#define REFUSES(world, words, ...)               \
    do {                                         \
        CHECK(!deploy(world, __VA_ARGS__));      \
        if (!strstr((world)->out, words))        \
            fprintf(stderr, "%s", (world)->out); \
        CHECK(strstr((world)->out, words));      \
    } while (0)

/* The number of a class, or 0. */
static int64_t number(struct world *world, const char *script, const char *name)
{
    struct cn_classes classes;
    struct cn_err err;
    CHECK_INT(0, cn_classes_load(&classes, world->disk, &err));
    const struct cn_class_entry *entry = cn_classes_resolve(&classes, script, name);
    int64_t ns = entry ? entry->ns : 0;
    if (entry) { /* K2 */
        char stored[CN_OBJECT_NAME_MAX + 1];
        char *expected = cn_sprintf("%s/%s", entry->script, entry->name);
        CHECK_INT(0, cn_store_namespace_name(world->store, (uint32_t)ns, stored, &err));
        CHECK_STR(expected, stored);
        cn_free(expected);
    }
    cn_classes_fini(&classes);
    return ns;
}

#define V1 "[[migrations]]\ntag = \"v1\"\nnew_sqlite_classes = [\"A\"]\n"
#define RENAME "[[migrations]]\ntag = \"v2\"\nrenamed_classes = [{from = \"A\", to = \"B\"}]\n"

TEST(migrate, DO_MIG_1_each_tag_is_applied_once_and_in_order)
{
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", V1, NULL, NULL);
    CHECK_STR("create    w/A (sqlite)\n", world.out);
    int64_t a = number(&world, "w", "A");
    CHECK(a > 0);
    APPLIES(&world, "w", V1, NULL, NULL);
    CHECK_STR("", world.out);
    APPLIES(&world, "w", V1 RENAME, NULL, NULL);
    CHECK_STR("rename    w/A -> w/B\n", world.out);
    CHECK_INT(a, number(&world, "w", "B"));
    APPLIES(&world, "w", V1 RENAME, NULL, NULL);
    CHECK_STR("", world.out);
    /* Old entries may go as long as the last one stays. */
    APPLIES(&world, "w", RENAME, NULL, NULL);
    world_close(&world);
}

TEST(migrate, DO_MIG_1_lists_out_of_step_are_refused)
{
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", V1 RENAME, NULL, NULL);
    CHECK_STR("create    w/B (sqlite)\n", world.out); /* the net effect */
    REFUSES(&world, "no longer has it", "w", V1, NULL, NULL);
    REFUSES(&world, "is new, but stands before", "w",
            "[[migrations]]\ntag = \"v0\"\nnew_classes = [\"Z\"]\n" V1 RENAME, NULL, NULL);
    REFUSES(&world, "stands behind", "w", RENAME V1, NULL, NULL);
    REFUSES(&world, "two migrations have the tag \"v1\"", "w", V1 V1, NULL, NULL);
    REFUSES(&world, "exists already", "w",
            RENAME "[[migrations]]\ntag = \"v3\"\nnew_sqlite_classes = [\"B\"]\n", NULL, NULL);
    REFUSES(&world, "it does not exist", "w",
            RENAME "[[migrations]]\ntag = \"v3\"\nrenamed_classes = [{from = \"X\", to = \"Y\"}]\n",
            NULL, NULL);
    REFUSES(&world, "neither \"migrations\" nor \"exports\"", "w", "", NULL, NULL);
    world_close(&world);
}

TEST(migrate, DO_MIG_2_names_can_be_swapped_and_reused_and_old_bindings_forward)
{
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", "[[migrations]]\ntag = \"v1\"\nnew_sqlite_classes = [\"A\", \"B\"]\n",
            NULL, NULL);
    int64_t a = number(&world, "w", "A"), b = number(&world, "w", "B");
    APPLIES(&world, "w",
            "[[migrations]]\ntag = \"v1\"\n"
            "[[migrations]]\ntag = \"v2\"\nrenamed_classes = [{from = \"A\", to = \"T\"}, "
            "{from = \"B\", to = \"A\"}, {from = \"T\", to = \"B\"}]\n",
            NULL, NULL);
    CHECK_INT(b, number(&world, "w", "A"));
    CHECK_INT(a, number(&world, "w", "B"));
    CHECK_INT(a, number(&world, "w", "T")); /* forwards */
    APPLIES(&world, "w",
            "[[migrations]]\ntag = \"v2\"\n"
            "[[migrations]]\ntag = \"v3\"\nrenamed_classes = [{from = \"A\", to = \"C\"}]\n"
            "new_sqlite_classes = [\"A\"]\n",
            NULL, NULL);
    CHECK_INT(b, number(&world, "w", "C"));
    CHECK(number(&world, "w", "A") > b);
    world_close(&world);
}

TEST(migrate, DO_MIG_2_deletion_needs_permission_and_can_be_taken_back)
{
    static const char with_delete[] =
        V1 "[[migrations]]\ntag = \"v2\"\ndeleted_classes = [\"A\"]\n";
    static const char anew[] = "[[migrations]]\ntag = \"v2\"\n"
                               "[[migrations]]\ntag = \"v3\"\nnew_sqlite_classes = [\"A\"]\n";
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", V1, NULL, NULL);
    int64_t a = number(&world, "w", "A");
    REFUSES(&world, "--allow-delete A", "w", with_delete, NULL, NULL);
    world.allow = "other/A";
    REFUSES(&world, "--allow-delete A", "w", with_delete, NULL, NULL);
    world.allow = "w/A";
    APPLIES(&world, "w", with_delete, NULL, NULL);
    CHECK(strstr(world.out, "delete    w/A (can be taken back until "));
    CHECK_INT(0, number(&world, "w", "A"));
    world.recover = "A";
    APPLIES(&world, "w", anew, NULL, NULL);
    CHECK_STR("recover   w/A\n", world.out);
    CHECK_INT(a, number(&world, "w", "A"));
    world_close(&world);
}

/* K3: some of its objects may be gone. */
TEST(migrate, a_deleted_class_cannot_be_taken_back_after_its_time)
{
    static const char with_delete[] =
        V1 "[[migrations]]\ntag = \"v2\"\ndeleted_classes = [\"A\"]\n";
    static const char anew[] = "[[migrations]]\ntag = \"v2\"\n"
                               "[[migrations]]\ntag = \"v3\"\nnew_sqlite_classes = [\"A\"]\n";
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", V1, NULL, NULL);
    int64_t a = number(&world, "w", "A");
    world.allow = "w/A";
    APPLIES(&world, "w", with_delete, NULL, NULL);
    world.recover = "A";
    world.now_ms = 2001;
    APPLIES(&world, "w", anew, NULL, NULL);
    CHECK(!strstr(world.out, "recover"));
    CHECK(number(&world, "w", "A") != a);
    world_close(&world);
}

TEST(migrate, a_new_class_of_a_deleted_name_is_empty)
{
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", V1, NULL, NULL);
    int64_t a = number(&world, "w", "A");
    world.allow = "A";
    APPLIES(&world, "w",
            V1 "[[migrations]]\ntag = \"v2\"\ndeleted_classes = [\"A\"]\n"
               "new_sqlite_classes = [\"A\"]\n",
            NULL, NULL);
    CHECK(number(&world, "w", "A") != a);
    /* On a fresh directory the same list deletes nothing and asks for nothing. */
    struct world fresh;
    world_open(&fresh);
    APPLIES(&fresh, "w",
            V1 "[[migrations]]\ntag = \"v2\"\ndeleted_classes = [\"A\"]\n"
               "new_sqlite_classes = [\"A\"]\n",
            NULL, NULL);
    CHECK_STR("create    w/A (sqlite)\n", fresh.out);
    world_close(&fresh);
    world_close(&world);
}

TEST(migrate, DO_MIG_2_a_transfer_moves_the_namespace_to_another_worker)
{
    static const char take[] = "[[migrations]]\ntag = \"t1\"\ntransferred_classes = "
                               "[{from = \"A\", from_script = \"w\", to = \"C\"}]\n";
    struct world world;
    world_open(&world);
    REFUSES(&world, "it does not exist", "v", take, NULL, NULL);
    APPLIES(&world, "w", V1, NULL, NULL);
    int64_t a = number(&world, "w", "A");
    /* In whichever order they stand; the source still binds its old class. */
    APPLIES(&world, "v", take, "w",
            V1 "[[durable_objects.bindings]]\nname = \"A\"\nclass_name = \"A\"\n");
    CHECK(strstr(world.out, "transfer  w/A -> v/C\n"));
    CHECK(strstr(world.out, "leads to v/C"));
    CHECK_INT(a, number(&world, "v", "C"));
    CHECK_INT(a, number(&world, "w", "A"));
    world_close(&world);
}

TEST(migrate, DO_MIG_3_exports_declare_create_rename_and_delete)
{
    static const char created[] = "[exports.A]\ntype = \"durable-object\"\nstorage = \"sqlite\"\n";
    static const char renamed[] =
        "[exports.A]\ntype = \"durable-object\"\nstate = \"renamed\"\nrenamed_to = \"B\"\n"
        "[exports.B]\ntype = \"durable-object\"\nstorage = \"sqlite\"\n";
    static const char deleted[] = "[exports.B]\ntype = \"durable-object\"\nstate = \"deleted\"\n";
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", created, NULL, NULL);
    CHECK_STR("create    w/A (sqlite)\n", world.out);
    int64_t a = number(&world, "w", "A");
    REFUSES(&world, "does not mention it", "w",
            "[exports.Z]\ntype = \"durable-object\"\nstorage = \"sqlite\"\n", NULL, NULL);
    REFUSES(&world, "cannot become legacy-kv", "w",
            "[exports.A]\ntype = \"durable-object\"\nstorage = \"legacy-kv\"\n", NULL, NULL);
    REFUSES(&world, "cannot go back to \"migrations\"", "w", V1, NULL, NULL);
    REFUSES(&world, "must be declared too", "w",
            "[exports.A]\ntype = \"durable-object\"\nstate = \"renamed\"\nrenamed_to = \"B\"\n",
            NULL, NULL);
    APPLIES(&world, "w", renamed, NULL, NULL);
    CHECK_STR("rename    w/A -> w/B\n", world.out);
    CHECK_INT(a, number(&world, "w", "B"));
    APPLIES(&world, "w", renamed, NULL, NULL);
    CHECK(strstr(world.out, "can be removed"));
    REFUSES(&world, "--allow-delete B", "w", deleted, NULL, NULL);
    world.allow = "B";
    world.code = "default B";
    REFUSES(&world, "while the code exports it", "w", deleted, NULL, NULL);
    world.code = "default";
    APPLIES(&world, "w", deleted, NULL, NULL);
    CHECK(strstr(world.out, "delete    w/B"));
    APPLIES(&world, "w", deleted, NULL, NULL);
    CHECK(strstr(world.out, "can be removed"));
    world_close(&world);
}

TEST(migrate, DO_MIG_3_exports_transfer_in_two_phases)
{
    static const char source[] = "[exports.A]\ntype = \"durable-object\"\nstorage = \"sqlite\"\n";
    static const char expecting[] =
        "[exports.A]\ntype = \"durable-object\"\nstorage = \"sqlite\"\n"
        "state = \"expecting-transfer\"\ntransfer_from = \"w\"\n"
        "[[durable_objects.bindings]]\nname = \"A\"\nclass_name = \"A\"\n";
    static const char given[] = "[exports.A]\ntype = \"durable-object\"\n"
                                "state = \"transferred\"\ntransferred_to = \"v\"\n";
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", source, NULL, NULL);
    int64_t a = number(&world, "w", "A");
    REFUSES(&world, "expecting-transfer", "w", given, NULL, NULL);
    APPLIES(&world, "v", expecting, NULL, NULL);
    CHECK(strstr(world.out, "will be w/A once"));
    CHECK_INT(a, number(&world, "v", "A")); /* meanwhile the binding leads to the source */
    APPLIES(&world, "w", given, NULL, NULL);
    CHECK_STR("transfer  w/A -> v/A\n", world.out);
    APPLIES(&world, "v", expecting, NULL, NULL);
    CHECK_INT(a, number(&world, "v", "A"));
    world_close(&world);
}

TEST(migrate, DO_MIG_1_bindings_and_code_must_agree_with_the_classes)
{
    struct world world;
    world_open(&world);
    REFUSES(&world, "which does not exist; create it by a migration", "w",
            V1 "[[durable_objects.bindings]]\nname = \"X\"\nclass_name = \"Nope\"\n", NULL, NULL);
    REFUSES(&world, "serve that worker too", "w",
            "[[durable_objects.bindings]]\nname = \"X\"\nclass_name = \"A\"\nscript_name = "
            "\"other\"\n",
            NULL, NULL);
    world.code = "default";
    REFUSES(&world, "the code exports no class \"A\"", "w", V1, NULL, NULL);
    world.code = "default A";
    APPLIES(&world, "w", V1, NULL, NULL);
    world.code = "default";
    REFUSES(&world, "the code no longer exports the class \"A\"", "w", V1, NULL, NULL);
    world.code = NULL;
    APPLIES(&world, "plain", "[[durable_objects.bindings]]\nname = \"X\"\nclass_name = \"Bound\"\n",
            NULL, NULL);
    CHECK(strstr(world.out, "created because it is bound"));
    world_close(&world);
}

TEST(migrate, M4_rules_that_come_later_mean_the_classes_that_were_bound)
{
    struct world world;
    world_open(&world);
    APPLIES(&world, "w", "[[durable_objects.bindings]]\nname = \"X\"\nclass_name = \"A\"\n", NULL,
            NULL);
    uint32_t a = number(&world, "w", "A");
    REFUSES(&world, "exists already", "w", "[[migrations]]\ntag = \"v1\"\nnew_classes = [\"A\"]\n",
            NULL, NULL);
    APPLIES(&world, "w", "[[migrations]]\ntag = \"v1\"\nnew_sqlite_classes = [\"A\", \"B\"]\n",
            NULL, NULL);
    CHECK_INT(a, number(&world, "w", "A"));
    /* From here on they are rules as any others. */
    REFUSES(&world, "exists already", "w",
            "[[migrations]]\ntag = \"v1\"\nnew_sqlite_classes = [\"A\", \"B\"]\n[[migrations]]\n"
            "tag = \"v2\"\nnew_sqlite_classes = [\"A\"]\n",
            NULL, NULL);
    world_close(&world);
}

/* K2: what a crash leaves half done is set right. */
TEST(migrate, names_in_the_store_follow_the_table)
{
    struct world world;
    struct cn_err err;
    world_open(&world);
    /* A directory of before there was a table: the class keeps its objects. */
    uint32_t old;
    CHECK_INT(0, cn_store_namespace(world.store, "w/A", &old, &err));
    APPLIES(&world, "w", V1, NULL, NULL);
    CHECK_INT(old, number(&world, "w", "A"));
    /* The rename reached the store, but not the table; and something else took the name. */
    uint32_t other;
    CHECK_INT(0, cn_store_namespace_rename(world.store, "w/A", "w/B", &err));
    CHECK_INT(0, cn_store_namespace(world.store, "w/A", &other, &err));
    APPLIES(&world, "w", V1, NULL, NULL);
    CHECK_INT(old, number(&world, "w", "A"));
    APPLIES(&world, "w", V1 RENAME, NULL, NULL);
    CHECK_INT(old, number(&world, "w", "B"));
    world_close(&world);
}

TEST(migrate, a_damaged_table_is_refused)
{
    struct world world;
    struct cn_classes classes;
    struct cn_err err;
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "{\"version\": 2}",
                                      "{\"classes\": []}",
                                      "{\"version\": 1, \"classes\": [{\"namespace\": 0, "
                                      "\"script\": \"w\", \"class\": \"A\", \"storage\": \"x\"}]}"};
    world_open(&world);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(0, cn_disk_replace(world.disk, CN_CLASSES_FILE, bad[i], strlen(bad[i])));
        CHECK(cn_classes_load(&classes, world.disk, &err) < 0);
        cn_classes_fini(&classes);
    }
    world_close(&world);
}

/* ---- losing power at every operation of a deployment ---- */

enum { IMAGES_MAX = 400 };
struct images {
    struct simdisk *sim;
    struct simdisk *items[IMAGES_MAX];
    int count;
};

static void take_image(void *data, const char *name, const char *path)
{
    struct images *images = data;
    (void)name, (void)path;
    if (images->count < IMAGES_MAX) {
        images->items[images->count] = simdisk_crash(images->sim, (uint64_t)images->count);
        images->count++;
    }
}

static void open_on(struct world *world, struct simdisk *sim)
{
    struct cn_err err;
    *world = (struct world){.disk = simdisk_disk(sim)};
    struct cn_store_config config = {.disk = world->disk, .manual = true, .segment_size = 1 << 20};
    CHECK_INT(0, cn_store_open(&config, &world->store, &err));
    CHECK_INT(0, cn_shards_single(world->store, NULL, &world->shards, &err));
}

#define BEFORE "[[migrations]]\ntag = \"v1\"\nnew_sqlite_classes = [\"A\", \"C\"]\n"
#define AFTER                                                          \
    BEFORE "[[migrations]]\ntag = \"v2\"\ndeleted_classes = [\"C\"]\n" \
           "renamed_classes = [{from = \"A\", to = \"B\"}]\nnew_sqlite_classes = [\"A\"]\n"

/* K1: before or after, nothing between; and the same deployment can be done again. */
TEST(migrate, DO_MIG_2_a_power_loss_at_any_moment_leaves_the_state_before_or_after)
{
    struct images images = {.sim = simdisk_new()};
    struct world world;
    open_on(&world, images.sim);
    APPLIES(&world, "w", BEFORE, NULL, NULL);
    int64_t a = number(&world, "w", "A"), c = number(&world, "w", "C");
    simdisk_set_hook(images.sim, SIMDISK_CHANGES, take_image, &images);
    world.allow = "C";
    APPLIES(&world, "w", AFTER, NULL, NULL);
    simdisk_set_hook(images.sim, 0, NULL, NULL);
    cn_shards_free(world.shards);
    cn_store_close(world.store);
    CHECK(images.count > 5 && images.count < IMAGES_MAX);
    int seen[2] = {0};
    for (int i = 0; i < images.count; i++) {
        struct cn_err err;
        struct cn_classes classes;
        open_on(&world, images.items[i]);
        CHECK_INT(0, cn_classes_load(&classes, world.disk, &err));
        CHECK_INT(0, cn_classes_settle(&classes, world.shards, &err));
        bool after = cn_classes_find(&classes, "w", "B");
        cn_classes_fini(&classes);
        seen[after]++;
        CHECK_INT(a, number(&world, "w", after ? "B" : "A"));
        CHECK_INT(after ? 0 : c, number(&world, "w", "C"));
        world.allow = "C";
        APPLIES(&world, "w", AFTER, NULL, NULL);
        CHECK_INT(a, number(&world, "w", "B"));
        int64_t anew = number(&world, "w", "A");
        CHECK(anew > 0 && anew != a && anew != c);
        cn_shards_free(world.shards);
        cn_store_close(world.store);
        simdisk_free(images.items[i]);
    }
    CHECK(seen[0] > 0 && seen[1] > 0);
    simdisk_free(images.sim);
}
