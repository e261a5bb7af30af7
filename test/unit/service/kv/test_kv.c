/* SPDX-License-Identifier: Apache-2.0 */
/* A KV namespace's shards without JavaScript: rows, bodies, lists, expiry with a clock of its own.
 */
#include "service/kv/kv.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "object/object.h"
#include "store/database.h"
#include "test/lib/service_rig.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"

static struct cn_kv_call *ask(struct service_rig *rig, enum cn_kv_op op, const char *key)
{
    return cn_kv_call_new(rig->ns, op, key, strlen(key));
}

static void put(struct service_rig *rig, const char *key, const void *value, size_t size,
                int64_t ttl_s)
{
    struct cn_kv_call *call = ask(rig, CN_KV_PUT, key);
    call->value = cn_memdup(value, size);
    call->value_size = size;
    call->expires_s = ttl_s;
    call->ttl = ttl_s != 0;
    service_rig_call(rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    cn_service_call_free(&call->base);
}

static bool has(struct service_rig *rig, const char *key, const void *value, size_t size)
{
    struct cn_kv_call *call = ask(rig, CN_KV_GET, key);
    service_rig_call(rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    bool found = call->found;
    if (found) {
        CHECK_INT(size, call->value_size);
        CHECK(memcmp(value, call->value, size) == 0);
    }
    cn_service_call_free(&call->base);
    return found;
}

static void erase(struct service_rig *rig, const char *key)
{
    struct cn_kv_call *call = ask(rig, CN_KV_DELETE, key);
    service_rig_call(rig, &call->base);
    CHECK_INT(0, call->base.call.envelope.err.code);
    cn_service_call_free(&call->base);
}

/* A number from the database of the shard that has `key`; it must be in memory. */
static int64_t look(struct service_rig *rig, const char *key, const char *sql)
{
    struct cn_kv_call *call = ask(rig, CN_KV_GET, key);
    struct cn_object *object =
        cn_map_find(&rig->lane.objects, &call->base.call.key, sizeof(call->base.call.key));
    CHECK(object && object->db);
    int64_t number = storetest_int(object->db, sql);
    cn_service_call_free(&call->base);
    return number;
}

TEST(kv, keeps_small_and_large_values)
{
    struct service_rig rig;
    struct cn_disk *disk = storetest_disk();
    service_rig_open(&rig, disk, &cn_kv_class, "$kv/test");
    size_t size = CN_KV_VALUE_MAX;
    uint8_t *large = malloc(size);
    for (size_t i = 0; i < size; i++)
        large[i] = (uint8_t)(i * 7 + i / 4096);
    put(&rig, "a", "one", 3, 0);
    put(&rig, "b", large, size, 0);
    put(&rig, "c", "", 0, 0);
    CHECK(has(&rig, "a", "one", 3));
    CHECK(has(&rig, "b", large, size));
    CHECK(has(&rig, "c", "", 0));
    CHECK(!has(&rig, "d", "", 0));
    service_rig_close(&rig);
    service_rig_open(&rig, disk, &cn_kv_class, "$kv/test");
    CHECK(has(&rig, "a", "one", 3));
    CHECK(has(&rig, "b", large, size));
    /* No body is left behind by what replaces it, or deletes it. */
    CHECK_INT(1, look(&rig, "b", "SELECT count(*) FROM bodies"));
    put(&rig, "b", large, 2000, 0);
    CHECK(has(&rig, "b", large, 2000));
    CHECK_INT(1, look(&rig, "b", "SELECT count(*) FROM bodies"));
    put(&rig, "b", "small", 5, 0);
    CHECK_INT(0, look(&rig, "b", "SELECT count(*) FROM bodies"));
    put(&rig, "b", large, 2000, 0);
    erase(&rig, "b");
    CHECK(!has(&rig, "b", "", 0));
    CHECK_INT(0, look(&rig, "b", "SELECT count(*) FROM bodies"));
    free(large);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(kv, expired_keys_vanish_at_once_and_are_collected_later)
{
    struct service_rig rig;
    service_rig_open(&rig, storetest_disk(), &cn_kv_class, "$kv/test");
    char body[2000] = "x";
    put(&rig, "short", body, sizeof(body), 60);
    put(&rig, "plain", "p", 1, 0);
    service_rig_advance(&rig, 59999);
    CHECK(has(&rig, "short", body, sizeof(body)));
    service_rig_advance(&rig, 1);
    CHECK(!has(&rig, "short", NULL, 0));
    CHECK_INT(1, look(&rig, "short", "SELECT count(*) FROM entries WHERE expires IS NOT NULL"));
    service_rig_advance(&rig, 5000);
    CHECK_INT(0, look(&rig, "short", "SELECT count(*) FROM entries WHERE expires IS NOT NULL"));
    CHECK_INT(0, look(&rig, "short", "SELECT count(*) FROM bodies"));
    CHECK(has(&rig, "plain", "p", 1));
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(kv, a_new_value_outlives_the_expiry_of_the_old_one)
{
    struct service_rig rig;
    service_rig_open(&rig, storetest_disk(), &cn_kv_class, "$kv/test");
    put(&rig, "k", "old", 3, 60);
    put(&rig, "k", "new", 3, 0);
    service_rig_advance(&rig, 70000);
    CHECK(has(&rig, "k", "new", 3));
    put(&rig, "k", "later", 5, 1000);
    service_rig_advance(&rig, 999000);
    CHECK(has(&rig, "k", "later", 5));
    service_rig_advance(&rig, 7000);
    CHECK(!has(&rig, "k", NULL, 0));
    CHECK_INT(0, look(&rig, "k", "SELECT count(*) FROM entries"));
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(kv, many_expired_keys_go_in_runs)
{
    struct service_rig rig;
    service_rig_open(&rig, storetest_disk(), &cn_kv_class, "$kv/test");
    char key[16];
    for (int i = 0; i < 12000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        put(&rig, key, "v", 1, 60);
    }
    service_rig_advance(&rig, 66000);
    CHECK(look(&rig, "k1", "SELECT count(*) FROM entries") > 0); /* one run does not take all */
    for (int i = 0; i < 10; i++)
        service_rig_advance(&rig, 7000);
    for (int i = 0; i < 200; i++) { /* some in every shard */
        snprintf(key, sizeof(key), "k%d", i);
        CHECK_INT(0, look(&rig, key, "SELECT count(*) FROM entries"));
    }
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}

TEST(kv, lists_a_shard_in_order)
{
    struct service_rig rig;
    service_rig_open(&rig, storetest_disk(), &cn_kv_class, "$kv/test");
    char key[16];
    unsigned count = 0;
    for (int i = 0; i < 200; i++) {
        snprintf(key, sizeof(key), "p%03d", i);
        put(&rig, key, "v", 1, i % 2 ? 60 : 0);
    }
    service_rig_advance(&rig, 60000);
    for (unsigned shard = 0; shard < CN_KV_SHARDS; shard++) {
        char after[16] = "";
        for (bool more = true; more;) {
            struct cn_kv_call *list = cn_kv_list_new(rig.ns, shard);
            cn_buf_append_str(&list->key, "p");
            if (*after)
                cn_buf_append_str(&list->after, after);
            list->limit = 3;
            service_rig_call(&rig, &list->base);
            CHECK_INT(0, list->base.call.envelope.err.code);
            const char *json = cn_buf_text(&list->names);
            for (const char *at = json; (at = strstr(at, "\"name\":\"")); at += 8) {
                char name[16] = "";
                memcpy(name, at + 8, 4);
                CHECK(strcmp(after, name) < 0); /* in order, each once */
                CHECK(atoi(name + 1) % 2 == 0); /* none that has expired */
                memcpy(after, name, sizeof(name));
                count++;
            }
            more = list->more;
            cn_service_call_free(&list->base);
        }
    }
    CHECK_INT(100, count);
    service_rig_close(&rig);
    cn_disk_system_free(rig.disk);
}
