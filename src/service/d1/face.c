/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/face.c - D1 databases for code in C (module/face.h). A statement and what is bound to
 * it are arguments: all(sql, ...values), first(sql, ...values), run(sql, ...values), and
 * batch([[sql, ...values], ...]), exec(sql). */
#include "module/face.h"
#include "service/d1/d1.h"

#include <string.h>

#include "base/mem.h"
#include "module/json.h"

enum { ALL, FIRST, BATCH, EXEC };

static int add_value(struct cn_d1_call *call, const cairn_value *value, struct cn_err *err)
{
    size_t size;
    double number;
    const void *bytes;
    switch (cn_value_kind(value)) {
    case CAIRN_NULL:
        cn_d1_call_value(call, CN_SQL_NULL);
        return 0;
    case CAIRN_BOOL:
        cn_d1_call_number(call, cn_value_bool(value));
        return 0;
    case CAIRN_NUMBER:
        cn_value_number(value, &number);
        cn_d1_call_number(call, number);
        return 0;
    default:
        if (!cn_face_bytes(value, &bytes, &size))
            return cn_err_set(err, CN_EINVALID,
                              "D1_TYPE_ERROR: a value of this type is not supported");
        cn_d1_call_bytes(call, cn_value_kind(value) == CAIRN_TEXT ? CN_SQL_TEXT : CN_SQL_BLOB,
                         bytes, size);
        return 0;
    }
}

/* [sql, ...values] */
static int add_query(struct cn_d1_call *call, const cairn_value *query, struct cn_err *err)
{
    size_t size;
    const char *sql = cn_value_text(cn_value_at(query, 0), &size);
    int rc = 0;
    if (!sql)
        return cn_err_set(err, CN_EINVALID, "D1_ERROR: a statement is a text");
    cn_d1_call_query(call, sql, size);
    for (size_t i = 1; i < cn_value_count(query) && rc == 0; i++)
        rc = add_value(call, cn_value_at(query, i), err);
    return rc;
}

static int begin(struct cn_face_work *work, const cairn_value *arguments, int what,
                 struct cn_err *err)
{
    struct cn_d1_call *call = cn_d1_call_new(work->ns, what == EXEC ? CN_D1_COUNT : CN_D1_OBJECTS);
    const cairn_value *list = cn_value_at(arguments, 0);
    int rc = 0;
    int *kept = CN_NEW(int);
    *kept = what;
    work->state = kept;
    work->free = cn_free;
    call->plain = true;
    if (what != BATCH)
        rc = add_query(call, arguments, err);
    else if (cn_value_kind(list) != CAIRN_ARRAY || !cn_value_count(list))
        rc = cn_err_set(err, CN_EINVALID, "D1_ERROR: batch() takes an array of statements");
    for (size_t i = 0; what == BATCH && i < cn_value_count(list) && rc == 0; i++)
        rc = add_query(call, cn_value_at(list, i), err);
    if (rc < 0) {
        cn_service_call_free(&call->base);
        return rc;
    }
    call->base.call.size = call->bytes.size;
    work->call = &call->base;
    return 0;
}

#define BEGIN(name, what)                                                    \
    static int name(struct cn_face_work *work, const cairn_value *arguments, \
                    cairn_builder *result, struct cn_err *err)               \
    {                                                                        \
        (void)result;                                                        \
        return begin(work, arguments, what, err);                            \
    }
BEGIN(begin_all, ALL)
BEGIN(begin_first, FIRST)
BEGIN(begin_batch, BATCH)
BEGIN(begin_exec, EXEC)

/* What the call's JSON says: {"error"}, or results. */
static int build(int what, const cairn_value *root, cairn_builder *result, struct cn_err *err)
{
    const char *error = cn_value_text(cn_value_get(root, "error"), NULL);
    if (error)
        return cn_err_set(err, CN_ESQL, "%s: %s", what == EXEC ? "D1_EXEC_ERROR" : "D1_ERROR",
                          error);
    const cairn_value *first = cn_value_kind(root) == CAIRN_ARRAY ? cn_value_at(root, 0) : root;
    if (what == BATCH || what == EXEC) {
        cn_build_value(result, root);
    } else if (what == ALL) {
        cn_build_value(result, first);
    } else {
        const cairn_value *row = cn_value_at(cn_value_get(first, "results"), 0);
        if (row)
            cn_build_value(result, row);
        else
            cn_build_null(result);
    }
    return 0;
}

static int next(struct cn_face_work *work, struct cn_service_call *base, cairn_builder *result,
                struct cn_err *err)
{
    const struct cn_d1_call *call = CN_CONTAINER_OF(base, struct cn_d1_call, base);
    struct cn_document document = {0};
    cairn_builder builder;
    cn_builder_init(&builder, 4 * (size_t)CN_D1_RESULT_MAX);
    int rc = cn_build_json(&builder, (const char *)call->json.data, call->json.size, err);
    if (rc == 0)
        rc = cn_builder_finish(&builder, err);
    if (rc == 0)
        rc = cn_document_read(&document, builder.bytes.data, builder.bytes.size, err);
    if (rc == 0)
        rc = build(*(int *)work->state, document.root, result, err);
    cn_document_fini(&document);
    cn_builder_fini(&builder);
    return rc;
}

static const struct cn_face_method methods[] = {
    {"all", begin_all, next, "D1_ERROR: "},     {"run", begin_all, next, "D1_ERROR: "},
    {"first", begin_first, next, "D1_ERROR: "}, {"batch", begin_batch, next, "D1_ERROR: "},
    {"exec", begin_exec, next, "D1_ERROR: "},   {0},
};
const struct cn_service_face cn_d1_face = {methods};
