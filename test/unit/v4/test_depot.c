/* SPDX-License-Identifier: Apache-2.0 */
/* The depot: what is deployed is the old state or the new one, whole, whatever fails (D1, D2);
 * secrets are of no use elsewhere (D4); names stay inside their folder (D5). */
#include "v4/depot.h"

#include <stdio.h>
#include <string.h>

#include "base/disk.h"
#include "base/mem.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

static struct cn_depot *open_on(struct simdisk *sim)
{
    struct cn_depot *depot = NULL;
    struct cn_err err = {0};
    int rc = cn_depot_open(simdisk_disk(sim), "/nowhere", NULL, NULL, &depot, &err);
    if (rc < 0)
        printf("%s\n", err.text);
    CHECK_INT(0, rc);
    return depot;
}

static struct cn_depot_script *add_deployed(struct cn_depot_state *state, const char *name,
                                            char id[CN_DEPOT_ID_SIZE])
{
    struct cn_depot_version version = {.created_ms = 1000, .source = "test", .author = "me"};
    struct cn_depot_script *script = cn_depot_find(state, name);
    if (!script)
        script = cn_depot_add_script(state, name, 1000);
    cn_depot_uuid(version.id);
    memcpy(version.code, version.id, sizeof(version.code));
    memcpy(id, version.id, CN_DEPOT_ID_SIZE);
    cn_depot_add_version(script, &version);
    cn_depot_deploy_version(script, id, "test", "me", "a \"message\"", 1000);
    return script;
}

