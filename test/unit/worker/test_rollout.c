/* SPDX-License-Identifier: Apache-2.0 */
/* Which version gets what (R1 to R3 of worker/script.h): shares are kept, keys and objects stay
 * with theirs, and a growing share gives nothing back. */
#include "worker/rollout.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "net/server.h"
#include "store/record.h"
#include "test/lib/test.h"
#include "worker/script.h"

#define COUNT 10000

/* A worker of its own at place 0, then two versions of "w": the newer with this share. */
static struct cn_deployment *rolled_out(unsigned newer)
{
    static const char *const ids[] = {"none", "new", "old"};
    const unsigned shares[] = {CN_SHARE_ALL, newer, CN_SHARE_ALL - newer};
    struct cn_deployment *deployment = cn_deployment_new();
    for (size_t i = 0; i < 3; i++) {
        struct cn_script *script = cn_script_new();
        script->name = cn_strdup(i ? "w" : "other");
        script->version = cn_strdup(ids[i]);
        script->share = shares[i];
        script->beside = i == 2;
        cn_deployment_add(deployment, script);
    }
    return deployment;
}

static struct cn_http_header header(const char *name, const char *value)
{
    return (struct cn_http_header){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
}

static size_t ask(const struct cn_deployment *deployment, struct cn_rand *rand, const char *name,
                  const char *value)
{
    struct cn_http_header headers[] = {header("accept", "*/*"), header(name, value)};
    struct cn_http_request http = {.headers = headers, .header_count = 2};
    return cn_rollout_request(deployment, 1, &http, rand);
}

TEST(rollout, chance_keeps_the_shares)
{
    struct cn_deployment *deployment = rolled_out(1000);
    struct cn_rand rand;
    cn_rand_init(&rand, 7);
    size_t requests = 0, events = 0, objects = 0;
    for (uint64_t i = 1; i <= COUNT; i++) {
        struct cn_object_key key = {0};
        memcpy(key.id, &i, sizeof(i));
        requests += ask(deployment, &rand, "x-none", "") == 1;
        events += cn_rollout_event(deployment, 1, i, &rand) == 1;
        objects += cn_rollout_object(deployment, 1, &key) == 1;
    }
    /* A tenth, give or take five times what chance does. */
    CHECK(requests > 850 && requests < 1150);
    CHECK(events > 850 && events < 1150);
    CHECK(objects > 850 && objects < 1150);
    CHECK_INT(0, cn_rollout_event(deployment, 0, 5, &rand)); /* one without further versions */
    cn_deployment_unref(deployment);
}

/* R2 and R3 */
TEST(rollout, a_growing_share_takes_keys_and_objects_and_gives_none_back)
{
    struct cn_deployment *small = rolled_out(1000), *large = rolled_out(6000);
    struct cn_rand rand;
    cn_rand_init(&rand, 7);
    for (uint64_t i = 1; i <= 1000; i++) {
        char text[32];
        struct cn_object_key key = {0};
        snprintf(text, sizeof(text), "user-%d", (int)i);
        memcpy(key.id, &i, sizeof(i));
        size_t before = ask(small, &rand, "Cloudflare-Workers-Version-Key", text);
        CHECK_INT(before, ask(small, &rand, "cloudflare-workers-version-key", text));
        CHECK(before == 2 || ask(large, &rand, "Cloudflare-Workers-Version-Key", text) == 1);
        CHECK(cn_rollout_object(small, 1, &key) == 2 || cn_rollout_object(large, 1, &key) == 1);
        CHECK_INT(cn_rollout_event(small, 1, i, &rand), cn_rollout_event(small, 1, i, &rand));
    }
    cn_deployment_unref(small);
    cn_deployment_unref(large);
}

TEST(rollout, a_request_may_name_a_version_that_has_no_share)
{
    static const char name[] = "Cloudflare-Workers-Version-Overrides";
    struct cn_deployment *deployment = rolled_out(0);
    struct cn_rand rand;
    cn_rand_init(&rand, 7);
    CHECK_INT(2, ask(deployment, &rand, "x-none", ""));
    CHECK_INT(1, ask(deployment, &rand, name, "w=\"new\""));
    CHECK_INT(1, ask(deployment, &rand, name, "other=\"old\",\tw=\"new\""));
    CHECK_INT(2, ask(deployment, &rand, name, "w=\"gone\""));
    CHECK_INT(2, ask(deployment, &rand, name, "x=\"new\""));
    cn_deployment_unref(deployment);
}

TEST(rollout, an_override_that_is_none_names_nothing)
{
    static const char *const bad[] = {"",    "w",        "w=",      "w=\"",           "w=new",
                                      ",,,", "=\"new\"", "w=\"new", "x=1, w=\"new\"", "W=\"new\""};
    size_t size;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        CHECK(!cn_rollout_override(bad[i], strlen(bad[i]), "w", &size));
    const char *found = cn_rollout_override("a, w=\"new\"", 10, "w", &size);
    CHECK(found && size == 3 && memcmp(found, "new", 3) == 0);
}

/* R1 */
TEST(rollout, only_the_first_version_has_routes)
{
    struct cn_deployment *deployment = rolled_out(5000);
    cn_script_add_route(deployment->scripts[0], "a.test/*");
    CHECK_INT(1, cn_deployment_match(deployment, "b.test", 6, "/", 1));
    CHECK_INT(2, cn_deployment_find_version(deployment, 1, "old", 3));
    CHECK_INT(-1, cn_deployment_find_version(deployment, 1, "none", 4));
    cn_deployment_unref(deployment);
}
