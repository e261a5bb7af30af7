/* SPDX-License-Identifier: Apache-2.0 */
#include "store/dump.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "store/sqlite.h"
#include "text/hex.h"

/* Bytes gathered before they are written. */
#define PIECE_SIZE (64u << 10)

struct dumping {
    sqlite3 *connection;
    const struct cn_dump *options;
    struct cn_buf out;
};

static int flush(struct dumping *dumping, size_t above, struct cn_err *err)
{
    if (dumping->out.size <= above)
        return 0;
    int rc =
        dumping->options->write(dumping->options->data, dumping->out.data, dumping->out.size, err);
    cn_buf_clear(&dumping->out);
    return rc;
}

static void append_quoted(struct cn_buf *out, const char *text, size_t size, char quote)
{
    cn_buf_append_byte(out, (uint8_t)quote);
    for (const char *end = text + size; text < end;) {
        const char *next = memchr(text, quote, (size_t)(end - text));
        size_t run = next ? (size_t)(next - text) + 1 : (size_t)(end - text);
        cn_buf_append(out, text, run);
        if (next)
            cn_buf_append_byte(out, (uint8_t)quote);
        text += run;
    }
    cn_buf_append_byte(out, (uint8_t)quote);
}

static void append_hex(struct cn_buf *out, const uint8_t *bytes, size_t size)
{
    cn_buf_append_str(out, "X'");
    cn_hex_append(out, bytes, size);
    cn_buf_append_byte(out, '\'');
}

static void append_real(struct cn_buf *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        cn_buf_append_str(out, isnan(value) ? "NULL" : value > 0 ? "9e999" : "-9e999");
        return;
    }
    snprintf(text, sizeof(text), "%.17g", value);
    cn_buf_append_str(out, text);
    if (!strpbrk(text, ".e"))
        cn_buf_append_str(out, ".0"); /* or it would come back as an integer */
}

static void append_value(struct cn_buf *out, sqlite3_stmt *row, int column)
{
    const void *bytes;
    size_t size;
    switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER:
        cn_buf_printf(out, "%" PRId64, (int64_t)sqlite3_column_int64(row, column));
        break;
    case SQLITE_FLOAT:
        append_real(out, sqlite3_column_double(row, column));
        break;
    case SQLITE_TEXT:
        bytes = sqlite3_column_text(row, column);
        size = (size_t)sqlite3_column_bytes(row, column);
        if (!memchr(bytes, 0, size)) {
            append_quoted(out, bytes, size, '\'');
        } else { /* SQL has no way to write a NUL in a text */
            cn_buf_append_str(out, "CAST(");
            append_hex(out, bytes, size);
            cn_buf_append_str(out, " AS TEXT)");
        }
        break;
    case SQLITE_BLOB:
        bytes = sqlite3_column_blob(row, column);
        append_hex(out, bytes, (size_t)sqlite3_column_bytes(row, column));
        break;
    default:
        cn_buf_append_str(out, "NULL");
    }
}

static const char *column_text(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);
    return text ? text : "";
}

/* ("a", "b"): what can be inserted, so no generated columns. */
static int append_columns(struct dumping *dumping, const char *table, struct cn_buf *list,
                          struct cn_err *err)
{
    sqlite3_stmt *stmt;
    int rc =
        cn_sqlite_prepare(dumping->connection,
                          "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0", &stmt, err);
    if (rc < 0)
        return rc;
    (void)sqlite3_bind_text(stmt, 1, table, -1, SQLITE_STATIC);
    int code;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        cn_buf_append_str(list, list->size ? "," : "");
        append_quoted(list, column_text(stmt, 0), strlen(column_text(stmt, 0)), '"');
    }
    (void)sqlite3_finalize(stmt); /* repeats the code of the last step */
    return code == SQLITE_DONE ? 0 : cn_sqlite_error(dumping->connection, code, err);
}

static int dump_rows(struct dumping *dumping, const char *table, struct cn_err *err)
{
    struct cn_buf columns = {0}, head = {0}, sql = {0};
    sqlite3_stmt *row = NULL;
    int code = SQLITE_DONE, rc = append_columns(dumping, table, &columns, err);
    if (rc < 0)
        goto fini;
    cn_buf_append_str(&head, "INSERT INTO ");
    append_quoted(&head, table, strlen(table), '"');
    cn_buf_printf(&head, " (%s) VALUES(", cn_buf_text(&columns));
    cn_buf_printf(&sql, "SELECT %s FROM ", cn_buf_text(&columns));
    append_quoted(&sql, table, strlen(table), '"');
    rc = cn_sqlite_prepare(dumping->connection, cn_buf_text(&sql), &row, err);
    if (rc < 0)
        goto fini;
    while (rc == 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
        cn_buf_append(&dumping->out, head.data, head.size);
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            if (i)
                cn_buf_append_byte(&dumping->out, ',');
            append_value(&dumping->out, row, i);
        }
        cn_buf_append_str(&dumping->out, ");\n");
        rc = flush(dumping, PIECE_SIZE, err);
    }
    if (rc == 0 && code != SQLITE_DONE)
        rc = cn_sqlite_error(dumping->connection, code, err);
    (void)sqlite3_finalize(row); /* repeats the code of the last step */
