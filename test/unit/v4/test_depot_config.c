/* SPDX-License-Identifier: Apache-2.0 */
/* What was uploaded as a configuration: every kind of binding has its key, secrets are there in the
 * clear, what cairn has not is refused by name. */
#include <string.h>

#include "base/disk.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"
#include "v4/depot.h"

static const char id[] = "00000000-0000-4000-8000-000000000000";

/* The configuration of a worker whose version has this file. */
static int convert(const char *version, struct cn_buf *json, struct cn_err *err)
{
    struct simdisk *sim = simdisk_new();
    struct cn_depot *depot = NULL;
    struct cn_buf file = {0};
    CHECK_INT(0, cn_depot_open(simdisk_disk(sim), "/nowhere", "example.com", NULL, &depot, err));
    struct cn_depot_state *state = cn_depot_state_new();
    struct cn_depot_script *script = cn_depot_add_script(state, "shop", 1);
    cn_depot_texts_add(&script->crons, "0 * * * *");
    cn_depot_texts_add(&script->routes, "shop.test/*");
    cn_depot_texts_add(&script->migrations, "{\"tag\":\"v1\",\"new_sqlite_classes\":[\"Cart\"]}");
    const char *at = strstr(version, "SEALED");
    cn_buf_append(&file, version, at ? (size_t)(at - version) : strlen(version));
    if (at) {
        cn_depot_seal(depot, "shop", "KEY", "s3cret", 6, &file);
        cn_buf_append_str(&file, at + strlen("SEALED"));
    }
    CHECK_INT(0, cn_depot_put_version(depot, id, &file, err));
    int rc = cn_depot_config(depot, script, id, json, err);
    cn_buf_fini(&file);
    cn_depot_state_unref(state);
    cn_depot_close(depot);
    simdisk_free(sim);
    return rc;
}

static bool has(const struct cn_json *root, const char *key, const char *text)
{
    struct cn_buf out = {0};
    const struct cn_json *value = cn_json_find(root, key);
    if (value)
        cn_json_write(&out, value);
    bool found = value && strcmp(cn_buf_text(&out), text) == 0;
    if (!found)
        test_fail(__FILE__, __LINE__, "%s: want %s, got %s", key, text, cn_buf_text(&out));
    cn_buf_fini(&out);
    return found;
}

TEST(depot_config, has_a_key_for_every_kind_of_binding)
{
    struct cn_buf json = {0};
    struct cn_err err = {0};
    CHECK_INT(
        0,
        convert("{\"main\":\"a/index.js\",\"compatibility_date\":\"2026-01-01\","
                "\"modules\":[{\"name\":\"a/index.js\",\"type\":\"ESModule\"},"
                "{\"name\":\"x.wasm\",\"type\":\"CompiledWasm\"}],\"bindings\":["
                "{\"type\":\"plain_text\",\"name\":\"A\",\"text\":\"1\"},"
                "{\"type\":\"json\",\"name\":\"B\",\"json\":{\"x\":[1]}},"
                "{\"type\":\"secret_text\",\"name\":\"KEY\",\"sealed\":\"SEALED\"},"
                "{\"type\":\"durable_object_namespace\",\"name\":\"CART\",\"class_name\":\"Cart\"},"
                "{\"type\":\"kv_namespace\",\"name\":\"KV\",\"namespace_id\":\"k1\"},"
                "{\"type\":\"d1\",\"name\":\"DB\",\"id\":\"d1\"},"
                "{\"type\":\"r2_bucket\",\"name\":\"BUCKET\",\"bucket_name\":\"b1\"},"
                "{\"type\":\"queue\",\"name\":\"Q\",\"queue_name\":\"q1\"},"
                "{\"type\":\"service\",\"name\":\"S\",\"service\":\"other\"},"
                "{\"type\":\"version_metadata\",\"name\":\"V\"},"
                "{\"type\":\"assets\",\"name\":\"ASSETS\"}],"
                "\"assets\":{\"config\":{\"html_handling\":\"none\"},\"files\":{}}}",
                &json, &err));
    struct cn_json *root = cn_json_parse((const char *)json.data, json.size, &err);
    CHECK(root);
    CHECK_STR("shop", cn_json_text(root, "name"));
    CHECK_STR("src/a/index.js", cn_json_text(root, "main"));
    has(root, "vars", "{\"A\":\"1\",\"B\":{\"x\":[1]},\"KEY\":\"s3cret\"}");
    has(root, "durable_objects", "{\"bindings\":[{\"name\":\"CART\",\"class_name\":\"Cart\"}]}");
    has(root, "kv_namespaces", "[{\"binding\":\"KV\",\"id\":\"k1\"}]");
    has(root, "d1_databases", "[{\"binding\":\"DB\",\"database_id\":\"d1\"}]");
    has(root, "r2_buckets", "[{\"binding\":\"BUCKET\",\"bucket_name\":\"b1\"}]");
    has(root, "queues", "{\"producers\":[{\"binding\":\"Q\",\"queue\":\"q1\"}],\"consumers\":[]}");
    has(root, "services", "[{\"binding\":\"S\",\"service\":\"other\"}]");
    has(root, "version_metadata", "{\"binding\":\"V\"}");
    has(root, "assets",
        "{\"directory\":\"assets\",\"binding\":\"ASSETS\",\"html_handling\":\"none\"}");
    has(root, "triggers", "{\"crons\":[\"0 * * * *\"]}");
    has(root, "routes", "[\"shop.test/*\"]");
    has(root, "migrations", "[{\"tag\":\"v1\",\"new_sqlite_classes\":[\"Cart\"]}]");
    has(root, "cairn", "{\"hosts\":[\"shop.localhost\",\"shop.example.com\"]}");
    has(root, "rules",
        "[{\"type\":\"CompiledWasm\",\"fallthrough\":true,\"globs\":[\"**/x.wasm\"]}]");
    cn_json_free(root);
    cn_buf_fini(&json);
}

TEST(depot_config, refuses_what_cairn_has_not)
{
    struct cn_buf json = {0};
    struct cn_err err = {0};
    CHECK_INT(CN_EUNSUPPORTED,
              convert("{\"bindings\":[{\"type\":\"quantum\",\"name\":\"Q\"}]}", &json, &err));
    CHECK(strstr(err.text, "quantum"));
    cn_buf_clear(&json);
    CHECK_INT(CN_EINVALID, convert("{\"bindings\":[{\"type\":\"d1\"}]}", &json, &err));
    cn_buf_clear(&json);
    CHECK_INT(CN_ECORRUPT,
              convert("{\"bindings\":[{\"type\":\"secret_text\",\"name\":\"OTHER\",\"sealed\":"
                      "\"SEALED\"}]}",
                      &json, &err));
    cn_buf_fini(&json);
}
