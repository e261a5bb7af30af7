/* SPDX-License-Identifier: Apache-2.0 */
/* SQL and pairs of an object through the control API: Q1 to Q4 of admin/control_sql.c, and what is
 * refused. The caller has the directory for itself; test/integration/admin/ has live objects. */
#include <stdio.h>
#include <string.h>

#include "admin/control.h"
#include "admin/guard.h"
#include "base/mem.h"
#include "object/id.h"
#include "object/shard.h"
#include "store/kvtable.h"
#include "test/lib/storetest.h"
#include "test/lib/test.h"
#include "text/percent.h"

static struct cn_disk *disk;
static struct cn_store *store;
static struct cn_shards *shards;
static struct cn_control control;
static char id[CN_OBJECT_HEX_SIZE + 1];

static void begin(void)
{
    disk = storetest_disk();
    store = storetest_open(disk, NULL);
    struct cn_database *db = storetest_database(store, 1);
    storetest_exec(db, "CREATE TABLE t (a, b)");
    storetest_commit(db);
    cn_database_close(db);
    struct cn_object_key key = storetest_key(1);
    cn_id_to_hex(key.id, id);
    struct cn_err err;
    CHECK_INT(0, cn_shards_single(store, NULL, &shards, &err));
    control = (struct cn_control){.disk = disk, .shards = shards};
}

static void end(void)
{
    cn_shards_free(shards);
    cn_store_close(store);
    cn_disk_system_free(disk);
}

/* --- a call --------------------------------------------------------------------------------- */

struct asked {
    struct cn_control_call call; /* first */
    const char *body;
    size_t left;
    struct cn_buf answer;
};

static int64_t on_read(struct cn_control_call *call, void *bytes, size_t size)
{
    struct asked *asked = (struct asked *)call;
    size_t count = size < asked->left ? size : asked->left;
    if (!count)
        return 0;
    memcpy(bytes, asked->body, count);
    asked->body += count;
    asked->left -= count;
    return (int64_t)count;
}

static int on_write(struct cn_control_call *call, const void *bytes, size_t size)
{
    cn_buf_append(&((struct asked *)call)->answer, bytes, size);
    return 0;
}

static struct cn_buf answer;

static int ask(const char *method, const char *path, const char *body)
{
    char target[8192];
    snprintf(target, sizeof(target), "/api/objects/test%%2FObject/%s/%s", id, path);
    struct asked asked = {.call = {.control = &control,
                                   .method = method,
                                   .target = target,
                                   .content_type = "application/json",
                                   .body_size = body ? (int64_t)strlen(body) : 0,
                                   .read = on_read,
                                   .write = on_write},
                          .body = body,
                          .left = body ? strlen(body) : 0};
    cn_guard_operator(&asked.call.who);
    cn_control_run(&asked.call);
    cn_buf_fini(&answer);
    answer = asked.answer;
    cn_buf_fini(&asked.call.fields);
    return asked.call.status;
}

static const char *text(void)
{
    return cn_buf_text(&answer);
}

static void check_ask(int line, int want, const char *method, const char *path, const char *body)
{
    int status = ask(method, path, body);
    if (status != want)
        test_fail(__FILE__, line, "%s: %d %.300s", body ? body : path, status, text());
}
#define CHECK_ASK(status, method, path, body) check_ask(__LINE__, status, method, path, body)
#define CHECK_SAYS(part)                                                    \
    do {                                                                    \
        if (!strstr(text(), part))                                          \
            test_fail(__FILE__, __LINE__, "no %s in %.500s", part, text()); \
    } while (0)

static const char *stored(const char *sql)
{
    struct cn_database *db = storetest_database(store, 1);
    static char result[256];
    snprintf(result, sizeof(result), "%s", storetest_text(db, sql));
    cn_database_close(db);
    return result;
}

/* --- SQL ------------------------------------------------------------------------------------ */