fini:
    cn_buf_fini(&columns);
    cn_buf_fini(&head);
    cn_buf_fini(&sql);
    return rc;
}

static bool is_wanted(const struct dumping *dumping, const char *name)
{
    const char *only = dumping->options->table;
    return (!only || strcmp(only, name) == 0) && strncasecmp(name, "_cf_", 4) != 0 &&
           (strncasecmp(name, "sqlite_", 7) != 0 || strcasecmp(name, "sqlite_sequence") == 0);
}

static int dump_table(struct dumping *dumping, const char *name, const char *sql,
                      struct cn_err *err)
{
    if (!is_wanted(dumping, name))
        return 0;
    if (strncasecmp(sql, "CREATE VIRTUAL", 14) == 0)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "%s is a virtual table; a database with one cannot be exported as SQL",
                          name);
    if (!dumping->options->no_schema && strcasecmp(name, "sqlite_sequence") != 0)
        cn_buf_printf(&dumping->out, "%s;\n", sql);
    return flush(dumping, PIECE_SIZE, err);
}

static int dump_table_rows(struct dumping *dumping, const char *name, const char *sql,
                           struct cn_err *err)
{
    (void)sql;
    if (!is_wanted(dumping, name))
        return 0;
    if (strcasecmp(name, "sqlite_sequence") == 0)
        cn_buf_append_str(&dumping->out, "DELETE FROM sqlite_sequence;\n");
    return dump_rows(dumping, name, err);
}

/* Calls `each` with the entries of the schema that `select` finds. */
static int each_entry(struct dumping *dumping, const char *select,
                      int (*each)(struct dumping *dumping, const char *name, const char *sql,
                                  struct cn_err *err),
                      struct cn_err *err)
{
    sqlite3_stmt *stmt;
    int code = SQLITE_DONE, rc = cn_sqlite_prepare(dumping->connection, select, &stmt, err);
    if (rc < 0)
        return rc;
    while (rc == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = each(dumping, column_text(stmt, 0), column_text(stmt, 1), err);
    if (rc == 0 && code != SQLITE_DONE)
        rc = cn_sqlite_error(dumping->connection, code, err);
    (void)sqlite3_finalize(stmt); /* repeats the code of the last step */
    return rc;
}

static int dump_other(struct dumping *dumping, const char *table, const char *sql,
                      struct cn_err *err)
{
    const char *only = dumping->options->table;
    if ((only && strcmp(only, table) != 0) || strncasecmp(table, "_cf_", 4) == 0)
        return 0;
    cn_buf_printf(&dumping->out, "%s;\n", sql);
    return flush(dumping, PIECE_SIZE, err);
}

static int dump_all(struct dumping *dumping, struct cn_err *err)
{
    /* While it is read back, rows may come before those they refer to; tables may not (X1). */
    cn_buf_append_str(&dumping->out, "PRAGMA defer_foreign_keys=TRUE;\n");
    static const char *const tables =
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND sql NOT NULL"
        " ORDER BY tbl_name = 'sqlite_sequence', rowid";
    int rc = each_entry(dumping, tables, dump_table, err);
    if (rc == 0 && !dumping->options->no_data)
        rc = each_entry(dumping, tables, dump_table_rows, err);
    if (rc == 0 && !dumping->options->no_schema)
        rc = each_entry(dumping,
                        "SELECT tbl_name, sql FROM sqlite_schema WHERE sql NOT NULL AND type IN"
                        " ('index', 'trigger', 'view') ORDER BY type = 'trigger', rowid",
                        dump_other, err);
    return rc == 0 ? flush(dumping, 0, err) : rc;
}

int cn_dump_sql(struct cn_disk *disk, const char *path, const struct cn_dump *dump,
                struct cn_err *err)
{
    char vfs_name[32];
    struct dumping dumping = {.options = dump};
    int rc = cn_sqlite_setup(err);
    if (rc < 0)
        return rc;
    snprintf(vfs_name, sizeof(vfs_name), "cn-dump-%p", (void *)&dumping);
    struct cn_diskvfs *vfs = cn_diskvfs_new(disk, vfs_name);
    int code = sqlite3_open_v2(path, &dumping.connection, SQLITE_OPEN_READONLY, vfs_name);
    rc = code == SQLITE_OK ? dump_all(&dumping, err)
                           : cn_sqlite_error(dumping.connection, code, err);
    code = sqlite3_close(dumping.connection);
    cn_buf_fini(&dumping.out);
    cn_diskvfs_free(vfs);
    return rc == 0 && code != SQLITE_OK ? cn_err_set(err, CN_ESQL, "cannot close %s", path) : rc;
}
