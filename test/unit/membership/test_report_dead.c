/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process, told to a real engine. */
#include "membership/report_dead.h"

#include <stdio.h>

#include "base/err.h"
#include "membership/engine.h"
#include "test/lib/postgres.h"
#include "test/lib/test.h"

static struct test_postgres server;
static char conninfo[200];

static struct cn_report_dead dead(uint64_t life)
{
    return (struct cn_report_dead){.conninfo = conninfo,
                                   .node = "parent",
                                   .disk = 7,
                                   .life = life,
                                   .allow_flaws = CN_ENGINE_NO_STANDBY};
}

TEST(bury, ends_the_sessions_of_the_disk_up_to_that_life_and_no_later_one)
{
    struct cn_err err = {0};
    test_postgres_need();
    test_postgres_make(&server, "");
    snprintf(conninfo, sizeof(conninfo), "host=%s user=cairn dbname=postgres", server.dir);
    struct cn_report_dead nobody = dead(1);
    CHECK_INT(0, cn_report_dead(&nobody, 20000, &err)); /* makes the tables too */
    test_postgres_ask(&server, "INSERT INTO cairn.session(id, disk, life, live, link, head, beat) "
                               "VALUES (1, 7, 5, true, 1, 0, 1), (2, 7, 9, true, 1, 0, 1), "
                               "(3, 8, 5, true, 1, 0, 1)");
    struct cn_report_dead bury = dead(5);
    CHECK_INT(0, cn_report_dead(&bury, 20000, &err));
    CHECK_STR("2 3", test_postgres_ask(&server, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM "
                                                "cairn.session WHERE live"));
    test_postgres_kill(&server);
    CHECK_INT(CN_ETIMEOUT, cn_report_dead(&bury, 300, &err));
    test_postgres_end(&server);
}
