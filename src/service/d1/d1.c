/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/d1.c - the class of D1 databases. See d1.h; d1_run.c runs the SQL. */
#include "service/d1/d1.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "object/node.h"
#include "object/object.h"
#include "service/pool.h"

struct job {
    struct cn_pool_job base;
    struct instance *instance; /* NULL: the object is gone */
    struct cn_database *db;
    struct cn_d1_call *call;
    int rc;
    struct cn_err err;
};

struct instance {
    struct cn_object *object;
    struct cn_pool *pool;
    struct job *job; /* D2 */
};

/* What the platform documents: 2 MB of a value or a row; 100 columns and 100 parameters are the
 * defaults. SQL is longer in imports, where a value stands in the text; CN_D1_SQL_MAX holds for
 * workers. */
const struct cn_database_limits cn_d1_limits = {.value_size = 2000000, .sql_size = 8 << 20};

/* --- calls ----------------------------------------------------------------------------------- */

void cn_d1_call_fini(struct cn_service_call *base)
{
    struct cn_d1_call *call = (struct cn_d1_call *)base;
    cn_buf_fini(&call->bytes);
    cn_free(call->queries);
    cn_free(call->values);
    cn_buf_fini(&call->json);
    cn_buf_fini(&call->metas);
    cn_free(call->bookmark);
}

struct cn_d1_call *cn_d1_call_new(struct cn_namespace *ns, enum cn_d1_format format)
{
    struct cn_d1_call *call = CN_NEW(struct cn_d1_call);
    cn_service_call_init(&call->base, ns, CN_D1_OBJECT, 0, cn_d1_call_fini);
    call->format = format;
    return call;
}

static void add_query(struct cn_d1_call *call, size_t at, size_t size)
{
    CN_GROW(call->queries, call->query_count, call->query_capacity);
    call->queries[call->query_count++] =
        (struct cn_d1_query){.at = at, .size = size, .first = call->value_count};
}

void cn_d1_call_query(struct cn_d1_call *call, const char *sql, size_t size)
{
    add_query(call, call->bytes.size, size);
    cn_buf_append(&call->bytes, sql, size);
}

void cn_d1_call_again(struct cn_d1_call *call)
{
    CN_ASSERT(call->query_count > 0);
    const struct cn_d1_query *last = &call->queries[call->query_count - 1];
    add_query(call, last->at, last->size);
}

struct cn_d1_value *cn_d1_call_value(struct cn_d1_call *call, enum cn_sql_type type)
{
    CN_ASSERT(call->query_count > 0);
    CN_GROW(call->values, call->value_count, call->value_capacity);
    call->queries[call->query_count - 1].count++;
    struct cn_d1_value *value = &call->values[call->value_count++];
    *value = (struct cn_d1_value){.type = type};
    return value;
}

void cn_d1_call_number(struct cn_d1_call *call, double number)
{
    if (isfinite(number))
        cn_d1_call_value(call, CN_SQL_REAL)->real = number + 0.0; /* they were JSON: no -0 */
    else
        cn_d1_call_value(call, CN_SQL_NULL);
}

void cn_d1_call_bytes(struct cn_d1_call *call, enum cn_sql_type type, const void *bytes,
                      size_t size)
{
    struct cn_d1_value *value = cn_d1_call_value(call, type);
    value->at = call->bytes.size;
    value->size = size;
    cn_buf_append(&call->bytes, bytes, size);
}

