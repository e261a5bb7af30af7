/* SPDX-License-Identifier: Apache-2.0 */
/* store/sqlite/engine.c - SQLite, and what its API makes dear, done from inside.
 *
 * Settings of a connection are pragmas: each is parsed, compiled and run, and one of
 * them reads the schema. Four took a third of the time that opening a database takes.
 *
 * SQLite counts how often each instruction of a statement's program has run
 * (STMT_SCANSTATUS). Its ways to read the counts are made for a person: a virtual
 * table that describes the program takes 30 us, ten times as long as a small
 * statement itself. The counts are private to the amalgamation, so this file is
 * compiled together with it. */
#include <pthread.h>
#include <sqlite3.c>
#include <string.h>

#include "store/sqlite/engine.h"

struct program {
    const Op *ops;
    int count;
};

/* The statement's own program, also while one of its triggers runs. */
static struct program program_of(sqlite3_stmt *stmt)
{
    const Vdbe *vdbe = (const Vdbe *)stmt;
    const VdbeFrame *frame = vdbe->pFrame;
    if (!frame)
        return (struct program){vdbe->aOp, vdbe->nOp};
    while (frame->pParent)
        frame = frame->pParent;
    return (struct program){frame->aOp, frame->nOp};
}

/* Whether the cursor is of a table that SQLite made for itself. */
static int is_temporary(const struct program *program, int cursor)
{
    for (int i = 0; i < program->count; i++) {
        const Op *op = &program->ops[i];
        if (op->p1 == cursor && (op->opcode == OP_OpenEphemeral || op->opcode == OP_OpenAutoindex))
            return 1;
    }
    return 0;
}

sqlite3_int64 cn_sqlite_rows_written(sqlite3_stmt *stmt)
{
    struct program program = program_of(stmt);
    sqlite3_int64 rows = 0;
    for (int i = 0; i < program.count; i++) {
        const Op *op = &program.ops[i];
        if (!op->nExec)
            continue;
        int writes = op->opcode == OP_Insert || op->opcode == OP_IdxInsert ||
                     (op->opcode == OP_Delete && op->p5 & OPFLAG_NCHANGE);
        if (op->opcode == OP_VUpdate || (writes && !is_temporary(&program, op->p1)))
            rows += (sqlite3_int64)op->nExec;
    }
    return rows;
}

sqlite3_int64 cn_sqlite_rows_read(sqlite3_stmt *stmt)
{
    const Vdbe *vdbe = (const Vdbe *)stmt;
    struct program program = program_of(stmt);
    sqlite3_int64 rows = 0;
    for (int i = 0; i < vdbe->nScan; i++) {
        const ScanStatus *scan = &vdbe->aScan[i];
        if (scan->zName && scan->addrVisit > 0)
            rows += (sqlite3_int64)program.ops[scan->addrVisit].nExec;
    }
    return rows;
}

/* --- functions that nothing interrupts (store/functions.h) ------------------------------------ */

static FuncDef *find_builtin(const char *name, int count)
{
    FuncDef *def = sqlite3FunctionSearch(SQLITE_FUNC_HASH(name[0], strlen(name)), name);
    while (def && def->nArg != count)
        def = def->pNext;
    return def;
}

void cn_sqlite_replace(const char *name, int count,
                       void (*function)(sqlite3_context *context, int count,
                                        sqlite3_value **values))
{
    FuncDef *def = find_builtin(name, count);
    if (!def)
        abort(); /* another SQLite than the one that was built with */
    def->xSFunc = function;
}

/* Names in it, at most: SQLite looks for each of the patch's among all of the target's, and moves
 * what is behind one that goes. */
static sqlite3_int64 names_max(sqlite3_value *value)
{
    sqlite3_int64 size = sqlite3_value_bytes(value), count = 0;
    if (sqlite3_value_type(value) == SQLITE_BLOB)
        return size / 2;
    const unsigned char *text = sqlite3_value_text(value);
    for (sqlite3_int64 i = 0; text && i < size; i++)
        count += text[i] == ':';
    return count;
}

static void bounded_json_patch(sqlite3_context *context, int count, sqlite3_value **values)
{
    if (sqlite3_value_type(values[0]) != SQLITE_NULL &&
        sqlite3_value_type(values[1]) != SQLITE_NULL) {
        sqlite3_int64 target = names_max(values[0]), patch = names_max(values[1]);
        sqlite3_int64 size = sqlite3_value_bytes(values[0]) + sqlite3_value_bytes(values[1]);
        if (patch * (target + patch) > 1 << 27 || patch * size > 1ll << 34) {
            sqlite3_result_error(context, "json_patch(): too many names", -1);
            return;
        }
    }
    jsonPatchFunc(context, count, values);
}

static void bounded_unhex(sqlite3_context *context, int count, sqlite3_value **values)
{
    if (count == 2 && sqlite3_value_text(values[0]) && sqlite3_value_text(values[1]) &&
        (sqlite3_int64)sqlite3_value_bytes(values[0]) * sqlite3_value_bytes(values[1]) > 1 << 28) {
        sqlite3_result_error(context, "unhex(): too many characters that are passed over", -1);
        return;
    }
    unhexFunc(context, count, values);
}