TEST(control_sql, every_type_of_value_comes_back_as_json)
{
    begin();
    CHECK_ASK(200, "POST", "sql",
              "{\"sql\":\"SELECT NULL, -9223372036854775808, 1.5, 'q\\\"\\n', x'00ff', 1e999, "
              "-1e999, ?, ?, ?, ?\",\"params\":[true,\"\\u00e4\",null,-2.5]}");
    CHECK_SAYS("\"rows\":[[null,-9223372036854775808,1.5,\"q\\\"\\n\",{\"base64\":\"AP8=\"},"
               "\"inf\",\"-inf\",1,\"\xc3\xa4\",null,-2.5]]");
    CHECK_SAYS("\"truncated\":false");
    end();
}

TEST(control_sql, Q1_a_script_is_done_whole_or_not_at_all)
{
    begin();
    CHECK_ASK(200, "POST", "sql",
              "{\"sql\":\"INSERT INTO t VALUES (?, ?); INSERT INTO t VALUES (3, 4); ; -- x\\n"
              "SELECT count(*) AS n FROM t;\",\"params\":[1,2]}");
    CHECK_SAYS("\"columns\":[\"n\"],\"rows\":[[2]]");
    CHECK_STR("2", stored("SELECT count(*) FROM t"));
    static const char *const broken[] = {
        "INSERT INTO t VALUES (5, 6); SELECT nothing",
        "INSERT INTO t VALUES (5, 6); INSERT INTO nowhere VALUES (1)",
        "DELETE FROM t; SELEKT",
        "DELETE FROM t; COMMIT",
        "DELETE FROM t; SELECT ?",
        "DROP TABLE t; SELECT abs(-9223372036854775808)",
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        char body[256];
        snprintf(body, sizeof(body), "{\"sql\":\"%s\"}", broken[i]);
        int status = ask("POST", "sql", body);
        if (status < 400 || status >= 500)
            test_fail(__FILE__, __LINE__, "%s: %d", broken[i], status);
        CHECK_STR("2", stored("SELECT count(*) FROM t"));
    }
    end();
}

TEST(control_sql, what_an_object_may_not_do_is_not_done_for_it)
{
    begin();
    static const char *const denied[] = {
        "BEGIN",
        "COMMIT",
        "SAVEPOINT x",
        "ROLLBACK",
        "ATTACH 'x' AS y",
        "PRAGMA journal_mode=OFF",
        "SELECT * FROM _cf_KV",
        "CREATE TABLE _cf_x (a)",
        "VACUUM",
        "PRAGMA writable_schema=1",
        "SELECT load_extension('x')",
    };
    for (size_t i = 0; i < sizeof(denied) / sizeof(denied[0]); i++) {
        char body[128];
        snprintf(body, sizeof(body), "{\"sql\":\"%s\"}", denied[i]);
        int status = ask("POST", "sql", body);
        if (status < 400 || status >= 500)
            test_fail(__FILE__, __LINE__, "%s: %d %.200s", denied[i], status, text());
    }
    end();
}

TEST(control_sql, Q2_an_answer_has_its_bounds_and_writes_are_whole)
{
    begin();
    CHECK_ASK(200, "POST", "sql",
              "{\"sql\":\"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT "
              "10000) SELECT i FROM n\"}");
    CHECK_SAYS("[10000]]");
    CHECK_SAYS("\"truncated\":false");
    CHECK_ASK(200, "POST", "sql",
              "{\"sql\":\"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT "
              "10001) INSERT INTO t SELECT i, 0 FROM n RETURNING a\"}");
    CHECK_SAYS("\"truncated\":true");
    CHECK(!strstr(text(), "[10001]"));
    CHECK_STR("10001", stored("SELECT count(*) FROM t"));
    /* 3 MB each: three fit, the third past the limit is the last */
    CHECK_ASK(200, "POST", "sql",
              "{\"sql\":\"SELECT printf('%.*c', 3000000, 'x') FROM t LIMIT 10\"}");
    CHECK_SAYS("\"truncated\":true");
    CHECK(answer.size > (8u << 20) && answer.size < (12u << 20));
    struct cn_buf many = {0};
    cn_buf_append_str(&many, "{\"sql\":\"");
    for (int i = 0; i < 100; i++)
        cn_buf_append_str(&many, "SELECT 1;");
    cn_buf_append_str(&many, "\"}");
    CHECK_ASK(200, "POST", "sql", cn_buf_text(&many));
    cn_buf_clear(&many);
    cn_buf_append_str(&many, "{\"sql\":\"DELETE FROM t;");
    for (int i = 0; i < 100; i++)
        cn_buf_append_str(&many, "SELECT 1;");
    cn_buf_append_str(&many, "\"}");
    CHECK_ASK(413, "POST", "sql", cn_buf_text(&many));
    CHECK_STR("10001", stored("SELECT count(*) FROM t")); /* Q1 */
    cn_buf_fini(&many);
    end();
}

