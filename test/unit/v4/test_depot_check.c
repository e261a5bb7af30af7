/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of what was deployed (D9): damage is found before a version is served, and is said of
 * the version it belongs to. */
#include <stdio.h>
#include <string.h>

#include "base/disk.h"
#include "base/mem.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"
#include "v4/depot.h"

/* A worker "w" with a version of these files, committed. */
static struct cn_depot *open_with_version(struct simdisk *sim, char id[CN_DEPOT_ID_SIZE])
{
    struct cn_depot *depot = NULL;
    struct cn_err err = {0};
    struct cn_buf json = {0};
    struct cn_depot_version version = {.created_ms = 1000, .source = "test", .author = "me"};
    CHECK_INT(0, cn_depot_open(simdisk_disk(sim), "/nowhere", NULL, NULL, &depot, &err));
    struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
    struct cn_depot_script *script = cn_depot_add_script(state, "w", 1000);
    cn_depot_uuid(version.id);
    memcpy(version.code, version.id, sizeof(version.code));
    memcpy(id, version.id, CN_DEPOT_ID_SIZE);
    cn_depot_add_version(script, &version);
    cn_depot_deploy_version(script, id, "test", "me", "", 1000);
    CHECK_INT(0,
              cn_depot_put_file(depot, id, "src", "deep/index.js", "export default {}", 17, &err));
    CHECK_INT(0, cn_depot_put_file(depot, id, "assets", "a \"b\".txt", "asset", 5, &err));
    CHECK_INT(0, cn_depot_put_sums(depot, id, &err));
    CHECK_INT(0, cn_depot_put_file(depot, id, "bundle", "w.js", "(function(){})", 14, &err));
    CHECK_INT(0, cn_depot_put_file(depot, id, "bundle", "job.json", "{}", 2, &err));
    CHECK_INT(0, cn_depot_put_built(depot, id, true, &err));
    cn_buf_append_str(&json, "{\"worker\":\"w\"}");
    CHECK_INT(0, cn_depot_put_version(depot, id, &json, &err));
    cn_buf_fini(&json);
    CHECK_INT(0, cn_depot_change_end(depot, state, NULL, NULL, &err));
    return depot;
}

struct problems {
    int count;
    char last[400];
};

static void on_problem(void *data, const char *text)
{
    struct problems *problems = data;
    problems->count++;
    snprintf(problems->last, sizeof(problems->last), "%s", text);
}

/* D9 */
TEST(depot_check, finds_a_flipped_bit_and_says_of_which_version)
{
    struct simdisk *sim = simdisk_new();
    char id[CN_DEPOT_ID_SIZE], path[200];
    cn_depot_close(open_with_version(sim, id));
    struct problems problems = {0};
    cn_depot_check(simdisk_disk(sim), on_problem, &problems);
    CHECK_INT(0, problems.count);
    snprintf(path, sizeof(path), "deployed/code/%s/src/deep/index.js", id);
    CHECK_INT(0, simdisk_damage(sim, path, 3, 1));
    cn_depot_check(simdisk_disk(sim), on_problem, &problems);
    CHECK_INT(1, problems.count);
    CHECK(strstr(problems.last, id) && strstr(problems.last, "index.js is damaged"));
    snprintf(path, sizeof(path), "deployed/code/%s/assets/a \"b\".txt", id);
    CHECK_INT(0, cn_disk_unlink(simdisk_disk(sim), path));
    snprintf(path, sizeof(path), "deployed/code/%s/bundle/w.js", id);
    CHECK_INT(0, simdisk_damage(sim, path, 3, 1));
    problems.count = 0;
    cn_depot_check(simdisk_disk(sim), on_problem, &problems);
    CHECK_INT(3, problems.count);
    simdisk_free(sim);
}

struct expectation {
    const char *file; /* below code/ID/; NULL: the version's own */
    bool source, built;
};

/* Opens it again: what was found whole before is not looked at twice. */
static void check_after_damage(const struct expectation *expected)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot;
    struct cn_err err = {0};
    char id[CN_DEPOT_ID_SIZE], path[200];
    cn_depot_close(open_with_version(sim, id));
    if (expected->file)
        snprintf(path, sizeof(path), "deployed/code/%s/%s", id, expected->file);
    else
        snprintf(path, sizeof(path), "deployed/versions/%s.json", id);
    CHECK_INT(0, simdisk_damage(sim, path, 1, 2));
    CHECK_INT(0, cn_depot_open(simdisk_disk(sim), "/nowhere", NULL, NULL, &depot, &err));
    struct cn_depot_state *state = cn_depot_take(depot);
    const struct cn_depot_script *script = cn_depot_find(state, "w");
    CHECK_INT(expected->source ? CN_ECORRUPT : 0, cn_depot_verify(depot, script, id, &err));
    CHECK_INT(expected->built ? CN_ECORRUPT : 0, cn_depot_verify_built(depot, script, id, &err));
    if (expected->source || expected->built)
        CHECK(strstr(err.text, id));
    CHECK_INT(CN_ECORRUPT, cn_depot_verify_built(depot, script, "none", &err));
    cn_depot_state_unref(state);
    cn_depot_close(depot);
    simdisk_free(sim);
}

TEST(depot_verify, tells_damage_of_what_was_uploaded_from_that_of_what_was_built)
{
    static const struct expectation all[] = {
        {"src/deep/index.js", true, false}, {"assets/a \"b\".txt", true, false},
        {"sums.json", true, false},         {"bundle/w.js", false, true},
        {"bundle.json", false, true},       {NULL, true, false},
        {"bundle/job.json", false, false}, /* written anew with every attempt to build */
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        check_after_damage(&all[i]);
}

/* A version of a server that made no checksums is served. */
TEST(depot_verify, lists_that_were_never_made_are_no_damage)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err = {0};
    char id[CN_DEPOT_ID_SIZE], path[200];
    struct cn_depot *depot = open_with_version(sim, id);
    struct cn_depot_state *state = cn_depot_take(depot);
    const struct cn_depot_script *script = cn_depot_find(state, "w");
    snprintf(path, sizeof(path), "deployed/code/%s/bundle.json", id);
    CHECK_INT(0, cn_disk_unlink(simdisk_disk(sim), path));
    CHECK_INT(0, cn_depot_verify_built(depot, script, id, &err));
    /* Built again outside of a change: vouched for, and durable. */
    CHECK_INT(0, cn_depot_put_built(depot, id, false, &err));
    struct simdisk *after = simdisk_crash(sim, test_seed());
    cn_depot_state_unref(state);
    cn_depot_close(depot);
    struct cn_disk_file *file;
    CHECK_INT(0, cn_disk_open(simdisk_disk(after), path, CN_DISK_READONLY, &file));
    cn_disk_close(file);
    simdisk_free(after);
    simdisk_free(sim);
}