/* --- off the lane ---------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    return cn_clock_mono_ns(cn_clock_system());
}

static void answer(struct cn_object *object, struct cn_d1_call *call, int rc,
                   const struct cn_err *err)
{
    if (rc < 0) {
        cn_database_rollback(object->db);
        cn_service_call_fail(&call->base.call, err);
    } else {
        cn_call_reply(&call->base.call, NULL);
    }
}

static void on_run(struct cn_pool_job *base)
{
    struct job *job = CN_CONTAINER_OF(base, struct job, base);
    uint64_t limit = job->call->limit_ns ? job->call->limit_ns : CN_D1_QUERY_NS;
    job->rc = cn_d1_run(job->db, job->call, now_ns() + limit, &job->err);
}

static void on_lost(struct cn_pool_job *base)
{
    cn_free(CN_CONTAINER_OF(base, struct job, base));
}

/* Back on the lane: the rest of the turn that began with the call. */
static void on_done(struct cn_mail *mail, void *data)
{
    (void)data;
    struct cn_pool_job *base = CN_CONTAINER_OF(mail, struct cn_pool_job, mail);
    struct job *job = CN_CONTAINER_OF(base, struct job, base);
    struct instance *instance = job->instance;
    if (instance) {
        struct cn_object *object = instance->object;
        instance->job = NULL;
        cn_object_enter(object);
        object->transactions--;
        if (job->rc == CN_ETIMEOUT)
            cn_err_set(&job->err, CN_ETIMEOUT, "the query took too long and was ended");
        answer(object, job->call, job->rc, &job->err);
        cn_object_unlock(object);
        cn_object_leave(object);
        cn_object_lane_step(object->lane);
    }
    cn_free(job);
}

static void leave_lane(struct instance *instance, struct cn_d1_call *call)
{
    struct cn_object *object = instance->object;
    struct job *job = CN_NEW(struct job);
    job->base.run = on_run;
    job->base.lost = on_lost;
    job->base.mail.deliver = on_done;
    job->base.mailbox = object->lane->mailbox;
    job->instance = instance;
    job->db = object->db;
    job->call = call;
    instance->job = job;
    cn_object_lock(object);
    object->transactions++;
    cn_pool_start(instance->pool, &job->base);
}

/* --- the class ------------------------------------------------------------------------------- */

static int create(struct cn_object *object, void *class_data, void **out, struct cn_err *err)
{
    struct cn_services *services = class_data;
    if (!cn_object_database(object, err))
        return err->code;
    struct instance *instance = CN_NEW(struct instance);
    instance->object = object;
    instance->pool = services->pool;
    *out = instance;
    return 0;
}

static void deliver(struct cn_object *object, void *data, struct cn_call *base)
{
    struct instance *instance = data;
    struct cn_d1_call *call = (struct cn_d1_call *)cn_service_request(base);
    struct cn_err err;
    CN_ASSERT(!instance->job);
    int rc = cn_d1_run(object->db, call, now_ns() + CN_D1_LANE_NS, &err);
    if (rc == CN_ETIMEOUT) {
        cn_database_rollback(object->db);
        leave_lane(instance, call);
    } else {
        answer(object, call, rc, &err);
    }
}

/* A statement that begins forgets an interruption that came before it, hence `cancelled`. */
static void on_nudge(struct cn_pool_job *base)
{
    struct job *job = CN_CONTAINER_OF(base, struct job, base);
    atomic_store(&job->call->cancelled, true);
    cn_database_interrupt(job->db);
}

static void release(struct cn_object *object, void *data)
{
    (void)object;
    struct instance *instance = data;
    struct job *job = instance->job;
    if (!job)
        return;
    instance->job = NULL;
    job->instance = NULL;
    if (!cn_pool_finish(instance->pool, &job->base, on_nudge))
        cn_free(job);
}

static void destroy(struct cn_object *object, void *instance)
{
    (void)object;
    cn_free(instance);
}

const struct cn_class cn_d1_class = {.threads = true,
                                     .create = create,
                                     .deliver = deliver,
                                     .release = release,
                                     .destroy = destroy,
                                     .limits = &cn_d1_limits};

/* --- the descriptor -------------------------------------------------------------------------- */

const struct cn_service_def cn_service_d1 = {
    .name = "d1",
    .title = "D1",
    .about = "databases with SQL",
    .page = "reference/d1.md",
    .class_ = &cn_d1_class,
    .operations = {"query"},
    .wire = &cn_d1_wire,
    .config = &cn_d1_config,
    .natives = &cn_d1_natives,
    .face = &cn_d1_face,
    .routes = &cn_d1_routes,
    .command = &cn_d1_command,
};
