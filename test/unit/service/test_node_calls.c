/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to other nodes, with a transport that the test is. */
#include "service/node_calls.h"

#include <string.h>

#include "base/mem.h"
#include "service/def.h"
#include "service/kv/kv.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static struct service_rig rig;
static struct cn_node_calls_question *asked[4];
static size_t asked_count, other_count;

static size_t list(void *data, struct cn_other items[], size_t max)
{
    (void)data;
    CHECK(other_count <= max);
    for (size_t i = 0; i < other_count; i++) {
        items[i].disk = 100 + i;
        snprintf(items[i].name, sizeof(items[i].name), "n%zu", i);
    }
    return other_count;
}

static void keep(void *data, struct cn_object_lane *lane, struct cn_node_calls_question *question)
{
    (void)data;
    CHECK(lane == &rig.lane);
    asked[asked_count++] = question;
}

static const struct cn_node_calls others = {NULL, list, keep, NULL};

static struct cn_disk *open_rig(size_t count)
{
    struct cn_disk *disk = storetest_disk();
    service_rig_open(&rig, disk, &cn_kv_class, "$kv/test");
    asked_count = 0;
    other_count = count;
    rig.services.others = &others;
    return disk;
}

struct told {
    unsigned calls, failed;
    struct cn_err err;
};

static void on_told(void *data, unsigned failed, const struct cn_err *err)
{
    struct told *told = data;
    told->calls++;
    told->failed = failed;
    told->err = *err;
}

TEST(others, one_that_is_alone_tells_nobody)
{
    struct cn_disk *disk = open_rig(0);
    struct told told = {0};
    CHECK(!cn_node_calls_tell(&rig.lane, &cn_service_kv, "x", 1, on_told, &told));
    rig.services.others = NULL;
    CHECK(!cn_node_calls_tell(&rig.lane, &cn_service_kv, "x", 1, on_told, &told));
    CHECK_INT(0, told.calls);
    service_rig_close(&rig);
    cn_disk_system_free(disk);
}

TEST(others, who_tells_all_hears_when_all_have_answered_and_who_has_not)
{
    struct cn_disk *disk = open_rig(3);
    struct told told = {0};
    CHECK(cn_node_calls_tell(&rig.lane, &cn_service_kv, "hello", 5, on_told, &told));
    CHECK_INT(3, asked_count);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(100 + i, asked[i]->disk);
        CHECK(asked[i]->def == &cn_service_kv && asked[i]->asked.size == 5 &&
              memcmp(asked[i]->asked.data, "hello", 5) == 0);
    }
    asked[2]->done(asked[2]);
    cn_err_set(&asked[0]->err, CN_ECLOSED, "it is gone");
    asked[0]->done(asked[0]);
    CHECK_INT(0, told.calls);
    cn_buf_append_str(&asked[1]->answer, "what nobody reads");
    asked[1]->done(asked[1]);
    CHECK_INT(1, told.calls);
    CHECK_INT(1, told.failed);
    CHECK_STR("node n0: it is gone", told.err.text);
    service_rig_close(&rig);
    cn_disk_system_free(disk);
}
