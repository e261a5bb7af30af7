/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pool.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "store/database_private.h"
#include "store/template.h"
#include "store/vfs.h"

/* How many are looked at for one that fits: schemas of a class that has changed differ. */
enum { TRIES = 8 };
/* From which part of those that are wanted on new databases take others' (P4). */
enum { SOME_PART = 32 };

struct cn_database_pool {
    struct cn_list resting;   /* of struct cn_database, the longest first */
    struct cn_list free;      /* of struct cn_connection, the longest first */
    struct cn_list templates; /* template.h */
    unsigned wanted, count, free_count, resting_count;
    size_t moved, opened, templated;
};

struct cn_database_pool *cn_database_pool_new(unsigned wanted)
{
    struct cn_database_pool *pool = CN_NEW(struct cn_database_pool);
    cn_list_init(&pool->resting);
    cn_list_init(&pool->free);
    cn_list_init(&pool->templates);
    pool->wanted = wanted;
    return pool;
}

/* ---- Schemas ---- */

enum { HEADER_SIZE = 100, LEAF = 0x0d, LOCAL_MAX = CN_PAGE_SIZE - 35 };

static unsigned two_bytes(const uint8_t *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

/* P2: is the whole schema in this page? (The format of SQLite's files: a table's leaf, whose cells
 * begin with the size of their payload; one above LOCAL_MAX goes on in another page.) */
bool cn_pool_is_whole_schema(const uint8_t *page)
{
    const uint8_t *head = page + HEADER_SIZE;
    if (*head != LEAF)
        return false;
    unsigned count = two_bytes(head + 3);
    const uint8_t *cells = head + 8;
    if (HEADER_SIZE + 8 + 2 * count > CN_PAGE_SIZE)
        return false;
    for (unsigned i = 0; i < count; i++) {
        unsigned at = two_bytes(cells + (size_t)2 * i);
        if (at + 3 > CN_PAGE_SIZE)
            return false;
        const uint8_t *cell = page + at;
        unsigned size = cell[0];
        if (cell[0] & 0x80) {
            if (cell[1] & 0x80)
                return false; /* 16 kB or more */
            size = (cell[0] & 0x7fu) << 7 | cell[1];
        }
        if (size > LOCAL_MAX)
            return false;
    }
    return true;
}

/* P2. Left out: the counter of changes, the size, the list of free pages, what scripts number
 * versions by (read from the page whenever it is asked for), and who wrote it last. */
static bool is_same_schema(const uint8_t *a, const uint8_t *b)
{
    static const struct {
        unsigned from, to;
    } parts[] = {{0, 24}, {40, 60}, {64, 68}, {HEADER_SIZE, CN_PAGE_SIZE}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(parts); i++)
        if (memcmp(a + parts[i].from, b + parts[i].from, parts[i].to - parts[i].from) != 0)
            return false;
    return true;
}

/* ---- Taking and giving ---- */

static void statements_rebind(struct cn_list *to, struct cn_list *from, struct cn_database *db)
{
    for (struct cn_list *link; (link = cn_list_take_front(from));) {
        CN_CONTAINER_OF(link, struct cn_statement, link)->db = db;
        cn_list_push_back(to, link);
    }
}

static bool is_in_use(const struct cn_database *db)
{
    if (db->in_transaction || db->reset || db->broken || db->savepoint_count)
        return true;
    CN_LIST_FOREACH(&db->statements, link)
    {
        const struct cn_statement *statement = CN_CONTAINER_OF(link, struct cn_statement, link);
        if (statement->in_use)
            return true;
    }
    return false;
}

/* A value that was read is borrowed from a statement that still runs. */
static void unborrow(struct cn_database *db)
{
    sqlite3_stmt *get = db->own[CN_OWN_KV_GET];
    if (!get || !sqlite3_stmt_busy(get))
        return;
    (void)sqlite3_reset(get);
    (void)sqlite3_clear_bindings(get);
}

static unsigned cookie_of(const uint8_t *page)
{
    return two_bytes(page + 40) << 16 | two_bytes(page + 42);
}

/* P2: what the first page is. False: it cannot be told, or does not have the whole schema. */
static bool schema_learn(struct cn_database *db)
{
    unsigned cookie = cn_sqlite_schema_cookie(db->connection);
    if (cookie == 0 || db->in_transaction)
        return false;
    if (db->schema && db->schema->cookie == cookie)
        return true;
    if (!db->schema)
        db->schema = CN_NEW(struct cn_schema_page);
    db->schema->cookie = 0;
    if (cn_image_page_count(db->image) == 0 ||
        cn_image_read(db->image, 1, 0, CN_PAGE_SIZE, db->schema->bytes, NULL) < 0 ||
        cookie_of(db->schema->bytes) != cookie || !cn_pool_is_whole_schema(db->schema->bytes))
        return false;
    db->schema->cookie = cookie;
    return true;
}

/* Takes the connection of a database away; `connection` is then nobody's. False: it cannot go. */
static bool take(struct cn_database *db, struct cn_connection *connection)
{
    if (!db->connection || is_in_use(db))
        return false;
    unborrow(db);
    cn_template_drop(db); /* it has recorded nothing */
    if (!cn_sqlite_movable(db->connection, &db->fresh) || !schema_learn(db))
        return false;
    cn_sqlite_leave(db->connection, &db->counts);
    cn_vfs_move(db->file, NULL);
    connection->sqlite = db->connection;
    connection->file = db->file;
    memcpy(connection->own, db->own, sizeof(db->own));
    memset(db->own, 0, sizeof(db->own));
    connection->cache = db->cache;
    cn_map_init(&db->cache);
    cn_list_init(&connection->statements);
    statements_rebind(&connection->statements, &db->statements, NULL);
    connection->cached_count = db->cached_count;
    db->cached_count = 0;
    connection->has_kv = db->has_kv;
    db->has_kv = false;
    connection->fresh = db->fresh;
    connection->namespace_id = cn_image_key(db->image)->namespace_id;
    connection->limits = db->limits;
    connection->schema = db->schema;
    db->schema = NULL;
    db->connection = NULL;
    db->file = NULL;
    db->lost = true;
    cn_pool_busy(db); /* it has nothing to give */
    return true;
}

/* The other way round. */
static void give(struct cn_database *db, struct cn_connection *connection)
{
    CN_ASSERT(!db->connection && cn_list_empty(&db->statements));
    db->connection = connection->sqlite;
    db->file = connection->file;
    memcpy(db->own, connection->own, sizeof(db->own));
    cn_map_fini(&db->cache);
    db->cache = connection->cache;
    statements_rebind(&db->statements, &connection->statements, db);
    db->cached_count = connection->cached_count;
    db->has_kv = connection->has_kv;
    db->fresh = connection->fresh;
    db->schema = connection->schema;
    cn_vfs_move(db->file, db->image);
    cn_sqlite_enter(db->connection, &db->counts, db);
    db->pool->moved++;
}

/* One that fits nobody. */
static void drop(struct cn_database_pool *pool, struct cn_connection *connection)
{
    for (struct cn_list *link; (link = cn_list_take_front(&connection->statements));) {
        struct cn_statement *statement = CN_CONTAINER_OF(link, struct cn_statement, link);
        (void)sqlite3_finalize(statement->stmt);
        cn_free(statement->sql);
        cn_free(statement);
    }
    cn_map_fini(&connection->cache);
    cn_free(connection->schema);
    for (int i = 0; i < CN_OWN_COUNT; i++)
        (void)sqlite3_finalize(connection->own[i]);
    int rc = sqlite3_close(connection->sqlite);
    CN_ASSERT(rc == SQLITE_OK);
    pool->count--;
}

static void free_drop(struct cn_database_pool *pool, struct cn_connection *connection)
{
    cn_list_remove(&connection->link);
    pool->free_count--;
    drop(pool, connection);
    cn_free(connection);
}

struct cn_list *cn_pool_templates(struct cn_database_pool *pool)
{
    return &pool->templates;
}

void cn_database_pool_trim(struct cn_database_pool *pool)
{
    cn_templates_clear(&pool->templates);
    while (!cn_list_empty(&pool->free))
        free_drop(pool, CN_CONTAINER_OF(pool->free.next, struct cn_connection, link));
}

void cn_database_pool_free(struct cn_database_pool *pool)
{
    if (!pool)
        return;
    cn_database_pool_trim(pool);
    CN_ASSERT(pool->count == 0); /* a database was left open: our mistake */
    cn_free(pool);
}

void cn_database_pool_stats(const struct cn_database_pool *pool,
                            struct cn_database_pool_stats *stats)
{
    *stats = (struct cn_database_pool_stats){
        .connections = pool->count,
        .resting = pool->resting_count,
        .free = pool->free_count,
        .moved = pool->moved,
        .opened = pool->opened,
        .templated = pool->templated,
    };
}

/* ---- The pool's side of a database ---- */

void cn_pool_busy(struct cn_database *db)
{
    if (cn_list_empty(&db->resting_link))
        return;
    cn_list_remove(&db->resting_link);
    db->pool->resting_count--;
}

void cn_database_rest(struct cn_database *db)
{
    unborrow(db);
    if (!db->pool || !db->connection)
        return;
    cn_pool_busy(db);
    cn_list_push_back(&db->pool->resting, &db->resting_link);
    db->pool->resting_count++;
}

/* P2: all but the schema. */
static bool is_alike(const struct cn_database *a, const struct cn_database *b)
{
    return cn_image_key(a->image)->namespace_id == cn_image_key(b->image)->namespace_id &&
           memcmp(&a->limits, &b->limits, sizeof(a->limits)) == 0;
}

static bool fits(const struct cn_database *db, const struct cn_connection *connection,
                 const uint8_t *schema)
{
    return connection->namespace_id == cn_image_key(db->image)->namespace_id &&
           memcmp(&connection->limits, &db->limits, sizeof(db->limits)) == 0 &&
           is_same_schema(connection->schema->bytes, schema);
}

/* Of those without a database, the last that came. */
static bool give_free(struct cn_database *db, const uint8_t *schema)
{
    struct cn_database_pool *pool = db->pool;
    unsigned tries = 0;
    for (struct cn_list *link = pool->free.prev; link != &pool->free && tries < TRIES;
         link = link->prev, tries++) {
        struct cn_connection *connection = CN_CONTAINER_OF(link, struct cn_connection, link);
        if (!fits(db, connection, schema))
            continue;
        cn_list_remove(&connection->link);
        pool->free_count--;
        give(db, connection);
        cn_free(connection);
        return true;
    }
    return false;
}

/* P4 */
static bool give_fitting(struct cn_database *db, const uint8_t *schema)
{
    struct cn_database_pool *pool = db->pool;
    unsigned tries = 0;
    if (db->lost || pool->count < pool->wanted / SOME_PART)
        return false;
    for (struct cn_list *link = pool->resting.next, *next; link != &pool->resting && tries < TRIES;
         link = next, tries++) {
        struct cn_database *other = CN_CONTAINER_OF(link, struct cn_database, resting_link);
        struct cn_connection connection = {0};
        next = link->next;
        if (!is_alike(other, db) || !schema_learn(other) ||
            !is_same_schema(other->schema->bytes, schema) || !take(other, &connection))
            continue;
        give(db, &connection);
        return true;
    }
    return false;
}

/* There are as many as are wanted: of those that rest, the one that has longest gives its own. What
 * does not fit is closed, so that there is room for another. */
static bool give_resting(struct cn_database *db, const uint8_t *schema)
{
    struct cn_database_pool *pool = db->pool;
    for (unsigned tries = 0; tries < TRIES && pool->count >= pool->wanted; tries++) {
        if (cn_list_empty(&pool->resting))
            return false;
        struct cn_database *other =
            CN_CONTAINER_OF(pool->resting.next, struct cn_database, resting_link);
        struct cn_connection connection = {0};
        if (!take(other, &connection)) {
            cn_pool_busy(other); /* until it rests again */
            continue;
        }
        if (schema && fits(db, &connection, schema)) {
            give(db, &connection);
            return true;
        }
        drop(pool, &connection);
    }
    return false;
}

bool cn_pool_give(struct cn_database *db, const uint8_t *first_page)
{
    return give_free(db, first_page) || give_fitting(db, first_page) ||
           give_resting(db, first_page);
}

void cn_pool_templated(struct cn_database_pool *pool)
{
    pool->templated++;
}

int cn_pool_connect(struct cn_database *db, bool reset, struct cn_err *err)
{
    uint8_t page[CN_PAGE_SIZE];
    const uint8_t *schema = NULL;
    if (db->pool && !reset && cn_list_empty(&db->statements)) {
        if (cn_image_page_count(db->image) > 0 &&
            cn_image_read(db->image, 1, 0, CN_PAGE_SIZE, page, NULL) == 0)
            schema = page;
        if (schema ? cn_pool_give(db, schema) : give_resting(db, NULL))
            return 0;
    }
    int rc = cn_connection_open(db, reset, err);
    if (rc == 0 && db->pool) {
        cn_sqlite_enter(db->connection, &db->counts, db);
        db->pool->count++;
        db->pool->opened++;
    }
    return rc;
}

void cn_pool_closed(struct cn_database *db)
{
    if (!db->pool)
        return;
    cn_pool_busy(db);
    db->pool->count--;
}

bool cn_pool_keep(struct cn_database *db)
{
    struct cn_database_pool *pool = db->pool;
    if (!pool)
        return false;
    struct cn_connection *connection = CN_NEW(struct cn_connection);
    if (!take(db, connection)) {
        cn_free(connection);
        return false;
    }
    cn_list_push_back(&pool->free, &connection->link);
    pool->free_count++;
    if (pool->free_count > pool->wanted / 4)
        free_drop(pool, CN_CONTAINER_OF(pool->free.next, struct cn_connection, link));
    return true;
}
