/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/block.h"
#include "base/loop.h"
#include "base/mem.h"
#include "object/node.h"
#include "service/def.h"
#include "store/database.h"

bool cn_service_owns(const char *namespace_name)
{
    return namespace_name[0] == '$';
}

const struct cn_service_def *cn_service_of(const char *namespace_name)
{
    const char *slash = cn_service_owns(namespace_name) ? strchr(namespace_name, '/') : NULL;
    return slash ? cn_service_named(namespace_name + 1, (size_t)(slash - namespace_name) - 1)
                 : NULL;
}

bool cn_service_find(const struct cn_namespace *ns, const struct cn_class **class_)
{
    const struct cn_service_def *def = cn_service_of(ns->name);
    if (!def || !def->class_)
        return false;
    *class_ = def->class_;
    return true;
}

struct cn_namespace *cn_service_namespace(struct cn_node *node, uint32_t id, const char *name)
{
    const struct cn_service_def *def = cn_service_of(name);
    struct cn_namespace *ns = cn_node_namespace_find(node, id);
    struct cn_err err;
    if (!def || !def->class_ || !id || strlen(name) > CN_OBJECT_NAME_MAX)
        return NULL;
    if (!ns && cn_node_namespace_open(node, id, name, &ns, &err) < 0)
        return NULL;
    return cn_service_of(ns->name) == def ? ns : NULL;
}

/* --- calls ----------------------------------------------------------------------------------- */

struct cn_service_call *cn_service_call_of(struct cn_envelope *envelope)
{
    return CN_CONTAINER_OF(cn_call_of(envelope), struct cn_service_call, call);
}

static void on_drop(struct cn_envelope *envelope)
{
    cn_service_call_free(cn_service_call_of(envelope));
}

static void on_done(struct cn_envelope *envelope)
{
    struct cn_service_call *call = cn_service_call_of(envelope);
    call->done(call);
}

void cn_service_key(const struct cn_namespace *ns, const char *name, struct cn_object_key *key)
{
    *key = (struct cn_object_key){.namespace_id = ns->id};
    cn_id_from_name(&ns->keys, CN_JURISDICTION_NONE, name, strlen(name), key->id);
}

void cn_service_call_init(struct cn_service_call *call, struct cn_namespace *ns, const char *name,
                          unsigned op, void (*fini)(struct cn_service_call *call))
{
    call->call.op = op;
    call->fini = fini;
    call->call.kind = CN_CALL_OTHER;
    call->call.ns = ns;
    call->call.payload = call;
    call->call.envelope.drop = on_drop;
    call->call.envelope.on_done = on_done;
    call->call.name_size = strlen(name);
    call->call.name = cn_strndup(name, call->call.name_size);
    cn_service_key(ns, name, &call->call.key);
}

void cn_service_call_send(struct cn_service_call *call, struct cn_object_lane *from,
                          void (*done)(struct cn_service_call *call))
{
    cn_service_call_send_gated(call, from, NULL, done);
}

void cn_service_call_send_gated(struct cn_service_call *call, struct cn_object_lane *from,
                                struct cn_object *gate, void (*done)(struct cn_service_call *call))
{
    call->done = done;
    call->call.envelope.from = cn_desk_place(from->desk);
    cn_call_send(&call->call, gate);
}

/* A thread that waits for a call. */
struct waiter {
    struct cn_mail mail;
    struct cn_service_call *call;
    struct cn_object_lane *lane;
    void (*prepare)(struct cn_service_call *call, struct cn_object_lane *lane);
    uv_sem_t done;
};

static void on_waited(struct cn_service_call *call)
{
    struct waiter *waiter = call->call.envelope.data;
    uv_sem_post(&waiter->done);
}

static void deliver_waiter(struct cn_mail *mail, void *data)
{
    (void)data;
    struct waiter *waiter = CN_CONTAINER_OF(mail, struct waiter, mail);
    if (waiter->prepare)
        waiter->prepare(waiter->call, waiter->lane);
    cn_service_call_send(waiter->call, waiter->lane, on_waited);
}

