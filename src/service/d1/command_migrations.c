/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/command_migrations.c - migrations of a D1 database: numbered files of SQL, each
 * applied once.
 *
 * A file and the row that says it was applied are one transaction, so a migration is either done
 * and noted or neither. Files and table are those of wrangler. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/args.h"
#include "config/config.h"
#include "config/files.h"
#include "service/d1/command.h"
#include "service/d1/config.h"

struct names {
    char **items; /* owned */
    size_t count;
};

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        cn_free(names->items[i]);
    cn_free(names->items);
    *names = (struct names){0};
}

static void names_add(struct names *names, const char *name)
{
    names->items = cn_realloc(names->items, (names->count + 1) * sizeof(*names->items));
    names->items[names->count++] = cn_strdup(name);
}

static bool names_have(const struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0)
            return true;
    }
    return false;
}

static char *folder(const struct cn_d1_cli *cli)
{
    const char *dir = cli->d1->migrations_dir ? cli->d1->migrations_dir : "migrations";
    return *dir == '/' ? cn_strdup(dir) : cn_sprintf("%s/%s", cli->project.config->dir, dir);
}

static const char *table(const struct cn_d1_cli *cli)
{
    return cli->d1->migrations_table ? cli->d1->migrations_table : "d1_migrations";
}

/* Appends a quoted name or text. */
static void append_quoted(struct cn_buf *sql, const char *text, char quote)
{
    cn_buf_append_byte(sql, (uint8_t)quote);
    for (; *text; text++) {
        if (*text == quote)
            cn_buf_append_byte(sql, (uint8_t)quote);
        cn_buf_append_byte(sql, (uint8_t)*text);
    }
    cn_buf_append_byte(sql, (uint8_t)quote);
}

/* By the number they begin with, then by name. */
static int compare(const void *a, const void *b)
{
    const char *left = *(char *const *)a, *right = *(char *const *)b;
    unsigned long long x = strtoull(left, NULL, 10), y = strtoull(right, NULL, 10);
    return x != y ? (x < y ? -1 : 1) : strcmp(left, right);
}

static int list_files(const struct cn_d1_cli *cli, struct names *files, struct cn_err *err)
{
    if (cli->d1->migrations_pattern)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "migrations_pattern is not supported: put the files into one folder and "
                          "name it by migrations_dir");
    char *path = folder(cli);
    DIR *dir = opendir(path);
    int rc = dir ? 0 : cn_err_errno(err, errno, "cannot open the folder of migrations %s", path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t size = strlen(entry->d_name);
        if (size > 4 && strcmp(entry->d_name + size - 4, ".sql") == 0)
            names_add(files, entry->d_name);
    }
    if (dir)
        closedir(dir);
    cn_free(path);
    if (files->count)
        qsort(files->items, files->count, sizeof(*files->items), compare);
    return rc;
}

/* The rows of a query's only statement. */
static const struct cn_json *rows_of(const struct cn_json *answer)
{
    const struct cn_json *results = cn_json_find(answer, "results");
    const struct cn_json *rows = results ? cn_json_find(results->first, "results") : NULL;
    return rows ? rows->first : NULL;
}

/* Names in the table; none if there is no table. */
static int list_applied(struct cn_d1_cli *cli, struct names *applied, struct cn_err *err)
{
    struct cn_buf sql = {0};
    struct cn_json *answer = NULL;
    cn_buf_append_str(&sql, "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ");
    append_quoted(&sql, table(cli), '\'');
    int rc = cn_d1_cli_query(cli, (char *)sql.data, sql.size, false, &answer, err);
    bool exists = rc == 0 && rows_of(answer);
    cn_json_free(answer);
    answer = NULL;
    if (exists) {
        cn_buf_clear(&sql);
        cn_buf_append_str(&sql, "SELECT name FROM ");
        append_quoted(&sql, table(cli), '"');
        rc = cn_d1_cli_query(cli, (char *)sql.data, sql.size, false, &answer, err);
    }
    for (const struct cn_json *row = rows_of(answer); row; row = row->next) {
        const char *name = cn_json_text(row, "name");
        if (name)
            names_add(applied, name);
    }
    cn_json_free(answer);
    cn_buf_fini(&sql);
    return rc;
}

