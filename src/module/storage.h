/* SPDX-License-Identifier: Apache-2.0 */
/* module/storage.h - the functions of struct cairn_api that are about storage and alarms;
 * include/cairn.h says what they do. */
#ifndef CN_MODULE_STORAGE_H
#define CN_MODULE_STORAGE_H
#include "include/cairn.h"

const cairn_value *cn_api_kv_get(cairn_object *object, const char *key);
int cn_api_kv_put(cairn_object *object, const char *key, cairn_builder *value);
int cn_api_kv_delete(cairn_object *object, const char *key);
int cn_api_kv_list(cairn_object *object, const struct cairn_range *range,
                   int (*each)(void *data, const char *key, const cairn_value *value), void *data);
int cn_api_delete_all(cairn_object *object);
int cn_api_sql_exec(cairn_object *object, const char *sql);
cairn_statement *cn_api_sql_prepare(cairn_object *object, const char *sql);
void cn_api_sql_finalize(cairn_statement *statement);
int cn_api_sql_bind_null(cairn_statement *statement, int index);
int cn_api_sql_bind_int(cairn_statement *statement, int index, int64_t value);
int cn_api_sql_bind_real(cairn_statement *statement, int index, double value);
int cn_api_sql_bind_text(cairn_statement *statement, int index, const char *text, size_t size);
int cn_api_sql_bind_blob(cairn_statement *statement, int index, const void *bytes, size_t size);
int cn_api_sql_step(cairn_statement *statement);
void cn_api_sql_reset(cairn_statement *statement);
int cn_api_sql_column_count(cairn_statement *statement);
const char *cn_api_sql_column_name(cairn_statement *statement, int column);
enum cairn_kind cn_api_sql_column_kind(cairn_statement *statement, int column);
int64_t cn_api_sql_column_int(cairn_statement *statement, int column);
double cn_api_sql_column_real(cairn_statement *statement, int column);
const char *cn_api_sql_column_text(cairn_statement *statement, int column, size_t *size);
const void *cn_api_sql_column_blob(cairn_statement *statement, int column, size_t *size);
int64_t cn_api_sql_changes(cairn_object *object);
int64_t cn_api_sql_last_rowid(cairn_object *object);
int64_t cn_api_database_size(cairn_object *object);
int cn_api_transaction_begin(cairn_object *object);
int cn_api_transaction_commit(cairn_object *object);
int cn_api_transaction_rollback(cairn_object *object);
int cn_api_alarm_get(cairn_object *object, int64_t *time);
int cn_api_alarm_set(cairn_object *object, int64_t time);
int cn_api_alarm_delete(cairn_object *object);

#endif
