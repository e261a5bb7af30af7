/* SPDX-License-Identifier: Apache-2.0 */
#include "service/r2/named.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "store/blob.h"
#include "store/database.h"

static int prepare(struct cn_database *db, const char *sql, struct cn_statement **statement,
                   struct cn_err *err)
{
    size_t used;
    return cn_database_prepare(db, sql, strlen(sql), 0, statement, &used, err);
}

/* One that was never written to has no tables. */
static int has_table(struct cn_database *db, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = prepare(db, "SELECT 1 FROM sqlite_master WHERE name = 'named'", &statement, err);
    if (rc < 0)
        return rc;
    rc = cn_statement_step(statement, err);
    cn_statement_release(statement);
    return rc;
}

int cn_r2_named(struct cn_database *db, int (*each)(void *data, const struct cn_blob_id *id),
                void *data, struct cn_err *err)
{
    struct cn_statement *statement;
    int rc = has_table(db, err);
    if (rc <= 0)
        return rc;
    rc = prepare(db, "SELECT blob FROM named", &statement, err);
    if (rc < 0)
        return rc;
    while ((rc = cn_statement_step(statement, err)) == 1) {
        struct cn_blob_id id;
        size_t size;
        const void *bytes = cn_statement_column_blob(statement, 0, &size);
        if (size != sizeof(id)) {
            rc = cn_err_set(err, CN_ECORRUPT, "an index of R2 names a body that is none");
            break;
        }
        memcpy(&id, bytes, sizeof(id));
        rc = each(data, &id);
        if (rc < 0)
            break;
    }
    cn_statement_release(statement);
    return rc < 0 ? rc : 0;
}