static int list_pending(struct cn_d1_cli *cli, struct names *pending, struct cn_err *err)
{
    struct names files = {0}, applied = {0};
    int rc = list_files(cli, &files, err);
    if (rc == 0)
        rc = list_applied(cli, &applied, err);
    for (size_t i = 0; rc == 0 && i < files.count; i++) {
        if (!names_have(&applied, files.items[i]))
            names_add(pending, files.items[i]);
    }
    names_fini(&files);
    names_fini(&applied);
    return rc;
}

int cn_d1_migrations_list(struct cn_d1_cli *cli, struct cn_err *err)
{
    struct names pending = {0};
    int rc = list_pending(cli, &pending, err);
    if (rc == 0)
        puts(pending.count ? "Migrations to be applied:" : "No migrations to apply!");
    for (size_t i = 0; i < pending.count; i++)
        puts(pending.items[i]);
    names_fini(&pending);
    return rc;
}

static int apply_file(struct cn_d1_cli *cli, const char *name, struct cn_err *err)
{
    char *dir = folder(cli), *path = cn_sprintf("%s/%s", dir, name);
    struct cn_buf sql = {0};
    struct cn_json *answer = NULL;
    int rc = cn_files_read(path, SIZE_MAX, &sql, err);
    if (rc == 0) {
        cn_buf_append_str(&sql, "\n;\nINSERT INTO ");
        append_quoted(&sql, table(cli), '"');
        cn_buf_append_str(&sql, " (name) VALUES (");
        append_quoted(&sql, name, '\'');
        cn_buf_append_str(&sql, ");");
        rc = cn_d1_cli_query(cli, (char *)sql.data, sql.size, true, &answer, err);
    }
    cn_json_free(answer);
    cn_buf_fini(&sql);
    cn_free(path);
    cn_free(dir);
    return rc;
}

int cn_d1_migrations_apply(struct cn_d1_cli *cli, struct cn_err *err)
{
    struct names pending = {0};
    struct cn_buf sql = {0};
    struct cn_json *answer = NULL;
    int rc = list_pending(cli, &pending, err);
    if (rc == 0 && pending.count == 0)
        puts("No migrations to apply!");
    if (rc == 0 && pending.count) {
        cn_buf_append_str(&sql, "CREATE TABLE IF NOT EXISTS ");
        append_quoted(&sql, table(cli), '"');
        cn_buf_append_str(&sql, "(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, "
                                "applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL);");
        rc = cn_d1_cli_query(cli, (char *)sql.data, sql.size, true, &answer, err);
        cn_json_free(answer);
    }
    for (size_t i = 0; rc == 0 && i < pending.count; i++) {
        rc = apply_file(cli, pending.items[i], err);
        if (rc < 0)
            cn_err_context(err, "Migration %s failed, nothing of it was applied", pending.items[i]);
        else
            printf("applied %s\n", pending.items[i]);
    }
    cn_buf_fini(&sql);
    names_fini(&pending);
    return rc;
}

/* NNNN_message.sql, one after the last. */
int cn_d1_migrations_create(struct cn_d1_cli *cli, struct cn_err *err)
{
    struct names files = {0};
    char *dir = folder(cli), *path, time_text[40];
    if (mkdir(dir, 0777) < 0 && errno != EEXIST) {
        int rc = cn_err_errno(err, errno, "cannot make the folder of migrations %s", dir);
        cn_free(dir);
        return rc;
    }
    int rc = list_files(cli, &files, err);
    unsigned long number = files.count ? strtoul(files.items[files.count - 1], NULL, 10) + 1 : 1;
    names_fini(&files);
    char *message = cn_strdup(cli->args->rest[3]);
    for (char *c = message; *c; c++) {
        if (*c == ' ' || *c == '/')
            *c = '_';
    }
    path = cn_sprintf("%s/%04lu_%s.sql", dir, number, message);
    cn_free(message);
    cn_free(dir);
    int fd = rc < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (rc == 0 && fd < 0)
        rc = cn_err_errno(err, errno, "cannot create %s", path);
    if (rc == 0) {
        struct tm tm;
        time_t now = time(NULL);
        strftime(time_text, sizeof(time_text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
        if (dprintf(fd, "-- Migration number: %04lu \t %s\n", number, time_text) < 0)
            rc = cn_err_errno(err, errno, "cannot write %s", path);
        close(fd);
    }
    if (rc == 0)
        printf("created %s\n", path);
    cn_free(path);
    return rc;
}