void cn_sqlite_bound(void)
{
    cn_sqlite_replace("json_patch", 2, bounded_json_patch);
    cn_sqlite_replace("jsonb_patch", 2, bounded_json_patch);
    cn_sqlite_replace("unhex", 2, bounded_unhex);
}

/* snippet() compares each place that was found with every other, and asks for it each time. */
static int next_place(Fts5Context *context, int index, int *phrase, int *column, int *offset)
{
    static _Thread_local unsigned asked;
    Fts5Cursor *cursor = (Fts5Cursor *)context;
    sqlite3 *connection = ((Fts5Table *)cursor->base.pVtab)->pConfig->db;
    if (++asked % 4096 == 0 && connection->xProgress &&
        connection->xProgress(connection->pProgressArg))
        return SQLITE_INTERRUPT;
    return fts5ApiInst(context, index, phrase, column, offset);
}

static void bounded_snippet(const Fts5ExtensionApi *api, Fts5Context *context,
                            sqlite3_context *result, int count, sqlite3_value **values)
{
    Fts5ExtensionApi asking = *api;
    asking.xInst = next_place;
    fts5SnippetFunction(&asking, context, result, count, values);
}

/* A query takes time with the square of its terms, and with the terms times the words of a row;
 * one with NEAR with the square of its terms times the words. */
static int is_bounded_query(const char *text, int size)
{
    int words = 0;
    if (size > CN_SQLITE_QUERY_MAX)
        return 0;
    if (!memmem(text, size, "NEAR", 4))
        return 1;
    for (int i = 0; i < size; i++)
        words += i == 0 || (text[i - 1] == ' ' && text[i] != ' ') || !sqlite3Isalnum(text[i]);
    return words <= CN_SQLITE_NEAR_MAX;
}

static int bounded_filter(sqlite3_vtab_cursor *cursor, int index, const char *name, int count,
                          sqlite3_value **values)
{
    for (int i = 0; i < count; i++) {
        const char *text = (const char *)sqlite3_value_text(values[i]);
        if (!text || is_bounded_query(text, sqlite3_value_bytes(values[i])))
            continue;
        sqlite3_free(cursor->pVtab->zErrMsg);
        cursor->pVtab->zErrMsg = sqlite3_mprintf("fts5: the query is too long");
        return SQLITE_ERROR;
    }
    return fts5FilterMethod(cursor, index, name, count, values);
}

static _Thread_local const sqlite3_module *seen_fts5;
static sqlite3_module bounded_fts5; /* written by copy_fts5() alone, which pthread_once() orders */

static void copy_fts5(void)
{
    bounded_fts5 = *seen_fts5;
    bounded_fts5.xFilter = bounded_filter;
}

static void bound_fts5(sqlite3 *connection)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    Module *module = sqlite3HashFind(&connection->aModule, "fts5");
    if (!module || module->pModule->xFilter != fts5FilterMethod)
        return;
    Fts5Global *global = module->pAux;
    for (Fts5Auxiliary *each = global->pAux; each; each = each->pNext)
        if (each->xFunc == fts5SnippetFunction)
            each->xFunc = bounded_snippet;
    seen_fts5 = module->pModule;
    pthread_once(&once, copy_fts5);
    module->pModule = &bounded_fts5;
}

/* What the pragmas' own code does, in their order (sqlite3Pragma). */
void cn_sqlite_configure(sqlite3 *connection, int cache_kib, unsigned page_count_max)
{
    Db *main_db = &connection->aDb[0];
    Pager *pager = sqlite3BtreePager(main_db->pBt);
    connection->dfltLockMode = PAGER_LOCKINGMODE_EXCLUSIVE;
    (void)sqlite3PagerLockingMode(pager, PAGER_LOCKINGMODE_EXCLUSIVE);
    (void)sqlite3PagerSetJournalMode(pager, PAGER_JOURNALMODE_MEMORY);
    main_db->safety_level = PAGER_SYNCHRONOUS_OFF;
    main_db->bSyncSet = 1;
    setAllPagerFlags(connection);
    main_db->pSchema->cache_size = -cache_kib;
    (void)sqlite3BtreeSetCacheSize(main_db->pBt, -cache_kib);
    if (page_count_max)
        (void)sqlite3BtreeMaxPageCount(main_db->pBt, page_count_max);
    bound_fts5(connection);
}

unsigned cn_sqlite_page_count(sqlite3 *connection)
{
    return sqlite3BtreeLastPage(connection->aDb[0].pBt);
}

/* --- pages of a transaction ------------------------------------------------------------------ */

static int page_copy(Pager *pager, Pgno number, unsigned char *out, const unsigned char *in)
{
    DbPage *page;
    int rc = sqlite3PagerGet(pager, number, &page, 0);
    if (rc != SQLITE_OK)
        return rc;
    size_t size = (size_t)pager->pageSize;
    if (out)
        memcpy(out, sqlite3PagerGetData(page), size);
    else if ((rc = sqlite3PagerWrite(page)) == SQLITE_OK)
        memcpy(sqlite3PagerGetData(page), in, size);
    sqlite3PagerUnref(page);
    return rc;
}

