/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/storemodel.h"

#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/store.h"

enum { NAMESPACES = 2, ROW_MAX = 20000 };
static const char *const namespace_names[NAMESPACES] = {"app/Counter", "app/Room"};

static int wrong(struct model *model, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int wrong(struct model *model, const char *format, ...)
{
    if (!model->why[0]) {
        va_list args;
        va_start(args, format);
        vsnprintf(model->why, sizeof(model->why), format, args);
        va_end(args);
    }
    return CN_ECORRUPT;
}

static const struct model_state nothing = {.alarm_ms = CN_ALARM_NONE};

static void add_version(struct model_object *object, uint64_t lsn, const struct model_state *state)
{
    object->versions = cn_realloc(object->versions, (size_t)(object->version_count + 1) *
                                                        sizeof(object->versions[0]));
    object->versions[object->version_count++] = (struct model_version){lsn, *state};
}

static const struct model_state *last_state(const struct model_object *object)
{
    return &object->versions[object->version_count - 1].state;
}

void model_init(struct model *model, uint64_t seed, int object_count)
{
    *model = (struct model){.object_count = object_count};
    cn_rand_init(&model->rand, seed);
    for (int i = 0; i < object_count; i++) {
        struct model_object *object = &model->objects[i];
        object->key.namespace_id = 1 + (uint32_t)(i % NAMESPACES);
        memset(object->key.id, i * 37 + 11, sizeof(object->key.id));
        object->key.id[1] = (uint8_t)i;
        add_version(object, 0, &nothing);
    }
}

void model_fini(struct model *model)
{
    for (int i = 0; i < model->object_count; i++)
        cn_free(model->objects[i].versions);
}

int model_open_namespaces(struct model *model, struct cn_store *store)
{
    for (uint32_t i = 0; i < NAMESPACES; i++) {
        struct cn_err err = {0};
        uint32_t id;
        int rc = cn_store_namespace(store, namespace_names[i], &id, &err);
        if (rc < 0)
            return rc;
        if (id != i + 1)
            return wrong(model, "namespace %s has number %u instead of %u", namespace_names[i], id,
                         i + 1);
    }
    return 0;
}

static void fill(uint8_t *bytes, const struct model_slot *slot)
{
    struct cn_rand rand;
    cn_rand_init(&rand, slot->seed);
    uint64_t word = 0;
    for (uint32_t i = 0; i < slot->size; i++) {
        if (i % 8 == 0)
            word = cn_rand_next(&rand);
        /* Half of the rows compress, half do not. */
        bytes[i] = slot->seed & 1 ? (uint8_t)(word >> i % 8 * 8) : (uint8_t)(slot->seed + i / 64);
    }
}

static void object_name(const struct model_object *object, char name[32])
{
    snprintf(name, 32, "object-%u", object->key.id[1]);
}

/* ---- a turn ---- */

static int run(struct cn_database *db, const char *sql, const int64_t *numbers, int number_count,
               const void *blob, size_t blob_size, struct cn_err *err)
{
    struct cn_statement *statement;
    size_t used;
    int rc = cn_database_prepare(db, sql, strlen(sql), 0, &statement, &used, err);
    if (rc < 0)
        return rc;
    for (int i = 0; rc >= 0 && i < number_count; i++)
        rc = cn_statement_bind_int(statement, i + 1, numbers[i], err);
    if (rc >= 0 && blob)
        rc = cn_statement_bind_blob(statement, number_count + 1, blob, blob_size, false, err);
    if (rc >= 0)
        do
            rc = cn_statement_step(statement, err);
        while (rc > 0);
    cn_statement_release(statement);
    return rc;
}

static int make_tables(struct cn_database *db, struct model_state *state, struct cn_err *err)
{
    if (state->version > 0)
        return 0;
    return cn_database_exec(db,
                            "CREATE TABLE row(k INTEGER PRIMARY KEY, seed INTEGER, bytes BLOB);"
                            "CREATE INDEX row_seed ON row(seed);"
                            "CREATE TABLE version(v INTEGER);"
                            "INSERT INTO version VALUES (0)",
                            err);
}

static int set_slot(struct cn_database *db, struct model_state *state, int k,
                    struct model_slot slot, struct cn_err *err)
{
    static uint8_t bytes[ROW_MAX];
    int rc;
    fill(bytes, &slot);
    if (slot.size == 0)
        rc = run(db, "DELETE FROM row WHERE k = ?", &(int64_t){k}, 1, NULL, 0, err);
    else
        rc = run(db, "INSERT OR REPLACE INTO row(k, seed, bytes) VALUES (?, ?, ?)",
                 (int64_t[]){k, slot.seed}, 2, bytes, slot.size, err);
    if (rc == 0)
        state->slots[k] = slot.size ? slot : (struct model_slot){0};
    return rc;
}

static struct model_slot random_slot(struct model *model)
{
    struct model_slot slot = {.seed = (uint32_t)cn_rand_next(&model->rand)};
    uint64_t kind = cn_rand_below(&model->rand, 16);
    if (kind < 3)
        return slot;
    uint64_t bound = kind == 15 ? ROW_MAX : kind > 11 ? 3000 : 60;
    slot.size = 1 + (uint32_t)cn_rand_below(&model->rand, bound - 1);
    return slot;
}

static int random_rows(struct model *model, struct cn_database *db, struct model_state *state,
                       struct cn_err *err)
{
    int rc = make_tables(db, state, err);
    uint64_t count = cn_rand_below(&model->rand, 10) ? 1 + cn_rand_below(&model->rand, 3) : 20;
    for (uint64_t i = 0; rc == 0 && i < count; i++) {
        int k = (int)cn_rand_below(&model->rand, MODEL_SLOTS);
        rc = set_slot(db, state, k, random_slot(model), err);
    }
    if (rc == 0) {
        state->version = ++model->next_version;
        rc = run(db, "UPDATE version SET v = ?", &(int64_t){(int64_t)state->version}, 1, NULL, 0,
                 err);
    }
    return rc;
}

/* The cheapest turn, and the commonest in life: one number goes up. */
static int count_up(struct model *model, struct cn_database *db, struct model_state *state,
                    struct cn_err *err)
{
    int rc = make_tables(db, state, err);
    state->version = ++model->next_version;
    if (rc == 0)
        rc = run(db, "UPDATE version SET v = ?", &(int64_t){(int64_t)state->version}, 1, NULL, 0,
                 err);
    return rc;
}

static int undone_savepoint(struct model *model, struct cn_database *db, struct model_state *state,
                            struct cn_err *err)
{
    struct model_state scratch = *state;
    int level = cn_database_savepoint(db, err);
    if (level < 0)
        return level;
    int rc = random_rows(model, db, &scratch, err);
    if (rc < 0)
        return rc;
    return cn_database_savepoint_rollback(db, level, err);
}

static int delete_all(struct model *model, struct cn_database *db, struct model_state *state,
                      struct cn_err *err)
{
    bool alarm_too = cn_rand_below(&model->rand, 2);
    int rc = cn_database_delete_all(db, alarm_too, err);
    if (rc == 0) {
        memset(state->slots, 0, sizeof(state->slots));
        state->version = 0;
        if (alarm_too)
            state->alarm_ms = CN_ALARM_NONE;
    }
    return rc;
}

static int change(struct model *model, struct model_object *object, struct model_state *state,
                  struct cn_err *err)
{
    struct cn_database *db = object->db;
    uint64_t draw = cn_rand_below(&model->rand, 100);
    if (draw < 40)
        return count_up(model, db, state, err);
    if (draw < 80)
        return random_rows(model, db, state, err);
    if (draw < 86)
        return undone_savepoint(model, db, state, err);
    if (draw < 94) {
        state->alarm_ms = cn_rand_below(&model->rand, 3)
                              ? (int64_t)(1000000 + cn_rand_below(&model->rand, 1000000))
                              : CN_ALARM_NONE;
        return cn_database_set_alarm(db, state->alarm_ms, err);
    }
    if (draw < 97) {
        char name[32];
        object_name(object, name);
        state->has_name = true;
        return cn_database_set_name(db, name, strlen(name), err);
    }
    return delete_all(model, db, state, err);
}

static bool states_equal(const struct model_state *a, const struct model_state *b)
{
    return a->exists == b->exists && a->version == b->version && a->alarm_ms == b->alarm_ms &&
           a->has_name == b->has_name && memcmp(a->slots, b->slots, sizeof(a->slots)) == 0;
}

static void intend(struct model *model, const struct model_object *object,
                   const struct model_state *state)
{
    if (model->on_intent)
        model->on_intent(model->intent_data, (int)(object - model->objects), state);
}

static int delete_object(struct model *model, struct cn_store *store, struct model_object *object,
                         uint64_t *lsn, struct cn_err *err)
{
    cn_database_close(object->db);
    object->db = NULL;
    intend(model, object, &nothing);
    int rc = cn_store_delete(store, &object->key, lsn, err);
    if (rc == 0 && last_state(object)->exists) {
        add_version(object, *lsn, &nothing);
        model->commit_count++;
    }
    return rc;
}

/* On a sound disk the store has no reason to refuse anything. */
static int judge(struct model *model, const struct model_object *object, int rc,
                 const struct cn_err *err)
{
    if (model->faults)
        return rc;
    return wrong(model, "turn on object %u failed: %s (%d)", object->key.id[1], err->text, rc);
}

int model_turn(struct model *model, struct cn_store *store, uint64_t *lsn)
{
    struct model_object *object =
        &model->objects[cn_rand_below(&model->rand, (uint64_t)model->object_count)];
    struct cn_err err = {0};
    int rc = 0;
    *lsn = 0;
    if (object->db && cn_rand_below(&model->rand, 8) == 0) {
        cn_database_close(object->db);
        object->db = NULL;
    }
    if (cn_rand_below(&model->rand, 60) == 0) {
        rc = delete_object(model, store, object, lsn, &err);
        return rc < 0 ? judge(model, object, rc, &err) : 0;
    }
    if (!object->db)
        rc = cn_database_open(store, &object->key, NULL, &object->db, &err);
    if (rc < 0)
        return judge(model, object, rc, &err);
    struct model_state state = *last_state(object);
    do
        rc = change(model, object, &state, &err);
    while (rc == 0 && cn_rand_below(&model->rand, 4) == 0);
    if (rc < 0 || cn_rand_below(&model->rand, 20) == 0) {
        cn_database_rollback(object->db);
        return rc < 0 ? judge(model, object, rc, &err) : 0;
    }
    state.exists = true;
    intend(model, object, &state);
    rc = cn_database_commit(object->db, lsn, &err);
    if (rc < 0)
        return judge(model, object, rc, &err);
    if (*lsn > object->versions[object->version_count - 1].lsn) {
        add_version(object, *lsn, &state);
        model->commit_count++;
    } else if (!states_equal(&state, last_state(object)) && last_state(object)->exists) {
        return wrong(model, "object %u was changed, but its commit gave no new LSN",
                     object->key.id[1]);
    }
    return 0;
}

void model_close_databases(struct model *model)
{
    for (int i = 0; i < model->object_count; i++) {
        cn_database_close(model->objects[i].db);
        model->objects[i].db = NULL;
    }
}

/* ---- comparing ---- */

/* A way to run a query and see its rows, on a store's database or a plain file. */
struct rows {
    struct cn_statement *ours;
    sqlite3_stmt *plain;
};

static int rows_next(struct rows *rows, struct cn_err *err)
{
    if (rows->ours)
        return cn_statement_step(rows->ours, err);
    int rc = sqlite3_step(rows->plain);
    return rc == SQLITE_ROW ? 1
           : rc == SQLITE_DONE
               ? 0
               : cn_err_set(err, CN_ESQL, "%s", sqlite3_errmsg(sqlite3_db_handle(rows->plain)));
}

static int64_t rows_int(struct rows *rows, int column)
{
    return rows->ours ? cn_statement_column_int(rows->ours, column)
                      : sqlite3_column_int64(rows->plain, column);
}

static const void *rows_blob(struct rows *rows, int column, size_t *size)
{
    if (rows->ours)
        return cn_statement_column_blob(rows->ours, column, size);
    const void *blob = sqlite3_column_blob(rows->plain, column);
    *size = (size_t)sqlite3_column_bytes(rows->plain, column);
    return blob;
}

struct source {
    struct cn_database *db;
    sqlite3 *plain;
};

static int rows_open(struct source *source, const char *sql, struct rows *rows, struct cn_err *err)
{
    size_t used;
    *rows = (struct rows){0};
    if (source->db)
        return cn_database_prepare(source->db, sql, strlen(sql), 0, &rows->ours, &used, err);
    if (sqlite3_prepare_v2(source->plain, sql, -1, &rows->plain, NULL) != SQLITE_OK)
        return cn_err_set(err, CN_ESQL, "%s", sqlite3_errmsg(source->plain));
    return 0;
}

static void rows_close(struct rows *rows)
{
    cn_statement_release(rows->ours);
    sqlite3_finalize(rows->plain);
}

static int query_int(struct source *source, const char *sql, int64_t *value, struct cn_err *err)
{
    struct rows rows;
    int rc = rows_open(source, sql, &rows, err);
    if (rc < 0)
        return rc;
    rc = rows_next(&rows, err);
    *value = rc == 1 ? rows_int(&rows, 0) : 0;
    rows_close(&rows);
    return rc < 0 ? rc : 0;
}

static int check_integrity(struct model *model, struct source *source, unsigned name,
                           struct cn_err *err)
{
    struct rows rows;
    int rc = rows_open(source, "PRAGMA integrity_check", &rows, err);
    if (rc < 0)
        return rc;
    rc = rows_next(&rows, err);
    if (rc == 1) {
        size_t size;
        const char *text = rows_blob(&rows, 0, &size);
        rc = size == 2 && memcmp(text, "ok", 2) == 0
                 ? 0
                 : wrong(model, "object %u fails its integrity check: %.*s", name, (int)size, text);
    }
    rows_close(&rows);
    return rc;
}

static int read_rows(struct model *model, struct source *source, unsigned name,
                     struct model_state *state, struct cn_err *err)
{
    static uint8_t want[ROW_MAX];
    int64_t tables;
    int rc = model->spoilt ? 0 : check_integrity(model, source, name, err);
    if (rc == 0)
        rc = query_int(source, "SELECT count(*) FROM sqlite_master WHERE type = 'table'", &tables,
                       err);
    if (rc < 0 || tables == 0)
        return rc;
    int64_t version = 0;
    rc = query_int(source, "SELECT v FROM version", &version, err);
    state->version = (uint64_t)version;
    struct rows rows;
    if (rc == 0)
        rc = rows_open(source, "SELECT k, seed, bytes FROM row", &rows, err);
    if (rc < 0)
        return rc;
    while ((rc = rows_next(&rows, err)) == 1) {
        int64_t k = rows_int(&rows, 0);
        struct model_slot slot = {.seed = (uint32_t)rows_int(&rows, 1)};
        size_t size;
        const void *bytes = rows_blob(&rows, 2, &size);
        slot.size = (uint32_t)size;
        if (k < 0 || k >= MODEL_SLOTS || size > ROW_MAX) {
            rc = wrong(model, "object %u has a row nobody wrote", name);
            break;
        }
        fill(want, &slot);
        if (memcmp(bytes, want, size) != 0) {
            rc = wrong(model, "object %u, row %d: the bytes are not those written", name, (int)k);
            break;
        }
        state->slots[k] = slot;
    }
    rows_close(&rows);
    return rc;
}

/* What the catalog says about an object. */
static int read_catalog(struct model *model, struct cn_store *store, struct model_object *object,
                        struct model_state *state, struct cn_catalog_entry *entry)
{
    char name[CN_OBJECT_NAME_MAX + 1], want[32];
    struct cn_err err = {0};
    int rc = cn_catalog_find(cn_store_catalog(store), &object->key, entry, name, &err);
    if (rc < 0)
        return wrong(model, "catalog: %s", err.text);
    state->exists = rc == 1;
    state->alarm_ms = rc == 1 ? entry->alarm_ms : CN_ALARM_NONE;
    state->has_name = rc == 1 && entry->name_size > 0;
    object_name(object, want);
    if (state->has_name &&
        (entry->name_size != strlen(want) || memcmp(name, want, entry->name_size) != 0))
        return wrong(model, "object %u is called %.*s in the catalog", object->key.id[1],
                     entry->name_size, name);
    return 0;
}

int model_read_object(struct model *model, struct cn_store *store, struct model_object *object,
                      struct model_state *state)
{
    struct cn_err err = {0};
    struct cn_catalog_entry entry = {0};
    unsigned name = object->key.id[1];
    *state = nothing;
    int rc = read_catalog(model, store, object, state, &entry);
    if (rc < 0)
        return rc;
    struct cn_database *db;
    struct cn_database_options options = {.must_exist = true};
    rc = cn_database_open(store, &object->key, &options, &db, &err);
    if (rc == CN_ENOTFOUND)
        return state->exists ? wrong(model, "object %u is in the catalog but has no database", name)
                             : 0;
    if (rc < 0)
        return wrong(model, "object %u does not open: %s", name, err.text);
    if (!state->exists)
        rc = wrong(model, "object %u has a database but is not in the catalog", name);
    if (rc == 0 && cn_database_size(db) != entry.size)
        rc = wrong(model, "object %u has %llu bytes, in the catalog %llu", name,
                   (unsigned long long)cn_database_size(db), (unsigned long long)entry.size);
    if (rc == 0 && cn_database_alarm(db) != state->alarm_ms)
        rc = wrong(model, "object %u: the catalog has another alarm than the database", name);
    if (rc == 0) {
        rc = read_rows(model, &(struct source){.db = db}, name, state, &err);
        if (rc < 0)
            rc = wrong(model, "object %u cannot be read: %s", name, err.text);
    }
    cn_database_close(db);
    return rc;
}

struct alarm_count {
    int count;
    int64_t last_ms;
    bool unordered;
};

static int count_alarm(void *data, const struct cn_catalog_entry *entry)
{
    struct alarm_count *alarms = data;
    alarms->count++;
    alarms->unordered = alarms->unordered || entry->alarm_ms < alarms->last_ms;
    alarms->last_ms = entry->alarm_ms;
    return 0;
}

static int check_alarms(struct model *model, struct cn_store *store,
                        const struct model_state *states)
{
    struct alarm_count alarms = {0};
    struct cn_err err = {0};
    int want = 0;
    for (int i = 0; i < model->object_count; i++)
        want += states[i].alarm_ms != CN_ALARM_NONE;
    int rc = cn_catalog_list_alarms(cn_store_catalog(store), INT64_MAX, NULL, 1000, count_alarm,
                                    &alarms, &err);
    if (rc < 0)
        return wrong(model, "catalog: %s", err.text);
    if (alarms.count != want || alarms.unordered)
        return wrong(model, "the catalog lists %d alarms instead of %d, or out of order",
                     alarms.count, want);
    return 0;
}

/* Is every object in the state it had when the log ended at `lsn`? */
static bool all_as_of(const struct model *model, const struct model_state *states, uint64_t lsn)
{
    for (int i = 0; i < model->object_count; i++) {
        if (!states_equal(model_state_at(&model->objects[i], lsn), &states[i]))
            return false;
    }
    return true;
}

/* The smallest LSN above `lsn` of any commit, or UINT64_MAX. */
static uint64_t next_lsn(const struct model *model, uint64_t lsn)
{
    uint64_t next = UINT64_MAX;
    for (int i = 0; i < model->object_count; i++) {
        const struct model_object *object = &model->objects[i];
        for (int j = object->version_count - 1; j >= 0 && object->versions[j].lsn > lsn; j--)
            next = object->versions[j].lsn < next ? object->versions[j].lsn : next;
    }
    return next;
}

static void describe(const struct model_state *state, char text[128])
{
    uint64_t sum = 0;
    int rows = 0;
    for (int i = 0; i < MODEL_SLOTS; i++) {
        rows += state->slots[i].size > 0;
        sum = sum * 31 + (state->slots[i].size ? state->slots[i].seed : 0);
    }
    if (!state->exists)
        snprintf(text, 128, "absent");
    else if (state->alarm_ms == CN_ALARM_NONE)
        snprintf(text, 128, "version %llu, %d rows (%llx), no alarm, name %d",
                 (unsigned long long)state->version, rows, (unsigned long long)sum,
                 state->has_name);
    else
        snprintf(text, 128, "version %llu, %d rows (%llx), alarm %lld, name %d",
                 (unsigned long long)state->version, rows, (unsigned long long)sum,
                 (long long)state->alarm_ms, state->has_name);
}

/* Says what is wrong with states that are those of no moment since `acked_lsn`. */
static int explain(struct model *model, const struct model_state *states, uint64_t acked_lsn)
{
    for (int i = 0; i < model->object_count; i++) {
        struct model_object *object = &model->objects[i];
        int newest = object->version_count - 1;
        while (newest >= 0 && !states_equal(&object->versions[newest].state, &states[i]))
            newest--;
        unsigned name = object->key.id[1];
        if (newest < 0) {
            char found[128], want[128];
            describe(&states[i], found);
            describe(last_state(object), want);
            return wrong(model,
                         "M1: object %u is in no state it ever had: %s; after its last commit, "
                         "%llu, it was: %s; durable: %llu",
                         name, found,
                         (unsigned long long)object->versions[object->version_count - 1].lsn, want,
                         (unsigned long long)acked_lsn);
        }
        if (newest + 1 < object->version_count && object->versions[newest + 1].lsn <= acked_lsn)
            return wrong(model,
                         "M2: object %u is as of LSN %llu, but its commit %llu was acknowledged "
                         "(durable: %llu)",
                         name, (unsigned long long)object->versions[newest].lsn,
                         (unsigned long long)object->versions[newest + 1].lsn,
                         (unsigned long long)acked_lsn);
    }
    return wrong(model,
                 "M3: some commits are there although smaller LSNs are missing (durable: %llu)",
                 (unsigned long long)acked_lsn);
}

/* M1, M2 and M3 in one: the store is as it was at some moment, `acked_lsn` or later. */
static int compare(struct model *model, struct cn_store *store, uint64_t acked_lsn,
                   uint64_t *found_lsn)
{
    struct model_state states[MODEL_OBJECTS_MAX];
    for (int i = 0; i < model->object_count; i++) {
        int rc = model_read_object(model, store, &model->objects[i], &states[i]);
        if (rc < 0)
            return rc;
    }
    uint64_t lsn = acked_lsn;
    while (lsn != UINT64_MAX && !all_as_of(model, states, lsn))
        lsn = next_lsn(model, lsn);
    if (lsn == UINT64_MAX)
        return explain(model, states, acked_lsn);
    *found_lsn = lsn;
    return check_alarms(model, store, states);
}

int model_compare_copy(struct model *model, struct cn_store *store, uint64_t acked_lsn)
{
    uint64_t lsn;
    return compare(model, store, acked_lsn, &lsn);
}

int model_compare(struct model *model, struct cn_store *store, uint64_t acked_lsn)
{
    uint64_t lsn;
    int rc = compare(model, store, acked_lsn, &lsn);
    for (int i = 0; rc == 0 && i < model->object_count; i++) {
        struct model_object *object = &model->objects[i];
        while (object->versions[object->version_count - 1].lsn > lsn)
            object->version_count--;
    }
    return rc;
}

int model_compare_file(struct model *model, const char *path, const struct model_state *state)
{
    struct cn_err err = {0};
    struct source source = {0};
    struct model_state found = nothing;
    int rc = 0;
    if (sqlite3_open_v2(path, &source.plain, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        rc = wrong(model, "%s does not open: %s", path, sqlite3_errmsg(source.plain));
    if (rc == 0)
        rc = read_rows(model, &source, 0, &found, &err);
    sqlite3_close(source.plain);
    if (rc < 0)
        return wrong(model, "%s: %s", path, err.text);
    if (found.version != state->version ||
        memcmp(found.slots, state->slots, sizeof(found.slots)) != 0)
        return wrong(model, "%s has version %llu instead of %llu, or other rows", path,
                     (unsigned long long)found.version, (unsigned long long)state->version);
    return 0;
}

const struct model_state *model_state_at(const struct model_object *object, uint64_t lsn)
{
    int i = object->version_count - 1;
    while (i > 0 && object->versions[i].lsn > lsn)
        i--;
    return &object->versions[i].state;
}

void model_add(struct model_object *object, uint64_t lsn, const struct model_state *state)
{
    add_version(object, lsn, state);
}

void model_restored(struct model_object *object, uint64_t lsn, const struct model_state *rows)
{
    struct model_state state = *last_state(object);
    state.exists = true;
    state.version = rows->version;
    memcpy(state.slots, rows->slots, sizeof(state.slots));
    state.alarm_ms = rows->alarm_ms;
    state.has_name = state.has_name || rows->has_name;
    add_version(object, lsn, &state);
}
