/* SPDX-License-Identifier: Apache-2.0 */
/* service/queue/queue_peek.c - the messages of a queue as an onlooker sees them. */
#include <string.h>

#include "object/node.h"
#include "service/queue/queue.h"
#include "store/database.h"
#include "text/hex.h"

void cn_queue_public_id(const struct cn_namespace *ns, int64_t origin, char id[CN_QUEUE_ID_HEX + 1])
{
    uint8_t hash[CN_SIPHASH_SIZE];
    cn_siphash(ns->keys.name, &origin, sizeof(origin), hash);
    cn_hex_encode(hash, sizeof(hash), id);
}

/* What was shown so far, of both tables. */
struct shown {
    size_t count, size;
};

/* Rows of one of the two tables after peek->after, as far as the limits allow. */
static int peek_table(struct cn_namespace *ns, struct cn_database *db, const char *sql,
                      struct cn_queue_peek *peek, struct shown *shown, struct cn_err *err)
{
    struct cn_statement *statement;
    size_t used;
    int rc = cn_database_prepare(db, sql, strlen(sql), CN_SQL_UNCACHED, &statement, &used, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_bind_int(statement, 1, peek->after, err);
    while (rc == 0 && (rc = cn_statement_step(statement, err)) > 0) {
        rc = 0;
        if (shown->count == peek->limit || shown->size >= peek->size_max) {
            peek->more = true;
            break;
        }
        struct cn_queue_message message = {
            .row = cn_statement_column_int(statement, 0),
            .sent_ms = cn_statement_column_int(statement, 1),
            .type = (enum cn_queue_type)cn_statement_column_int(statement, 2),
            .attempts = (uint32_t)cn_statement_column_int(statement, 3),
        };
        cn_queue_public_id(ns, cn_statement_column_int(statement, 4), message.id);
        const void *body = cn_statement_column_blob(statement, 5, &message.size);
        peek->each(peek->data, &message, body, cn_statement_column_int(statement, 6));
        peek->after = message.row;
        shown->size += message.size;
        shown->count++;
    }
    cn_statement_release(statement);
    return rc;
}

int cn_queue_peek(struct cn_namespace *ns, struct cn_database *db, struct cn_queue_peek *peek,
                  struct cn_err *err)
{
    static const char ready[] = "SELECT id, sent, type, retries, origin, body, 0 FROM ready"
                                " WHERE id > max(?1, (SELECT done FROM state)) ORDER BY id";
    static const char delayed[] = "SELECT id, sent, type, retries, origin, body, due FROM delayed"
                                  " WHERE id > ?1 ORDER BY id";
    struct shown shown = {0};
    int rc = peek->delayed ? 0 : peek_table(ns, db, ready, peek, &shown, err);
    if (rc < 0 || peek->more)
        return rc;
    if (!peek->delayed)
        peek->after = 0;
    peek->delayed = true;
    return peek_table(ns, db, delayed, peek, &shown, err);
}