int cn_sqlite_pages_get(sqlite3 *connection, unsigned char *pages, unsigned count)
{
    Btree *btree = connection->aDb[0].pBt;
    if (btree->inTrans == TRANS_NONE || btree->pBt->nPage != count)
        return SQLITE_MISUSE;
    Pager *pager = btree->pBt->pPager;
    int rc = SQLITE_OK;
    for (unsigned i = 0; i < count && rc == SQLITE_OK; i++)
        rc = page_copy(pager, i + 1, pages + (size_t)i * pager->pageSize, NULL);
    return rc;
}

int cn_sqlite_pages_put(sqlite3 *connection, const unsigned char *pages, unsigned count)
{
    Btree *btree = connection->aDb[0].pBt;
    BtShared *shared = btree->pBt;
    connection->mDbFlags |= DBFLAG_SchemaChange;     /* a roll-back forgets the schema */
    int rc = sqlite3BtreeBeginTrans(btree, 1, NULL); /* makes the first page */
    if (rc == SQLITE_OK && (shared->nPage != 1 || connection->autoCommit))
        rc = SQLITE_MISUSE;
    for (unsigned i = 0; i < count && rc == SQLITE_OK; i++)
        rc = page_copy(shared->pPager, i + 1, NULL, pages + (size_t)i * shared->pageSize);
    if (rc != SQLITE_OK)
        return rc;
    shared->pPage1->isInit = 0; /* its content is another */
    shared->nPage = count;
    return SQLITE_OK;
}

/* --- a connection that goes from one database to another ------------------------------------- */

const struct cn_sqlite_counts cn_sqlite_counts_new = {.data_version = 1};

void cn_sqlite_fresh(sqlite3 *connection, struct cn_sqlite_fresh *fresh)
{
    fresh->flags = connection->flags;
    fresh->functions = connection->aFunc.count;
    fresh->collations = connection->aCollSeq.count;
}

/* Virtual tables remember what they have read, and statistics shape plans. */
static int is_plain(const Schema *schema)
{
    for (const HashElem *at = sqliteHashFirst(&schema->tblHash); at; at = sqliteHashNext(at)) {
        const Table *table = sqliteHashData(at);
        if (IsVirtual(table) || sqlite3_strnicmp(table->zName, "sqlite_stat", 11) == 0)
            return 0;
    }
    return 1;
}

int cn_sqlite_movable(sqlite3 *connection, const struct cn_sqlite_fresh *fresh)
{
    const Btree *btree = connection->aDb[0].pBt;
    const BtShared *shared = btree->pBt;
    const Pager *pager = shared->pPager;
    return connection->flags == fresh->flags && connection->aFunc.count == fresh->functions &&
           connection->aCollSeq.count == fresh->collations && connection->autoCommit &&
           !connection->nVdbeActive && !connection->pSavepoint && !connection->mallocFailed &&
           !connection->aDb[1].pBt && connection->nDb == 2 && btree->inTrans == TRANS_NONE &&
           shared->inTransaction == TRANS_NONE && !shared->pPage1 && !shared->pCursor &&
           !pager->pBackup && pager->errCode == SQLITE_OK && pager->eState <= PAGER_READER &&
           sqlite3PcacheRefCount(pager->pPCache) == 0 && is_plain(connection->aDb[0].pSchema);
}

unsigned cn_sqlite_schema_cookie(sqlite3 *connection)
{
    return DbHasProperty(connection, 0, DB_SchemaLoaded)
               ? (unsigned)connection->aDb[0].pSchema->schema_cookie
               : 0;
}

void cn_sqlite_leave(sqlite3 *connection, struct cn_sqlite_counts *counts)
{
    Btree *btree = connection->aDb[0].pBt;
    Pager *pager = btree->pBt->pPager;
    *counts = (struct cn_sqlite_counts){
        .changes = connection->nChange,
        .total_changes = connection->nTotalChange,
        .last_rowid = connection->lastRowid,
        .data_version = sqlite3PagerDataVersion(pager) + btree->iBDataVersion,
    };
    pager_reset(pager);
    pager->exclusiveMode = 0; /* so that the lock is let go of, and the size asked for again */
    pager_unlock(pager);
    pager->exclusiveMode = 1;
    pager->hasHeldSharedLock = 0; /* what it remembers of the file's header is the old file's */
}

void cn_sqlite_enter(sqlite3 *connection, const struct cn_sqlite_counts *counts, void *data)
{
    Btree *btree = connection->aDb[0].pBt;
    connection->nChange = counts->changes;
    connection->nTotalChange = counts->total_changes;
    connection->lastRowid = counts->last_rowid;
    btree->iBDataVersion = counts->data_version - sqlite3PagerDataVersion(btree->pBt->pPager);
    /* Setting them by the API would compile every statement again. */
    connection->pAuthArg = data;
    connection->pProgressArg = data;
}