TEST(depot_path, stays_inside_its_folder)
{
    static const char *const good[] = {"a", "a/b.js", "a.b/..c/d", ".well-known/x", "\xc3\xa4.txt"};
    static const char *const bad[] = {
        "",     "/a",       "a/",   "..",    "a/../b",           "./a",
        "a//b", "a\\..\\b", "a\nb", "a/./b", "../../etc/passwd", "\xff"};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        CHECK(cn_depot_path_is_good(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!cn_depot_path_is_good(bad[i], strlen(bad[i])));
    CHECK(!cn_depot_path_is_good("a\0b", 3));
    char longer[300];
    memset(longer, 'x', sizeof(longer));
    CHECK(!cn_depot_path_is_good(longer, sizeof(longer)));
    CHECK(cn_depot_path_is_good(longer, 200));
}

TEST(depot_state, comes_back_as_it_was_written)
{
    char id[CN_DEPOT_ID_SIZE];
    struct cn_depot_state *state = cn_depot_state_new();
    struct cn_depot_script *script = add_deployed(state, "b", id);
    cn_depot_texts_add(&script->crons, "*/5 * * * *");
    cn_depot_texts_add(&script->migrations, "{\"tag\":\"v1\"}");
    char other[CN_DEPOT_ID_SIZE];
    add_deployed(state, "a", other);
    cn_depot_add_resource(state, "kv", "0123", "title", 5);
    cn_depot_remove_script(state, "a");
    struct cn_depot_state *copy = cn_depot_state_copy(state);
    CHECK_STR(state->account, copy->account);
    CHECK_INT(1, copy->script_count);
    script = cn_depot_find(copy, "b");
    CHECK(script);
    CHECK_STR(id, cn_depot_serving(script));
    CHECK_STR("a \"message\"", script->deployments[0].message);
    CHECK_INT(1, script->versions[0].number);
    CHECK_STR("*/5 * * * *", script->crons.items[0]);
    CHECK_STR("{\"tag\":\"v1\"}", script->migrations.items[0]);
    CHECK(cn_depot_resource(copy, "kv", NULL, "title"));
    CHECK_INT(1, copy->gone.count);
    CHECK_STR("a", copy->gone.items[0]);
    add_deployed(copy, "a", other);
    CHECK_INT(0, copy->gone.count);
    cn_depot_state_unref(copy);
    cn_depot_state_unref(state);
}

TEST(depot_state, keeps_the_version_that_serves_among_the_last)
{
    char first[CN_DEPOT_ID_SIZE];
    struct cn_depot_state *state = cn_depot_state_new();
    struct cn_depot_script *script = add_deployed(state, "a", first);
    for (int i = 0; i < CN_DEPOT_VERSION_MAX + 20; i++) {
        struct cn_depot_version version = {.created_ms = i};
        cn_depot_uuid(version.id);
        memcpy(version.code, version.id, sizeof(version.code));
        cn_depot_add_version(script, &version);
    }
    CHECK_INT(CN_DEPOT_VERSION_MAX, script->version_count);
    CHECK(cn_depot_find_version(script, first));
    CHECK_INT(CN_DEPOT_VERSION_MAX + 21, script->versions[script->version_count - 1].number);
    cn_depot_state_unref(state);
}

TEST(depot_state, a_roll_out_comes_back_with_the_newest_first)
{
    char first[CN_DEPOT_ID_SIZE], second[CN_DEPOT_ID_SIZE];
    struct cn_depot_state *state = cn_depot_state_new();
    add_deployed(state, "a", first);
    struct cn_depot_script *script = add_deployed(state, "a", second);
    struct cn_depot_shares shares = {.items = {{.share = 9000}, {.share = 1000}}, .count = 2};
    memcpy(shares.items[0].version, first, sizeof(first));
    memcpy(shares.items[1].version, second, sizeof(second));
    cn_depot_deploy_shares(script, &shares, "test", "me", NULL, 2000);
    for (int i = 0; i < CN_DEPOT_VERSION_MAX + 5; i++) { /* both stay */
        struct cn_depot_version version = {.created_ms = i};
        cn_depot_uuid(version.id);
        memcpy(version.code, version.id, sizeof(version.code));
        cn_depot_add_version(script, &version);
    }
    struct cn_depot_state *copy = cn_depot_state_copy(state);
    script = cn_depot_find(copy, "a");
    CHECK_INT(CN_DEPOT_VERSION_MAX, script->version_count);
    CHECK_INT(2, script->serving.count);
    CHECK_STR(second, script->serving.items[0].version);
    CHECK_INT(1000, script->serving.items[0].share);
    CHECK_STR(first, script->serving.items[1].version);
    CHECK_INT(9000, script->serving.items[1].share);
    CHECK(cn_depot_serves(script, first) && cn_depot_serves(script, second));
    CHECK_INT(1, script->deployments[0].shares.count);
    CHECK_INT(2, script->deployments[2].shares.count);
    cn_depot_state_unref(copy);
    cn_depot_state_unref(state);
}

TEST(depot_state, refuses_what_is_not_complete)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"format\":1,\"account\":\"x\"}",
        "{\"format\":1,\"account\":\"0123456789abcdef0123456789abcdef\",\"scripts\":[{}]}",
        "{\"format\":1,\"account\":\"0123456789abcdef0123456789abcdef\",\"scripts\":[{\"name\":"
        "\"a\",\"id\":\"0123456789abcdef0123456789abcdef\",\"serving\":\"nothing\"}]}",
        "{\"format\":2}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct cn_err err = {0};
        CHECK(!cn_depot_state_read(bad[i], strlen(bad[i]), &err));
        CHECK(err.code < 0);
    }
}

/* D4 */
TEST(depot_state, keeps_the_last_notes_of_who_changed_what)
{
    struct cn_depot_state *state = cn_depot_state_new();
    for (int i = 0; i < CN_DEPOT_NOTE_MAX + 5; i++) {
        char detail[20];
        snprintf(detail, sizeof(detail), "n\"%d", i);
        struct cn_depot_note note = {
            .time_ms = i, .token = "0123", .by = "me", .action = "deploy", .detail = detail};
        cn_depot_add_note(state, &note);
    }
    struct cn_depot_state *copy = cn_depot_state_copy(state); /* DA: as text and back */
    cn_depot_state_unref(state);
    CHECK_INT(CN_DEPOT_NOTE_MAX, copy->note_count);
    CHECK_STR("n\"5", copy->notes[0].detail);
    CHECK_STR("0123", copy->notes[0].token);
    CHECK_STR("", copy->notes[0].worker);
    CHECK_INT(CN_DEPOT_NOTE_MAX + 4, copy->notes[CN_DEPOT_NOTE_MAX - 1].time_ms);
    cn_depot_state_unref(copy);
}

