/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/storetest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "test/lib/test.h"

struct cn_disk *storetest_disk(void)
{
    static int serial;
    char *path = cn_sprintf("%s/data-%d", test_dir(), ++serial);
    if (mkdir(path, 0700) != 0)
        test_fail(__FILE__, __LINE__, "cannot make %s", path);
    struct cn_disk *disk = cn_disk_system_new(path);
    cn_free(path);
    CHECK(disk != NULL);
    return disk;
}

struct cn_store *storetest_open(struct cn_disk *disk, const struct cn_store_config *config)
{
    struct cn_store_config own = config ? *config : (struct cn_store_config){0};
    struct cn_store *store;
    struct cn_err err = {0};
    own.disk = disk;
    if (cn_store_open(&own, &store, &err) < 0)
        test_fail(__FILE__, __LINE__, "cannot open the store: %s", err.text);
    uint32_t namespace_id;
    CHECK_INT(0, cn_store_namespace(store, "test/Object", &namespace_id, &err));
    CHECK_INT(1, namespace_id);
    return store;
}

struct cn_object_key storetest_key(unsigned number)
{
    struct cn_object_key key = {.namespace_id = 1};
    for (size_t i = 0; i < sizeof(key.id); i++)
        key.id[i] = (uint8_t)((number * 2654435761u) >> (8 * (i % 4))) ^ (uint8_t)i;
    memcpy(key.id + 28, &number, 4);
    return key;
}

struct cn_database *storetest_database(struct cn_store *store, unsigned number)
{
    struct cn_object_key key = storetest_key(number);
    struct cn_database *db;
    struct cn_err err = {0};
    if (cn_database_open(store, &key, NULL, &db, &err) < 0)
        test_fail(__FILE__, __LINE__, "cannot open database %u: %s", number, err.text);
    return db;
}

void storetest_exec(struct cn_database *db, const char *sql)
{
    struct cn_err err = {0};
    if (cn_database_exec(db, sql, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, err.text);
}

const char *storetest_text(struct cn_database *db, const char *sql)
{
    static char text[256];
    struct cn_statement *statement;
    struct cn_err err = {0};
    size_t used;
    int rc = cn_database_prepare(db, sql, strlen(sql), 0, &statement, &used, &err);
    if (rc == 0)
        rc = cn_statement_step(statement, &err);
    if (rc < 0)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, err.text);
    text[0] = '\0';
    if (rc == 1 && cn_statement_column_type(statement, 0) == CN_SQL_NULL) {
        strcpy(text, "NULL");
    } else if (rc == 1) {
        size_t size;
        const char *value = cn_statement_column_text(statement, 0, &size);
        snprintf(text, sizeof(text), "%.*s", (int)size, value);
    }
    cn_statement_release(statement);
    return text;
}

int64_t storetest_int(struct cn_database *db, const char *sql)
{
    return strtoll(storetest_text(db, sql), NULL, 10);
}

uint64_t storetest_commit(struct cn_database *db)
{
    struct cn_err err = {0};
    uint64_t lsn;
    if (cn_database_commit(db, &lsn, &err) < 0)
        test_fail(__FILE__, __LINE__, "commit: %s", err.text);
    return lsn;
}
