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
#include <sqlite3.c>

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
}

unsigned cn_sqlite_page_count(sqlite3 *connection)
{
    return sqlite3BtreeLastPage(connection->aDb[0].pBt);
}
