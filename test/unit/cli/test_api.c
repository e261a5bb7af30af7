/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on services of a directory that no server uses: a lane stands in, everything is durable
 * when the answer comes, and what only reads changes nothing on disk. */
#include "cli/api.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "object/node.h"
#include "server/data.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/store.h"
#include "test/lib/test.h"

static void open_api(struct cn_api *api, const char *path, bool readonly)
{
    struct cn_err err = {0};
    if (cn_api_open(api, path, readonly, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* The answer as a line; the caller frees. */
static char *call(struct cn_api *api, const char *method, const char *target, const char *body)
{
    struct cn_err err = {0};
    struct cn_json *answer = NULL;
    struct cn_buf text = {0};
    if (cn_api_call(api, method, target, body, &answer, &err) < 0)
        return cn_sprintf("error: %s", err.text);
    cn_json_write(&text, answer);
    cn_json_free(answer);
    cn_buf_text(&text);
    return (char *)cn_buf_take(&text);
}

#define CHECK_CALL(expected, api, method, target, body) \
    do {                                                \
        char *line_ = call(api, method, target, body);  \
        CHECK_STR(expected, line_);                     \
        cn_free(line_);                                 \
    } while (0)

static int put(struct cn_api *api, const char *target, const char *bytes, size_t size)
{
    struct cn_err err = {0};
    struct cn_json *answer = NULL;
    struct cn_api_bytes from = {bytes, size};
    struct cn_api_body body = {(int64_t)size, cn_api_read_bytes, &from};
    int rc = cn_api_put(api, target, &body, &answer, &err);
    cn_json_free(answer);
    return rc;
}

static int keep(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    (void)err;
    cn_buf_append(data, bytes, size);
    return 0;
}

static const char *make_dir(void)
{
    struct cn_err err = {0};
    const char *path = test_dir();
    CHECK_INT(0, cn_data_make(path, &err));
    return path;
}

TEST(api, kv_of_a_directory)
{
    struct cn_api api;
    const char *path = make_dir();
    open_api(&api, path, false);
    CHECK_CALL("error: there is no kv carts here", &api, "GET", "/api/kv/carts/keys", NULL);
    CHECK_CALL("{\"id\":\"carts\"}", &api, "PUT", "/api/kv/carts", NULL);
    for (int i = 0; i < 100; i++) {
        char target[64];
        snprintf(target, sizeof(target), "/api/kv/carts/values/key%%2F%02d", i);
        CHECK_INT(0, put(&api, target, "value", 5));
    }
    cn_api_close(&api);
    open_api(&api, path, true);
    CHECK_CALL("{\"keys\":[{\"name\":\"key/00\"},{\"name\":\"key/01\"}],\"cursor\":"
               "\"k6b65792f3031\",\"complete\":false}",
               &api, "GET", "/api/kv/carts/keys?limit=2", NULL);
    CHECK_CALL("{\"keys\":[{\"name\":\"key/99\"}],\"cursor\":null,\"complete\":true}", &api, "GET",
               "/api/kv/carts/keys?cursor=k6b65792f3938", NULL);
    struct cn_buf value = {0};
    struct cn_err err = {0};
    CHECK_INT(0, cn_api_fetch(&api, "/api/kv/carts/values/key/42", keep, &value, &err));
    CHECK_STR("value", cn_buf_text(&value));
    cn_buf_fini(&value);
    /* In memory only: */
    CHECK_CALL("{\"deleted\":true}", &api, "DELETE", "/api/kv/carts/values/key/42", NULL);
    cn_api_close(&api);
    open_api(&api, path, true);
    CHECK_INT(0, cn_api_fetch(&api, "/api/kv/carts/values/key/42", keep, &value, &err));
    cn_buf_fini(&value);
    cn_api_close(&api);
}

TEST(api, r2_of_a_directory)
{
    struct cn_api api;
    struct cn_err err = {0};
    struct cn_buf body = {0}, got = {0};
    const char *path = make_dir();
    for (int i = 0; i < 300000; i++)
        cn_buf_append_byte(&body, (uint8_t)(i * 7));
    open_api(&api, path, false);
    CHECK_CALL("{\"name\":\"pics\",\"objects\":0,\"bytes\":0,\"bindings\":[]}", &api, "PUT",
               "/api/r2/pics", NULL);
    CHECK_INT(0, put(&api, "/api/r2/pics/objects/a/b", (char *)body.data, body.size));
    CHECK_INT(0, put(&api, "/api/r2/pics/objects/small", "tiny", 4));
    CHECK_INT(0, put(&api, "/api/r2/pics/objects/small", "tinier", 6));
    cn_api_close(&api);
    open_api(&api, path, false);
    CHECK_CALL("{\"name\":\"pics\",\"objects\":2,\"bytes\":300006,\"bindings\":[]}", &api, "GET",
               "/api/r2/pics", NULL);
    CHECK_INT(0, cn_api_fetch(&api, "/api/r2/pics/objects/a/b", keep, &got, &err));
    CHECK_INT((int)body.size, (int)got.size);
    CHECK(memcmp(got.data, body.data, body.size) == 0);
    CHECK_CALL("{\"objects\":[],\"prefixes\":[\"a/\"],\"cursor\":\"p612f\",\"complete\":false}",
               &api, "GET", "/api/r2/pics/objects?delimiter=/&limit=1", NULL);
    char *rest = call(&api, "GET", "/api/r2/pics/objects?delimiter=/&cursor=p612f", NULL);
    CHECK(strstr(rest, "{\"key\":\"small\",") && strstr(rest, "\"complete\":true}"));
    cn_free(rest);
    CHECK_CALL("{\"deleted\":true}", &api, "DELETE", "/api/r2/pics/objects/a/b", NULL);
    CHECK_CALL("{\"deleted\":false}", &api, "DELETE", "/api/r2/pics/objects/a/b", NULL);
    CHECK_CALL("{\"name\":\"pics\",\"objects\":1,\"bytes\":6,\"bindings\":[]}", &api, "GET",
               "/api/r2/pics", NULL);
    cn_api_close(&api);
    cn_buf_fini(&body);
    cn_buf_fini(&got);
}

static int take_key(void *data, const struct cn_catalog_entry *entry)
{
    *(struct cn_object_key *)data = entry->key;
    return 0;
}

TEST(api, totals_of_a_bucket_from_before_them)
{
    struct cn_api api;
    const char *path = make_dir();
    open_api(&api, path, false);
    cn_free(call(&api, "PUT", "/api/r2/pics", NULL));
    CHECK_INT(0, put(&api, "/api/r2/pics/objects/a", "12345", 5));
    CHECK_INT(0, put(&api, "/api/r2/pics/objects/b", "123", 3));
    cn_api_close(&api);
    /* As a version without totals has left it. */
    struct cn_err err = {0};
    struct cn_object_key key = {0};
    struct cn_database *db;
    uint64_t lsn;
    open_api(&api, path, false);
    struct cn_catalog *catalog = cn_store_catalog(api.dir.store);
    CHECK_INT(1, cn_catalog_namespace_find(catalog, "$r2/pics", 8, &key.namespace_id, &err));
    CHECK_INT(1, cn_catalog_list(catalog, key.namespace_id, NULL, 2, take_key, &key, &err));
    struct cn_database_options options = {.must_exist = true};
    CHECK_INT(0, cn_database_open(api.dir.store, &key, &options, &db, &err));
    CHECK_INT(0, cn_database_exec(db,
                                  "DROP TABLE totals; DROP TABLE pending; DROP TABLE named; "
                                  "PRAGMA user_version = 2",
                                  &err));
    CHECK_INT(0, cn_database_commit(db, &lsn, &err));
    cn_database_close(db);
    cn_api_close(&api);
    open_api(&api, path, true);
    CHECK_CALL("{\"name\":\"pics\",\"objects\":2,\"bytes\":8,\"bindings\":[]}", &api, "GET",
               "/api/r2/pics", NULL);
    cn_api_close(&api);
}

TEST(api, queues_of_a_directory)
{
    struct cn_api api;
    struct cn_err err = {0};
    const char *path = make_dir();
    struct cn_data data;
    struct cn_data_options options = {.lane_count = 1};
    struct cn_namespace *ns;
    CHECK_INT(0, cn_data_open(&data, path, &options, &err));
    CHECK_INT(0, cn_node_namespace(data.node, "$queue/dead", &ns, &err));
    CHECK_INT(0, cn_node_namespace(data.node, "$queue/mail", &ns, &err));
    cn_data_close(&data);
    open_api(&api, path, false);
    for (int i = 0; i < 250; i++) {
        char body[64];
        snprintf(body, sizeof(body), "{\"body\":{\"n\":%d}}", i);
        char *line = call(&api, "POST", "/api/queues/dead/messages", body);
        CHECK(strncmp(line, "{\"success\":true", 15) == 0);
        cn_free(line);
    }
    CHECK_CALL("error: where to? No consumer that is served has this as its dead letter queue: say "
               "it with \"to\" (--to QUEUE)",
               &api, "POST", "/api/queues/dead/redrive", "{}");
    CHECK_CALL("{\"moved\":120,\"to\":\"mail\"}", &api, "POST", "/api/queues/dead/redrive",
               "{\"to\":\"mail\",\"limit\":120}");
    CHECK_CALL("{\"moved\":130,\"to\":\"mail\"}", &api, "POST", "/api/queues/dead/redrive",
               "{\"to\":\"mail\"}");
    CHECK_CALL("{\"moved\":0,\"to\":\"mail\"}", &api, "POST", "/api/queues/dead/redrive",
               "{\"to\":\"mail\"}");
    cn_api_close(&api);
    open_api(&api, path, true);
    char *line = call(&api, "GET", "/api/queues/mail/messages?limit=1", NULL);
    CHECK(strstr(line, "\"body\":{\"n\":0}}],\"cursor\":\"r"));
    cn_free(line);
    line = call(&api, "GET", "/api/queues", NULL);
    CHECK(strstr(line, "{\"name\":\"dead\",\"backlog\":0,"));
    CHECK(strstr(line, "{\"name\":\"mail\",\"backlog\":250,"));
    cn_free(line);
    cn_api_close(&api);
}
