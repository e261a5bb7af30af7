/* SPDX-License-Identifier: Apache-2.0 */
/* store/database_private.h - shared by database.c (transactions), statement.c (SQL),
 * authorizer.c (what a guest may do) and kvtable.c. */
#ifndef CN_STORE_DATABASE_PRIVATE_H
#define CN_STORE_DATABASE_PRIVATE_H
#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "store/database.h"
#include "store/image.h"
#include "store/sqlite.h"
#include "store/sqlite/engine.h"

struct cn_clock;
struct cn_database_pool;
struct cn_vfs_file;

/* The statements of the key-value table and of transactions, prepared at first use. */
enum cn_own_sql {
    CN_OWN_BEGIN,
    CN_OWN_COMMIT,
    CN_OWN_ROLLBACK,
    CN_OWN_KV_GET,
    CN_OWN_KV_PUT,
    CN_OWN_KV_DELETE,
    CN_OWN_KV_LIST,
    CN_OWN_KV_LIST_REVERSE,
    CN_OWN_COUNT
};

struct cn_database {
    struct cn_store *store;   /* borrowed */
    struct cn_image *image;   /* owned: taken */
    sqlite3 *connection;      /* owned */
    struct cn_vfs_file *file; /* inside the connection */
    struct cn_database_limits limits;
    sqlite3_stmt *own[CN_OWN_COUNT]; /* owned */

    bool in_transaction;
    bool reset;          /* delete_all happened in this transaction */
    bool broken;         /* SQLite rolled the transaction back by itself: the turn cannot commit */
    bool has_kv;         /* _cf_KV is known to exist */
    char *broken_reason; /* owned */
    struct cn_image_meta meta;   /* set in this transaction; owned */
    struct cn_image_meta *saved; /* owned: `meta` at each open savepoint */
    int savepoint_count;

    bool guest;           /* the authorizer applies to what runs now */
    bool makes_names;     /* what is prepared now names things without telling the authorizer */
    const char *denial;   /* what it refused last; static text */
    uint64_t deadline_ns; /* 0: none */
    bool timed_out;
    atomic_bool interrupted;

    struct cn_map cache;       /* SQL text -> struct cn_statement that may be free or in use */
    struct cn_list statements; /* every cn_statement, least recently used first */
    int cached_count;

    struct cn_database_pool *pool;    /* borrowed; NULL: the connection is its own for good */
    struct cn_list resting_link;      /* pool->resting, while its connection may be taken away */
    bool lost;                        /* its connection was taken away before (P4 of pool.h) */
    struct cn_sqlite_fresh fresh;     /* of the connection */
    struct cn_schema_page *schema;    /* owned; of the connection, NULL: not known (P2 of pool.h) */
    struct cn_sqlite_counts counts;   /* while it has none */
    struct cn_template_use *template; /* owned; NULL but for its first statements (template.h) */
};

struct cn_statement {
    struct cn_list link; /* database->statements */
    struct cn_database *db;
    sqlite3_stmt *stmt; /* owned; NULL once the database has ended it */
    char *sql;          /* owned: key in the cache; NULL if it is not cached */
    size_t sql_size;
    bool in_use, guest, writes, started, done;
    bool makes_names;   /* A2 of authorizer.c */
    uint64_t shape;     /* cn_statement_shape(), or 0: not yet known */
    int shape_prepared; /* how often SQLite had compiled it again by then */
    int64_t memory;     /* of a guest's: what it has (sqlite_memory.h, Q1) */
    int64_t changes;    /* rows changed since it started, triggers included */
    bool stands_in;     /* T4 of template.h: what it tells of rows */
    uint64_t stood_read, stood_written;
};

/* What goes with a connection when it goes to another database. */
struct cn_connection {
    struct cn_list link; /* pool->free */
    sqlite3 *sqlite;
    struct cn_vfs_file *file;
    sqlite3_stmt *own[CN_OWN_COUNT];
    struct cn_map cache;
    struct cn_list statements;
    int cached_count;
    bool has_kv;
    struct cn_sqlite_fresh fresh;
    uint32_t namespace_id;
    struct cn_database_limits limits;
    struct cn_schema_page *schema; /* owned */
};

/* The first page of a database, and the cookie of the schema in it. */
struct cn_schema_page {
    unsigned cookie;
    uint8_t bytes[CN_PAGE_SIZE];
};

/* A connection for a database that has none: one of the pool, or a new one. */
int cn_pool_connect(struct cn_database *db, bool reset, struct cn_err *err);
/* The connection of a database that closes goes to the pool, if it can. False: it stays. */
bool cn_pool_keep(struct cn_database *db);
/* It is in use: nobody takes it away. */
void cn_pool_busy(struct cn_database *db);
/* Its connection was closed. */
void cn_pool_closed(struct cn_database *db);
/* A new connection, whatever pool there is. */
int cn_connection_open(struct cn_database *db, bool reset, struct cn_err *err);
/* Ends its statements and what they have written. */
void cn_connection_close(struct cn_database *db);
/* A connection of the pool, made for databases with such a first page. False: none is free. */
bool cn_pool_give(struct cn_database *db, const uint8_t *first_page);
bool cn_pool_is_whole_schema(const uint8_t *first_page); /* P2 */
struct cn_list *cn_pool_templates(struct cn_database_pool *pool);
void cn_pool_templated(struct cn_database_pool *pool); /* counts */

/* Is there a connection? One that could not be opened again is tried now. */
int cn_database_connect(struct cn_database *db, struct cn_err *err);
/* The same for those who will see what is in the database. */
int cn_database_require(struct cn_database *db, struct cn_err *err);
/* Begins the turn's transaction if it has not begun. */
int cn_database_begin(struct cn_database *db, struct cn_err *err);
/* Takes back the pages of the turn; its metadata stays. */
void cn_database_undo(struct cn_database *db);
/* Takes them back, and the turn cannot commit. */
void cn_database_break(struct cn_database *db, const char *reason);
/* Turns a failed SQLite call into an error; notes it if the transaction is gone. */
int cn_database_error(struct cn_database *db, int code, struct cn_err *err);
int cn_database_own(struct cn_database *db, enum cn_own_sql which, sqlite3_stmt **stmt,
                    struct cn_err *err);

/* Ends statements: those that write and have rows left (at commit), or all of them
 * for good (before the connection closes). */
void cn_statements_end_writers(struct cn_database *db);
void cn_statements_finalize(struct cn_database *db);
/* Drops statements that are not in use until at most `keep` are cached. */
void cn_statements_trim(struct cn_database *db, int keep);

/* SQLite's authorizer callback; `data` is the database. */
extern const char cn_authorizer_reserved[]; /* why a name is refused */
int cn_authorizer(void *data, int action, const char *first, const char *second,
                  const char *database, const char *trigger);

#endif
