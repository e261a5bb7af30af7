/* SPDX-License-Identifier: Apache-2.0 */
#include "store/kvtable.h"

#include <string.h>

#include "base/mem.h"
#include "store/database_private.h"
#include "store/template.h"

/* Pairs fetched at a time: the callback may change the table between batches. */
enum { LIST_BATCH = 64 };

/* Nothing is in it, and nobody has to look. */
static bool is_empty(const struct cn_database *db)
{
    return !db->connection && !db->in_transaction && cn_image_page_count(db->image) == 0;
}

/* Does the table exist? Remembered once it does. */
static int table_check(struct cn_database *db, struct cn_err *err)
{
    if (is_empty(db))
        return 0;
    if (db->has_kv && !db->template)
        return 1;
    int rc = cn_database_require(db, err);
    if (rc < 0)
        return rc;
    rc = sqlite3_table_column_metadata(db->connection, "main", "_cf_KV", NULL, NULL, NULL, NULL,
                                       NULL, NULL);
    if (rc == SQLITE_OK) {
        db->has_kv = true;
        return 1;
    }
    return rc == SQLITE_ERROR ? 0 : cn_database_error(db, rc, err);
}

static int table_make(struct cn_database *db, struct cn_err *err)
{
    int rc = table_check(db, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = cn_database_exec(db,
                          "CREATE TABLE IF NOT EXISTS _cf_KV(key TEXT PRIMARY KEY NOT NULL, value "
                          "BLOB) WITHOUT ROWID",
                          err);
    if (rc == 0)
        rc = cn_template_end(db, err); /* T6: rows come */
    db->has_kv = rc == 0;
    return rc;
}

static void bind_key(sqlite3_stmt *stmt, int index, struct cn_kv_bytes key)
{
    (void)sqlite3_bind_text64(stmt, index, key.size ? key.data : "", key.size, SQLITE_STATIC,
                              SQLITE_UTF8);
}

/* Steps a statement that returns no rows. */
static int run(struct cn_database *db, sqlite3_stmt *stmt, struct cn_err *err)
{
    int rc = sqlite3_step(stmt);
    int result = rc == SQLITE_DONE ? 0 : cn_database_error(db, rc, err);
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt); /* they were borrowed */
    return result;
}

int cn_kvtable_get(struct cn_database *db, struct cn_kv_bytes key, struct cn_kv_bytes *value,
                   struct cn_err *err)
{
    sqlite3_stmt *stmt;
    int rc = table_check(db, err);
    if (rc <= 0)
        return rc;
    rc = cn_database_own(db, CN_OWN_KV_GET, &stmt, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_reset(stmt); /* the value of the last call was borrowed until now */
    bind_key(stmt, 1, key);
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        value->data = sqlite3_column_blob(stmt, 0);
        value->size = (size_t)sqlite3_column_bytes(stmt, 0);
        if (!value->data)
            value->data = "";
        return 1;
    }
    int result = rc == SQLITE_DONE ? 0 : cn_database_error(db, rc, err);
    (void)sqlite3_reset(stmt);
    return result;
}

int cn_kvtable_put(struct cn_database *db, struct cn_kv_bytes key, struct cn_kv_bytes value,
                   struct cn_err *err)
{
    sqlite3_stmt *stmt;
    bool empty = is_empty(db); /* then the table may come with a template, transaction and all */
    int rc = empty ? 0 : cn_database_begin(db, err);
    if (rc == 0)
        rc = table_make(db, err);
    if (rc == 0 && empty)
        rc = cn_database_begin(db, err);
    if (rc == 0)
        rc = cn_database_own(db, CN_OWN_KV_PUT, &stmt, err);
    if (rc < 0)
        return rc;
    bind_key(stmt, 1, key);
    (void)sqlite3_bind_blob64(stmt, 2, value.size ? value.data : "", value.size, SQLITE_STATIC);
    return run(db, stmt, err);
}

int cn_kvtable_delete(struct cn_database *db, struct cn_kv_bytes key, struct cn_err *err)
{
    sqlite3_stmt *stmt;
    int rc = table_check(db, err);
    if (rc <= 0)
        return rc;
    rc = cn_database_begin(db, err);
    if (rc == 0)
        rc = cn_database_own(db, CN_OWN_KV_DELETE, &stmt, err);
    if (rc < 0)
        return rc;
    bind_key(stmt, 1, key);
    rc = run(db, stmt, err);
    return rc < 0 ? rc : sqlite3_changes(db->connection) > 0;
}

/* ---- Listing ---- */

/* Memory of its own for keys that outlive a step. */
struct owned {
    uint8_t *data;
    size_t size;
};

static void owned_set(struct owned *owned, const void *data, size_t size)
{
    uint8_t *copy = size ? cn_memdup(data, size) : NULL;
    cn_free(owned->data);
    owned->data = copy;
    owned->size = size;
}