TEST(control_sql, Q3_readonly_is_refused_before_it_writes)
{
    begin();
    CHECK_ASK(200, "POST", "sql", "{\"sql\":\"SELECT 1; SELECT a FROM t\",\"readonly\":true}");
    static const char *const writes[] = {"INSERT INTO t VALUES (1, 1)", "DELETE FROM t",
                                         "CREATE TABLE u (a)", "SELECT 1; UPDATE t SET a = 1",
                                         "INSERT INTO t VALUES (1, 1) RETURNING a"};
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        char body[128];
        snprintf(body, sizeof(body), "{\"sql\":\"%s\",\"readonly\":true}", writes[i]);
        CHECK_ASK(403, "POST", "sql", body);
    }
    CHECK_STR("0", stored("SELECT count(*) FROM t"));
    CHECK_STR("0", stored("SELECT count(*) FROM sqlite_schema WHERE name = 'u'"));
    CHECK_ASK(200, "POST", "sql", "{\"sql\":\"DELETE FROM t\",\"readonly\":false}");
    end();
}

TEST(control_sql, what_is_not_a_script_is_refused_with_a_sentence)
{
    begin();
    static const char *const bodies[] = {
        "{}",
        "{\"sql\":1}",
        "{\"sql\":null}",
        "{\"sql\":[\"SELECT 1\"]}",
        "{\"sql\":\"SELECT 1\\u0000; DELETE FROM t\"}",
        "{\"sql\":\"SELECT 1\",\"params\":{}}",
        "{\"sql\":\"SELECT 1\",\"params\":[1]}",
        "{\"sql\":\"SELECT ?\",\"params\":[]}",
        "{\"sql\":\"SELECT ?\",\"params\":[[1]]}",
        "{\"sql\":\"SELECT ?\",\"params\":[{\"base64\":\"AA==\"}]}",
        "{\"sql\":\"SELECT 1\",\"readonly\":1}",
        "{\"sql\":\"SELECT 1\",\"readonly\":\"true\"}",
        "[]",
        "\"SELECT 1\"",
        "{\"sql\":",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        CHECK_ASK(400, "POST", "sql", bodies[i]);
        CHECK_SAYS("{\"error\":{\"code\":\"");
    }
    CHECK_ASK(405, "GET", "sql", NULL);
    CHECK_ASK(200, "POST", "sql", "{\"sql\":\"\"}"); /* nothing to do */
    CHECK_SAYS("{\"results\":[],\"truncated\":false}");
    snprintf(id, sizeof(id), "nobody");
    CHECK_ASK(404, "POST", "sql", "{\"sql\":\"SELECT 1\"}");
    end();
}

/* --- pairs ---------------------------------------------------------------------------------- */

static void put(const void *key, size_t key_size, const char *value)
{
    struct cn_buf path = {0};
    cn_buf_append_str(&path, "kv/");
    for (size_t i = 0; i < key_size; i++)
        cn_buf_printf(&path, "%%%02x", ((const uint8_t *)key)[i]);
    CHECK_ASK(200, "PUT", cn_buf_text(&path), value);
    cn_buf_fini(&path);
}

/* Goes through all pages and counts the keys. */
static unsigned count_pages(unsigned limit, const char *prefix)
{
    char cursor[4200] = "";
    unsigned keys = 0;
    for (unsigned pages = 0;; pages++) {
        struct cn_err err;
        char path[4400];
        CHECK(pages < 100);
        snprintf(path, sizeof(path), "kv?limit=%u%s%s%s%s", limit, prefix ? "&prefix=" : "",
                 prefix ? prefix : "", *cursor ? "&cursor=" : "", cursor);
        CHECK_ASK(200, "GET", path, NULL);
        struct cn_json *json = cn_json_parse(text(), strlen(text()), &err);
        CHECK(json);
        unsigned here = 0;
        for (const struct cn_json *each = cn_json_find(json, "entries")->first; each;
             each = each->next)
            here++;
        CHECK(here <= (limit ? limit : 1));
        keys += here;
        const char *next = cn_json_text(json, "cursor");
        snprintf(cursor, sizeof(cursor), "%s", next ? next : "");
        cn_json_free(json);
        if (!*cursor)
            return keys;
    }
}