TEST(depot_seal, is_of_no_use_in_another_place)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = open_on(sim);
    struct cn_buf sealed = {0}, again = {0}, text = {0};
    cn_depot_seal(depot, "worker", "NAME", "secret", 6, &sealed);
    cn_depot_seal(depot, "worker", "NAME", "secret", 6, &again);
    CHECK(sealed.size != again.size || memcmp(sealed.data, again.data, sealed.size) != 0);
    CHECK(!memmem(sealed.data, sealed.size, "secret", 6));
    const char *bytes = (const char *)sealed.data;
    CHECK(!cn_depot_unseal(depot, "other", "NAME", bytes, sealed.size, &text));
    CHECK(!cn_depot_unseal(depot, "worker", "NAM", bytes, sealed.size, &text));
    CHECK(!cn_depot_unseal(depot, "workerN", "AME", bytes, sealed.size, &text));
    CHECK(!cn_depot_unseal(depot, "worker", "NAME", bytes, sealed.size - 4, &text));
    CHECK(!cn_depot_unseal(depot, "worker", "NAME", "", 0, &text));
    CHECK_INT(0, text.size);
    cn_depot_close(depot);
    depot = open_on(sim); /* the key is the same */
    CHECK(cn_depot_unseal(depot, "worker", "NAME", bytes, sealed.size, &text));
    CHECK_STR("secret", cn_buf_text(&text));
    cn_depot_close(depot);
    cn_buf_fini(&sealed);
    cn_buf_fini(&again);
    cn_buf_fini(&text);
    simdisk_free(sim);
}

/* As a lane does it that has started the next state. */
static int commit_next(struct cn_depot *depot, struct cn_err *err)
{
    struct cn_depot_state *next = cn_depot_take_next(depot);
    int rc = cn_depot_commit(depot, next, NULL, err);
    cn_depot_state_unref(next);
    return rc;
}

static int commit_now(void *data, struct cn_err *err)
{
    return commit_next(data, err);
}

static int refuse(void *data, struct cn_err *err)
{
    (void)data;
    return cn_err_set(err, CN_EJS, "it does not start");
}

/* D3: what does not start changes nothing. */
TEST(depot_change, is_dropped_if_it_does_not_start)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = open_on(sim);
    struct cn_err err = {0};
    char id[CN_DEPOT_ID_SIZE];
    struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
    add_deployed(state, "a", id);
    CHECK_INT(CN_EJS, cn_depot_change_end(depot, state, refuse, NULL, &err));
    state = cn_depot_take(depot);
    CHECK_INT(0, state->script_count);
    cn_depot_state_unref(state);
    cn_depot_close(depot);
    depot = open_on(sim);
    state = cn_depot_take(depot);
    CHECK_INT(0, state->script_count);
    cn_depot_state_unref(state);
    cn_depot_close(depot);
    simdisk_free(sim);
}

/* D8: it was committed, and then nobody could wait for the other lanes. */
static int commit_and_leave(void *data, struct cn_err *err)
{
    CHECK_INT(0, commit_next(data, err));
    return cn_err_set(err, CN_ECLOSED, "the server is stopping");
}

TEST(depot_change, stands_once_it_is_committed)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = open_on(sim);
    struct cn_err err = {0};
    char id[CN_DEPOT_ID_SIZE];
    struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
    add_deployed(state, "a", id);
    CHECK_INT(0, cn_depot_change_end(depot, state, commit_and_leave, depot, &err));
    CHECK_INT(0, commit_next(depot, &err)); /* a lane that comes late finds nothing to do */
    state = cn_depot_take(depot);
    CHECK_INT(1, state->script_count);
    cn_depot_state_unref(state);
    cn_depot_close(depot);
    simdisk_free(sim);
}

