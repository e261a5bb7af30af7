/* SPDX-License-Identifier: Apache-2.0 */
/* How bindings of services are written for a script: JSON whatever their names, namespaces that are
 * made once and granted to that script, and a server without a data directory. */
#include "config/service_config.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "object/node.h"
#include "service/ratelimit/ratelimit.h"
#include "test/lib/service_rig.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"
#include "worker/script.h"

struct world {
    struct simdisk *disk;
    struct service_rig rig;
    struct cn_bindings list;
    struct cn_buf json;
    struct cn_err err;
};

static void open_world(struct world *world)
{
    world->disk = simdisk_new();
    world->json = (struct cn_buf){0};
    service_rig_open(&world->rig, simdisk_disk(world->disk), &cn_ratelimit_class, "$ratelimit/7");
    world->list = (struct cn_bindings){
        .script = cn_script_new(), .node = world->rig.node, .service = "kv", .json = &world->json};
    cn_buf_append_byte(&world->json, '[');
}

static void close_world(struct world *world)
{
    cn_script_unref(world->list.script);
    service_rig_close(&world->rig);
    simdisk_free(world->disk);
    cn_buf_fini(&world->json);
}

/* The list so far, read back. */
static struct cn_json *parse(struct world *world)
{
    struct cn_buf text = {0};
    cn_buf_append(&text, world->json.data, world->json.size);
    cn_buf_append_byte(&text, ']');
    struct cn_json *json = cn_json_parse((char *)text.data, text.size, &world->err);
    cn_buf_fini(&text);
    if (!json)
        test_fail(__FILE__, __LINE__, "%s", world->err.text);
    return json;
}

TEST(service_config, bindings_are_json_whatever_they_are_called)
{
    struct world world;
    open_world(&world);
    cn_binding_begin(&world.list, "A\"\\\n\x01", "kv_namespace");
    cn_binding_member(&world.list, "text", "\"];//\xff");
    cn_binding_number(&world.list, "low", INT64_MIN);
    cn_binding_number(&world.list, "high", INT64_MAX);
    cn_binding_end(&world.list);
    world.list.service = NULL;
    cn_binding_begin(&world.list, "B", "assets");
    cn_binding_end(&world.list);
    struct cn_json *json = parse(&world);
    const struct cn_json *first = json->first, *second = first->next;
    CHECK_STR("A\"\\\n\x01", cn_json_text(first, "name"));
    CHECK_STR("kv_namespace", cn_json_text(first, "type"));
    CHECK_STR("kv", cn_json_text(first, "part"));
    CHECK_STR("\"];//\xef\xbf\xbd", cn_json_text(first, "text"));
    CHECK(cn_json_int(first, "low") == INT64_MIN && cn_json_int(first, "high") == INT64_MAX);
    CHECK_STR("B", cn_json_text(second, "name"));
    CHECK(!cn_json_find(second, "part") && !second->next);
    cn_json_free(json);
    close_world(&world);
}

TEST(service_config, a_namespace_is_made_once_and_granted_to_the_script)
{
    struct world world;
    struct cn_namespace *ns, *again;
    open_world(&world);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(0,
                  cn_binding_begin_service(&world.list, "A", "kv_namespace", "id/1", &world.err));
        cn_binding_end(&world.list);
    }
    struct cn_json *json = parse(&world);
    uint32_t number = (uint32_t)cn_json_int(json->first, "ns");
    CHECK_INT(number, cn_json_int(json->first->next, "ns"));
    cn_json_free(json);
    CHECK_INT(0, cn_node_namespace(world.rig.node, "$kv/id/1", &ns, &world.err));
    CHECK_INT(ns->id, number);
    CHECK(cn_script_is_granted(world.list.script, number));
    /* Without a binding: made, but nothing that natives of this script may reach. */
    CHECK_INT(0, cn_binding_namespace(&world.list, "x was added", "other", &again, &world.err));
    CHECK(again->id != number && !cn_script_is_granted(world.list.script, again->id));
    /* The same id of another service is another. */
    world.list.service = "d1";
    CHECK_INT(0, cn_binding_begin_service(&world.list, "D", "d1", "id/1", &world.err));
    cn_binding_end(&world.list);
    json = parse(&world);
    CHECK(cn_json_int(json->first->next->next, "ns") != number);
    cn_json_free(json);
    close_world(&world);
}

TEST(service_config, without_a_data_directory_nothing_is_written_and_a_restart_is_asked_for)
{
    struct world world;
    struct cn_namespace *ns = NULL;
    open_world(&world);
    world.list.node = NULL;
    CHECK_INT(CN_EUNSUPPORTED,
              cn_binding_begin_service(&world.list, "MINE", "kv_namespace", "id", &world.err));
    CHECK_STR("the binding MINE was added; restart the server to use it", world.err.text);
    CHECK_INT(CN_EUNSUPPORTED,
              cn_binding_namespace(&world.list, "cron triggers were added", "x", &ns, &world.err));
    CHECK_STR("cron triggers were added; restart the server to use it", world.err.text);
    CHECK(!ns);
    CHECK_STR("[", cn_buf_text(&world.json));
    CHECK_INT(0, world.list.script->granted_count);
    close_world(&world);
}

TEST(service_config, a_store_that_refuses_writes_fails_the_binding_and_writes_none)
{
    struct world world;
    open_world(&world);
    simdisk_set_fault(world.disk, &(struct simdisk_fault){.kinds = SIMDISK_WRITE | SIMDISK_SYNC,
                                                          .at = 1,
                                                          .code = -5,
                                                          .sticky = true});
    CHECK(cn_binding_begin_service(&world.list, "A", "kv_namespace", "new", &world.err) < 0);
    simdisk_set_fault(world.disk, NULL);
    CHECK_STR("[", cn_buf_text(&world.json));
    CHECK_INT(0, world.list.script->granted_count);
    close_world(&world);
}

TEST(service_config, a_list_wants_a_node_if_it_has_entries)
{
    CHECK(!cn_service_config_any(&(struct cn_schema_list){.count = 0}));
    CHECK(cn_service_config_any(&(struct cn_schema_list){.count = 1}));
}
