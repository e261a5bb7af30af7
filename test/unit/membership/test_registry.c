/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes agree on, in a real engine. */
#include "membership/registry.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "membership/engine.h"
#include "membership/poller.h"
#include "membership/report_dead.h"
#include "test/lib/postgres.h"
#include "test/lib/test.h"

static struct test_postgres server;
static char conninfo[200];
static struct cn_registry registry;

static void begin(void)
{
    test_postgres_need();
    test_postgres_make(&server, "");
    snprintf(conninfo, sizeof(conninfo), "host=%s user=cairn dbname=postgres", server.dir);
    registry = (struct cn_registry){.conninfo = conninfo,
                                    .node = "registry",
                                    .allow_flaws = CN_ENGINE_NO_STANDBY,
                                    .timeout_ms = 20000};
}

static uint32_t number(const char *name)
{
    struct cn_err err = {0};
    uint32_t id = 0;
    if (cn_registry_number(&registry, name, &id, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return id;
}

/* W4 of base/loop.h */
TEST(registry, without_a_descriptor_nobody_is_asked)
{
    struct cn_registry nobody = {.conninfo = "host=/nowhere", .node = "registry"};
    struct cn_err err = {0};
    struct cn_buf text = {0};
    struct cn_poller *poller;
    struct rlimit before, none;
    CHECK_INT(0, getrlimit(RLIMIT_NOFILE, &before));
    none = before;
    none.rlim_cur = 0;
    CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &none));
    int asked = cn_registry_ask(&nobody, "1", NULL, 0, &text, &err);
    int made = cn_poller_new(&nobody, &poller, NULL);
    struct cn_report_dead dead = {.conninfo = nobody.conninfo, .node = "parent"};
    int told = cn_report_dead(&dead, 100, NULL);
    CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &before));
    CHECK_INT(UV_EMFILE, asked);
    CHECK_STR("cannot make an event loop: too many open files", err.text);
    CHECK_INT(UV_EMFILE, made);
    CHECK_INT(UV_EMFILE, told);
}

TEST(registry, a_name_has_one_number_and_a_number_may_get_another_name)
{
    struct cn_err err = {0};
    begin();
    uint32_t a = number("worker/A"), b = number("$kv/it's \"quoted\"");
    CHECK(a && b && a != b);
    CHECK_INT(a, number("worker/A"));
    CHECK_INT(0, cn_registry_rename(&registry, a, "worker/B", &err));
    CHECK_INT(a, number("worker/B"));
    uint32_t again = number("worker/A");
    CHECK(again != a && again != b);
    CHECK_INT(0, cn_registry_rename(&registry, a, "worker/A", &err)); /* who had it is put aside */
    CHECK_INT(a, number("worker/A"));
    CHECK(number("worker/B") != a);
    CHECK_INT(CN_ENOTFOUND, cn_registry_rename(&registry, 999, "x", &err));
    test_postgres_end(&server);
}

TEST(registry, a_document_is_replaced_only_as_it_was_known)
{
    struct cn_err err = {0};
    struct cn_buf text = {0};
    uint64_t version = 7, other = 0;
    begin();
    CHECK_INT(0, cn_registry_recall(&registry, "classes", &text, &version, &err));
    CHECK_INT(0, version);
    CHECK_INT(0, cn_registry_keep(&registry, "classes", "{ \"a\": 1 }", &version, &err));
    CHECK_INT(1, version);
    CHECK_INT(0, cn_registry_keep(&registry, "classes", "{ \"a\": 1 }", &other, &err)); /* B2 */
    CHECK_INT(1, other);
    other = 0;
    CHECK_INT(CN_EEXISTS, cn_registry_keep(&registry, "classes", "{ \"b\": 1 }", &other, &err));
    CHECK_INT(0, cn_registry_keep(&registry, "classes", "two", &version, &err));
    CHECK_INT(1, cn_registry_recall(&registry, "classes", &text, &other, &err));
    CHECK_INT(2, other);
    CHECK_STR("two", cn_buf_text(&text));
    cn_buf_fini(&text);
    test_postgres_end(&server);
}

TEST(registry, an_engine_that_is_away_loses_data_or_is_of_another_cluster_is_told)
{
    struct cn_err err = {0};
    uint32_t id;
    begin();
    struct cn_registry only = registry, strict = registry;
    only.existing = true;
    only.timeout_ms = 300;
    CHECK_INT(CN_ETIMEOUT, cn_registry_number(&only, "a", &id, &err));
    CHECK(strstr(err.text, "the database has no tables of a cluster"));
    CHECK_STR("f", test_postgres_ask(&server, "SELECT to_regclass('cairn.cluster') IS NOT NULL"));
    strict.allow_flaws = 0;
    CHECK_INT(CN_EDENIED, cn_registry_number(&strict, "a", &id, &err));
    CHECK(strstr(err.text, "synchronous_standby_names is empty"));
    (void)number("a");
    only.cluster = "00000000-0000-0000-0000-000000000000";
    CHECK_INT(CN_ETIMEOUT, cn_registry_number(&only, "a", &id, &err));
    CHECK(strstr(err.text, "of another cluster"));
    test_postgres_kill(&server);
    only.cluster = NULL;
    CHECK_INT(CN_ETIMEOUT, cn_registry_number(&only, "a", &id, &err));
    test_postgres_end(&server);
}
