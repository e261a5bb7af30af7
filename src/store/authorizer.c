/* SPDX-License-Identifier: Apache-2.0 */
/* store/authorizer.c - what a guest's SQL may do.
 *
 * Our own statements pass. A guest's may not touch tables whose names begin
 * with _cf_, steer transactions, attach databases, make temporary tables, or
 * use pragmas and virtual tables that are not listed here.
 *
 * A1  A name is judged as SQLite has parsed it, never by the text of the statement: comments,
 *     quotes and case change nothing. Whatever SQLite compiles while a guest's statement runs
 *     (again, because the schema has changed; for a virtual table) is the guest's too.
 * A2  ALTER TABLE ... RENAME does not tell the authorizer the new name, nor a virtual table what
 *     it makes. Such a statement runs in a savepoint and is undone if the schema then has one
 *     reserved name more (statement.c). */
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "store/database_private.h"

enum pragma_argument { NEVER, BOOLEAN, MAY };

static const struct {
    const char *name;
    enum pragma_argument argument;
} pragmas[] = {
    {"case_sensitive_like", BOOLEAN},
    {"data_version", NEVER},
    {"defer_foreign_keys", BOOLEAN},
    {"foreign_key_check", MAY},
    {"foreign_key_list", MAY},
    {"foreign_keys", BOOLEAN},
    {"ignore_check_constraints", BOOLEAN},
    {"index_info", MAY},
    {"index_list", MAY},
    {"index_xinfo", MAY},
    {"legacy_alter_table", BOOLEAN},
    {"optimize", MAY},
    {"page_count", NEVER},
    {"page_size", NEVER},
    {"quick_check", MAY},
    {"recursive_triggers", BOOLEAN},
    {"reverse_unordered_selects", BOOLEAN},
    {"table_info", MAY},
    {"table_list", MAY},
    {"table_xinfo", MAY},
};

static const char *const modules[] = {"fts5", "fts5vocab", "rtree", "rtree_i32"};

const char cn_authorizer_reserved[] = "names that begin with _cf_ are reserved";

static int deny(struct cn_database *db, const char *reason)
{
    db->denial = reason;
    return SQLITE_DENY;
}

static bool is_ours(const char *name)
{
    return name && strncasecmp(name, "_cf_", 4) == 0;
}

/* What would tell how SQLite was built, or load code into it. */
static bool is_hidden_function(const char *name)
{
    static const char *const names[] = {
        "load_extension", "sqlite_compileoption_get", "sqlite_compileoption_used",
        "sqlite_offset",  "sqlite_source_id",         "sqlite_version",
    };
    for (size_t i = 0; name && i < CN_ARRAY_COUNT(names); i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool is_boolean(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "1", "0"};
    size_t size = strlen(text);
    if (size >= 2 && (*text == '\'' || *text == '"') && text[size - 1] == *text) {
        text++;
        size -= 2;
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(words); i++) {
        if (size == strlen(words[i]) && strncasecmp(text, words[i], size) == 0)
            return true;
    }
    return false;
}

static int check_pragma(struct cn_database *db, const char *name, const char *argument)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(pragmas); i++) {
        if (strcasecmp(name, pragmas[i].name) != 0)
            continue;
        if (argument && pragmas[i].argument == NEVER)
            return deny(db, "this pragma can be read but not set");
        if (argument && pragmas[i].argument == BOOLEAN && !is_boolean(argument))
            return deny(db, "this pragma takes true or false");
        if (is_ours(argument))
            return deny(db, cn_authorizer_reserved);
        return SQLITE_OK;
    }
    return deny(db, "this pragma is not allowed");
}

static int check_module(struct cn_database *db, const char *module)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(modules); i++) {
        if (module && strcasecmp(module, modules[i]) == 0)
            return SQLITE_OK;
    }
    return deny(db, "this kind of virtual table is not allowed");
}

int cn_authorizer(void *data, int action, const char *first, const char *second,
                  const char *database, const char *trigger)
{
    struct cn_database *db = data;
    if (!db->guest)
        return SQLITE_OK;
    switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        return deny(
            db, "To execute a transaction, please use the state.storage.transaction() or "
                "state.storage.transactionSync() APIs instead of the SQL BEGIN TRANSACTION or "
                "SAVEPOINT statements. The JavaScript API is safer because it will automatically "
                "roll back on exceptions, and because it interacts correctly with Durable "
                "Objects' automatic atomic write coalescing.");
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
        return deny(db, "other databases cannot be attached");
    case SQLITE_CREATE_TEMP_INDEX:
    case SQLITE_CREATE_TEMP_TABLE:
    case SQLITE_CREATE_TEMP_TRIGGER:
    case SQLITE_CREATE_TEMP_VIEW:
        return deny(db, "temporary tables, views and triggers are not allowed");
    case SQLITE_PRAGMA:
        return check_pragma(db, first, second);
    case SQLITE_CREATE_VTABLE:
        db->makes_names = true;
        if (is_ours(first))
            return deny(db, cn_authorizer_reserved);
        return check_module(db, second);
    case SQLITE_ANALYZE: /* PRAGMA optimize looks at every table */
    case SQLITE_SELECT:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return is_hidden_function(second) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_ALTER_TABLE:
        db->makes_names = true;
        return is_ours(second) ? deny(db, cn_authorizer_reserved) : SQLITE_OK;
    default:
        /* Tables, indexes, views and triggers: made, dropped, read, written. */
        if (action == SQLITE_READ && is_ours(first))
            return SQLITE_DENY; /* SQLite names the column itself */
        if (is_ours(first) || (action != SQLITE_READ && action != SQLITE_UPDATE && is_ours(second)))
            return deny(db, cn_authorizer_reserved);
        return SQLITE_OK;
    }
}