static int bytes_compare(const void *a, size_t a_size, const void *b, size_t b_size)
{
    size_t least = a_size < b_size ? a_size : b_size;
    int order = least ? memcmp(a, b, least) : 0;
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

/* The bounds of a walk: low <= key < high. */
struct bounds {
    struct owned low, high;
    bool has_high;
};

/* Appends a zero byte: the least key above `key`. */
static void owned_after(struct owned *owned, const void *key, size_t size)
{
    uint8_t *copy = cn_alloc(size + 1);
    if (size)
        memcpy(copy, key, size);
    copy[size] = 0;
    cn_free(owned->data);
    owned->data = copy;
    owned->size = size + 1;
}

static void bounds_lower_high(struct bounds *bounds, const void *data, size_t size)
{
    if (bounds->has_high && bytes_compare(bounds->high.data, bounds->high.size, data, size) <= 0)
        return;
    owned_set(&bounds->high, data, size);
    bounds->has_high = true;
}

static void bounds_init(struct bounds *bounds, const struct cn_kvtable_range *range)
{
    *bounds = (struct bounds){0};
    if (range->start.data && range->start_after)
        owned_after(&bounds->low, range->start.data, range->start.size);
    else if (range->start.data)
        owned_set(&bounds->low, range->start.data, range->start.size);
    if (range->end.data)
        bounds_lower_high(bounds, range->end.data, range->end.size);
    const struct cn_kv_bytes *prefix = &range->prefix;
    if (prefix->size == 0)
        return;
    if (bytes_compare(bounds->low.data, bounds->low.size, prefix->data, prefix->size) < 0)
        owned_set(&bounds->low, prefix->data, prefix->size);
    /* The least key above all that begin with the prefix: its last byte but 0xff, plus one. */
    uint8_t *end = cn_memdup(prefix->data, prefix->size);
    size_t size = prefix->size;
    while (size > 0 && end[size - 1] == 0xff)
        size--;
    if (size > 0) {
        end[size - 1]++;
        bounds_lower_high(bounds, end, size);
    }
    cn_free(end);
}

static void bounds_fini(struct bounds *bounds)
{
    cn_free(bounds->low.data);
    cn_free(bounds->high.data);
}

struct pair {
    struct owned key, value;
};

/* Fetches up to `max` pairs of the walk and moves its bound past them. */
static int batch_fetch(struct cn_database *db, struct bounds *bounds, bool reverse, int max,
                       struct pair *pairs, struct cn_err *err)
{
    sqlite3_stmt *stmt;
    int rc = cn_database_own(db, reverse ? CN_OWN_KV_LIST_REVERSE : CN_OWN_KV_LIST, &stmt, err);
    if (rc < 0)
        return rc;
    bind_key(stmt, 1, (struct cn_kv_bytes){bounds->low.data, bounds->low.size});
    if (bounds->has_high)
        bind_key(stmt, 2, (struct cn_kv_bytes){bounds->high.data, bounds->high.size});
    (void)sqlite3_bind_int(stmt, 3, max);
    int count = 0;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        CN_ASSERT(count < max);
        struct pair *pair = &pairs[count++];
        owned_set(&pair->key, sqlite3_column_text(stmt, 0), (size_t)sqlite3_column_bytes(stmt, 0));
        owned_set(&pair->value, sqlite3_column_blob(stmt, 1),
                  (size_t)sqlite3_column_bytes(stmt, 1));
    }
    int result = rc == SQLITE_DONE ? count : cn_database_error(db, rc, err);
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    if (result > 0 && reverse)
        bounds_lower_high(bounds, pairs[count - 1].key.data, pairs[count - 1].key.size);
    else if (result > 0)
        owned_after(&bounds->low, pairs[count - 1].key.data, pairs[count - 1].key.size);
    return result;
}

int cn_kvtable_list(struct cn_database *db, const struct cn_kvtable_range *range,
                    int (*each)(void *data, struct cn_kv_bytes key, struct cn_kv_bytes value),
                    void *data, struct cn_err *err)
{
    int rc = table_check(db, err);
    if (rc <= 0)
        return rc;
    struct bounds bounds;
    struct pair pairs[LIST_BATCH] = {0};
    bounds_init(&bounds, range);
    int64_t left = range->limit > 0 ? range->limit : INT64_MAX;
    int stop = 0, max, count;
    do {
        max = left < LIST_BATCH ? (int)left : LIST_BATCH;
        count = max ? batch_fetch(db, &bounds, range->reverse, max, pairs, err) : 0;
        for (int i = 0; i < count && !stop; i++)
            stop = each(data, (struct cn_kv_bytes){pairs[i].key.data, pairs[i].key.size},
                        (struct cn_kv_bytes){pairs[i].value.data, pairs[i].value.size});
        left -= count;
    } while (count == max && max > 0 && !stop);
    for (int i = 0; i < LIST_BATCH; i++) {
        cn_free(pairs[i].key.data);
        cn_free(pairs[i].value.data);
    }
    bounds_fini(&bounds);
    return count < 0 ? count : stop;
}