int cn_service_call_wait(struct cn_service_call *call, struct cn_node *node,
                         void (*prepare)(struct cn_service_call *call, struct cn_object_lane *lane),
                         struct cn_err *err)
{
    struct waiter waiter = {.mail.deliver = deliver_waiter,
                            .call = call,
                            .lane = cn_node_lane(node, 0),
                            .prepare = prepare};
    call->call.envelope.data = &waiter;
    if (!waiter.lane)
        return cn_err_set(err, CN_ECLOSED, "the server is starting");
    cn_loop_assert_other(waiter.lane->loop);
    cn_may_block_here();
    uv_sem_init(&waiter.done, 0);
    bool sent = cn_mailbox_send(waiter.lane->mailbox, &waiter.mail);
    if (sent)
        uv_sem_wait(&waiter.done);
    uv_sem_destroy(&waiter.done);
    if (!sent)
        return cn_err_set(err, CN_ECLOSED, "the server is stopping");
    if (call->call.envelope.err.code)
        *err = call->call.envelope.err;
    return call->call.envelope.err.code;
}

void cn_service_call_free(struct cn_service_call *call)
{
    if (call->fini)
        call->fini(call);
    cn_free(call->call.name);
    cn_free(call);
}

void cn_service_call_fail(struct cn_call *call, const struct cn_err *err)
{
    cn_call_fail(call, CN_FAULT_REMOTE, err->code, "%s", err->text);
}

void cn_service_answer(struct cn_object *object, struct cn_call *call, int rc,
                       const struct cn_err *err)
{
    if (rc >= 0) {
        cn_call_reply(call, NULL);
        return;
    }
    if (object->db)
        cn_database_rollback(object->db);
    cn_service_call_fail(call, err);
}

/* --- databases ------------------------------------------------------------------------------- */

struct cn_database *cn_service_open(struct cn_object *object, const char *const steps[],
                                    int step_count, struct cn_err *err)
{
    struct cn_database *db = cn_object_database(object, err);
    return db && cn_service_schema(db, steps, step_count, err) == 0 ? db : NULL;
}

static int read_version(struct cn_database *db, int64_t *version, struct cn_err *err)
{
    static const char sql[] = "PRAGMA user_version";
    return cn_database_number(db, sql, sizeof(sql) - 1, version, err);
}

int cn_service_schema(struct cn_database *db, const char *const steps[], int step_count,
                      struct cn_err *err)
{
    int64_t version = 0;
    int rc = read_version(db, &version, err);
    if (rc < 0 || version == step_count)
        return rc;
    if (version > step_count)
        return cn_err_set(err, CN_EVERSION, "written by a newer version of cairn");
    for (; version < step_count && rc == 0; version++)
        rc = cn_database_exec(db, steps[version], err);
    if (rc < 0)
        return rc;
    char pragma[48];
    snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", step_count);
    return cn_database_exec(db, pragma, err);
}

void cn_service_sql_init(struct cn_service_sql *sql, const char *const texts[], unsigned count)
{
    sql->texts = texts;
    sql->count = count;
    sql->statements = cn_alloc_zero(count * sizeof(struct cn_statement *));
}

int cn_service_sql_get(struct cn_service_sql *sql, struct cn_database *db, unsigned which,
                       struct cn_statement **statement, struct cn_err *err)
{
    CN_ASSERT(which < sql->count);
    if (!sql->statements[which]) {
        const char *text = sql->texts[which];
        size_t used, size = strlen(text);
        int rc = cn_database_prepare(db, text, size, 0, &sql->statements[which], &used, err);
        if (rc < 0)
            return rc;
        CN_ASSERT(used == size);
    }
    *statement = sql->statements[which];
    return 0;
}

int cn_service_sql_run(struct cn_statement *statement, struct cn_err *err)
{
    int rc = cn_statement_step(statement, err);
    cn_statement_reset(statement);
    return rc < 0 ? rc : 0;
}

void cn_service_sql_release(struct cn_service_sql *sql)
{
    for (unsigned i = 0; i < sql->count; i++) {
        cn_statement_release(sql->statements[i]);
        sql->statements[i] = NULL;
    }
}

void cn_service_sql_fini(struct cn_service_sql *sql)
{
    cn_free(sql->statements);
    sql->statements = NULL;
}