/* D3: a reload that was under way when the change began commits what it was made of: nothing. */
static int commit_another(void *data, struct cn_err *err)
{
    struct cn_depot_state *current = cn_depot_take(data);
    CHECK_INT(0, cn_depot_commit(data, current, NULL, err));
    cn_depot_state_unref(current);
    return cn_err_set(err, CN_EJS, "it does not start");
}

TEST(depot_change, is_not_committed_by_another_deployment)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = open_on(sim);
    struct cn_err err = {0};
    char id[CN_DEPOT_ID_SIZE];
    struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
    add_deployed(state, "a", id);
    CHECK_INT(CN_EJS, cn_depot_change_end(depot, state, commit_another, depot, &err));
    state = cn_depot_take(depot);
    CHECK_INT(0, state->script_count);
    cn_depot_state_unref(state);
    cn_depot_close(depot);
    simdisk_free(sim);
}

/* DC: the right to it is lost while it is started. */
static bool right;

static bool has_right(void *data)
{
    CHECK(data == &right);
    return right;
}

static int lose_and_commit(void *data, struct cn_err *err)
{
    right = false;
    return commit_next(data, err);
}

TEST(depot_change, DC_is_refused_at_the_last_moment_if_the_right_to_it_is_lost)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = open_on(sim);
    struct cn_err err = {0};
    char id[CN_DEPOT_ID_SIZE];
    for (int deploys = 0; deploys < 2; deploys++) {
        struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
        right = deploys;
        cn_depot_change_guard(depot, has_right, &right);
        add_deployed(state, "a", id);
        CHECK_INT(CN_EDENIED,
                  cn_depot_change_end(depot, state, deploys ? lose_and_commit : NULL, depot, &err));
        state = cn_depot_take(depot);
        CHECK_INT(0, state->script_count);
        cn_depot_state_unref(state);
    }
    /* The next change is another one's. */
    struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
    add_deployed(state, "a", id);
    CHECK_INT(0, cn_depot_change_end(depot, state, commit_now, depot, &err));
    cn_depot_close(depot);
    simdisk_free(sim);
}

/* Whoever fails after the state was written has it taken back. */
static int commit_and_revert(void *data, struct cn_err *err)
{
    int rc = commit_next(data, err);
    cn_depot_revert(data);
    return rc < 0 ? rc : cn_err_set(err, CN_EREADONLY, "classes.json");
}

TEST(depot_change, is_taken_back_if_what_belongs_to_it_fails)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = open_on(sim);
    struct cn_err err = {0};
    char id[CN_DEPOT_ID_SIZE];
    struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
    add_deployed(state, "a", id);
    CHECK_INT(CN_EREADONLY, cn_depot_change_end(depot, state, commit_and_revert, depot, &err));
    cn_depot_close(depot);
    depot = open_on(sim);
    state = cn_depot_take(depot);
    CHECK_INT(0, state->script_count);
    cn_depot_state_unref(state);
    cn_depot_close(depot);
    simdisk_free(sim);
}

/* The power goes at every operation of a change, and is back: old or new, whole (D2). */
TEST(depot_change, is_old_or_new_after_a_loss_of_power)
{
    unsigned seen_old = 0, seen_new = 0;
    for (uint64_t at = 1; at < 40; at++) {
        struct simdisk *sim = simdisk_new();
        struct cn_depot *depot = open_on(sim);
        struct cn_err err = {0};
        char first[CN_DEPOT_ID_SIZE], second[CN_DEPOT_ID_SIZE];
        struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
        add_deployed(state, "a", first);
        CHECK_INT(0, cn_depot_change_end(depot, state, commit_now, depot, &err));
        struct simdisk_fault fault = {.kinds = SIMDISK_ALL, .at = at, .code = -5, .sticky = true};
        simdisk_set_fault(sim, &fault);
        state = cn_depot_change_begin(depot, NULL);
        add_deployed(state, "a", second);
        int rc = cn_depot_change_end(depot, state, commit_now, depot, &err);
        struct simdisk *after = simdisk_crash(sim, at);
        cn_depot_close(depot);
        simdisk_free(sim);
        depot = open_on(after);
        state = cn_depot_take(depot);
        const struct cn_depot_script *script = cn_depot_find(state, "a");
        CHECK(script);
        bool is_new = strcmp(cn_depot_serving(script), second) == 0;
        CHECK(is_new || strcmp(cn_depot_serving(script), first) == 0);
        CHECK_INT(is_new ? 2 : 1, script->version_count);
        CHECK(rc < 0 || is_new); /* what was acknowledged is there */
        seen_new += is_new;
        seen_old += !is_new;
        cn_depot_state_unref(state);
        cn_depot_close(depot);
        simdisk_free(after);
    }
    CHECK(seen_old > 0 && seen_new > 0);
}