TEST(control_kv, Q4_pages_have_every_key_once_whatever_bytes_it_has)
{
    begin();
    static const struct {
        const char *bytes;
        size_t size;
    } keys[] = {
        {"a", 1},    {"a\0b", 3},  {"a\0", 2},    {"\0", 1},       {"\x01", 1},
        {"%41", 3},  {"a&b=c", 5}, {"a/b//c", 6}, {"\xc3\xa4", 2}, {"\xf0\x9f\x98\x80", 4},
        {"\x7f", 1}, {"\"\\", 2},  {" ", 1},      {"+", 1},        {"\n", 1},
    };
    enum { COUNT = sizeof(keys) / sizeof(keys[0]) };
    for (size_t i = 0; i < COUNT; i++)
        put(keys[i].bytes, keys[i].size, "1");
    char longest[2048];
    memset(longest, 'z', sizeof(longest));
    put(longest, sizeof(longest), "\"long\"");
    for (unsigned limit = 0; limit < 20; limit++)
        CHECK_INT(COUNT + 1, count_pages(limit, NULL));
    CHECK_INT(5, count_pages(1, "a"));
    CHECK_INT(5, count_pages(1000, "a"));
    CHECK_INT(1, count_pages(1, "%25"));
    CHECK_INT(0, count_pages(10, "nothing"));
    static const char *const bad[] = {
        "kv?cursor=zz",   "kv?cursor=p",   "kv?cursor=p1",  "kv?cursor=k6161",
        "kv?cursor=p%00", "kv?limit=1001", "kv?limit=-1",   "kv?limit=x",
        "kv?limit=",      "kv?cursor=pgg", "kv?prefix=%zz", "kv?prefix=%00"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_ASK(400, "GET", bad[i], NULL);
    end();
}

TEST(control_kv, a_pair_is_written_read_and_deleted)
{
    begin();
    CHECK_ASK(200, "PUT", "kv/cart", "{\"n\":[1,2.5,null,true,\"x\"]}");
    CHECK_SAYS("\"value\":{\"n\":[1,2.5,null,true,\"x\"]}");
    CHECK_ASK(200, "GET", "kv", NULL);
    CHECK_SAYS("{\"entries\":[{\"key\":\"cart\",\"bytes\":");
    CHECK_SAYS("\"value\":{\"n\":[1,2.5,null,true,\"x\"]}}],\"cursor\":null}");
    CHECK_ASK(200, "PUT", "kv/cart", "2");
    CHECK_ASK(200, "GET", "kv", NULL);
    CHECK_SAYS("\"value\":2}]");
    CHECK_ASK(200, "DELETE", "kv/cart", NULL);
    CHECK_SAYS("{\"deleted\":true}");
    CHECK_ASK(200, "DELETE", "kv/cart", NULL);
    CHECK_SAYS("{\"deleted\":false}");
    CHECK_ASK(400, "PUT", "kv/cart", NULL);
    CHECK_ASK(400, "PUT", "kv/", "1");
    CHECK_ASK(400, "PUT", "kv/%ff", "1"); /* no UTF-8 */
    struct cn_buf path = {0};
    cn_buf_append_str(&path, "kv/");
    for (int i = 0; i < 2049; i++)
        cn_buf_append_byte(&path, 'k');
    CHECK_ASK(400, "PUT", cn_buf_text(&path), "1");
    CHECK_ASK(400, "DELETE", cn_buf_text(&path), NULL);
    cn_buf_fini(&path);
    CHECK_ASK(200, "GET", "kv", NULL);
    CHECK_SAYS("{\"entries\":[],\"cursor\":null}");
    end();
}