TEST(depot, refuses_a_state_that_is_damaged)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err = {0};
    struct cn_depot *depot = open_on(sim);
    cn_depot_close(depot);
    CHECK_INT(0, simdisk_damage(sim, "deployed/state.json", 60, 3));
    CHECK_INT(CN_ECORRUPT, cn_depot_open(simdisk_disk(sim), "/nowhere", NULL, NULL, &depot, &err));
    simdisk_free(sim);
}

static void count_problem(void *data, const char *text)
{
    CHECK(strstr(text, "deployed/") != NULL);
    ++*(int *)data;
}

static int problems(struct simdisk *sim)
{
    int count = 0;
    cn_depot_check(simdisk_disk(sim), count_problem, &count);
    return count;
}

/* Whatever bit is changed, of whatever file. */
TEST(depot, check_finds_what_is_damaged)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err = {0};
    CHECK_INT(0, problems(sim)); /* nothing was ever deployed */
    struct cn_depot *depot = open_on(sim);
    char id[CN_DEPOT_ID_SIZE], path[80];
    struct cn_buf json = {0};
    struct cn_depot_state *state = cn_depot_change_begin(depot, NULL);
    add_deployed(state, "a", id);
    cn_buf_append_str(&json, "{\"bindings\":[]}");
    CHECK_INT(0, cn_depot_put_version(depot, id, &json, &err));
    CHECK_INT(0, cn_depot_change_end(depot, state, commit_now, depot, &err));
    cn_depot_close(depot);
    CHECK_INT(0, problems(sim));
    snprintf(path, sizeof(path), "deployed/versions/%s.json", id);
    const char *files[] = {"deployed/key", "deployed/state.json", path};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        for (unsigned at = 0; at < 36; at++) {
            CHECK_INT(0, simdisk_damage(sim, files[i], at, at % 8));
            CHECK_INT(1, problems(sim));
            CHECK_INT(0, simdisk_damage(sim, files[i], at, at % 8)); /* and back */
        }
    }
    CHECK_INT(0, cn_disk_unlink(simdisk_disk(sim), path));
    CHECK_INT(1, problems(sim));
    cn_buf_fini(&json);
    simdisk_free(sim);
}

/* D6 */
TEST(depot, removes_files_that_no_state_names)
{
    struct simdisk *sim = simdisk_new();
    struct cn_err err = {0};
    struct cn_buf json = {0};
    struct cn_depot *depot = open_on(sim);
    static const char id[] = "00000000-0000-4000-8000-000000000000";
    cn_buf_append_str(&json, "{\"bindings\":[]}");
    CHECK_INT(0, cn_depot_put_file(depot, id, "src", "a/b.js", "x", 1, &err));
    CHECK_INT(0, cn_depot_put_version(depot, id, &json, &err));
    struct cn_json *file = cn_depot_read_version(depot, id, &err);
    CHECK(file);
    cn_json_free(file);
    cn_depot_close(depot);
    depot = open_on(sim);
    CHECK(!cn_depot_read_version(depot, id, &err));
    struct cn_disk_file *gone;
    CHECK(cn_disk_open(simdisk_disk(sim),
                       "deployed/code/00000000-0000-4000-8000-000000000000/src/"
                       "a/b.js",
                       CN_DISK_READONLY, &gone) < 0);
    cn_depot_close(depot);
    cn_buf_fini(&json);
    simdisk_free(sim);
}
