/* SPDX-License-Identifier: Apache-2.0 */
/* service/analytics/control.c - SQL over the data points of Analytics Engine: analytics/asql.h.
 *
 *     POST /api/analytics/sql                                        the body is the SQL
 *     GET  /api/analytics/sql?query=...
 *     and the same at /client/v4/accounts/ANY/analytics_engine/sql, for clients of the platform */
#include <string.h>

#include "admin/handler.h"
#include "analytics/asql.h"
#include "analytics/points.h"
#include "base/clock.h"
#include "service/analytics/control_nodes.h"

struct run {
    struct cn_control_call *call;
    struct cn_analytics_nodes *nodes; /* NULL: there are no other nodes */
};

static bool is_cancelled(void *data)
{
    struct cn_control_call *call = ((struct run *)data)->call;
    return call->cancelled && call->cancelled(call);
}

static int write_piece(void *data, const char *type, const void *bytes, size_t size)
{
    const struct run *run = data;
    struct cn_control_call *call = run->call;
    if (run->nodes && run->nodes->err.code)
        return run->nodes->err.code; /* F2 of control_nodes.h: it is not all */
    call->type = type;
    return call->write(call, bytes, size);
}

static int run_sql(struct cn_control_call *call, struct cn_err *err)
{
    const char *query = cn_control_param(call, "query");
    int rc = cn_control_read_body(call, CN_CONTROL_BODY_MAX, err);
    if (rc < 0)
        return rc;
    const char *text = call->body.size ? (char *)call->body.data : query ? query : "";
    size_t size = call->body.size ? call->body.size : strlen(text);
    if (size == 0)
        return cn_err_set(err, CN_EINVALID, "the SQL is missing: it is the body of the request");
    struct cn_points *points = call->control->points;
    struct run run = {call, cn_analytics_nodes_new(call->control->node, call->control->disk)};
    struct cn_asql asql = {
        .disk = run.nodes ? &run.nodes->disk : call->control->disk,
        .now_ms = cn_clock_wall_ms(cn_clock_system()),
        .cancelled = is_cancelled,
        .write = write_piece,
        .data = &run,
    };
    if (points) {
        cn_points_flush(points); /* a query sees what was written before it */
        cn_points_query_begin(points);
    }
    rc = cn_asql_run(&asql, text, size, err);
    if (points)
        cn_points_query_end(points);
    if (run.nodes && run.nodes->err.code) {
        *err = run.nodes->err;
        rc = err->code;
    }
    cn_analytics_nodes_free(run.nodes);
    return rc;
}

static const struct cn_control_route routes[] = {
    {"POST", {"api", "analytics", "sql"}, run_sql, CN_ROUTE_RAW},
    {"GET", {"api", "analytics", "sql"}, run_sql, CN_ROUTE_RAW},
    {"POST",
     {"client", "v4", "accounts", "*", "analytics_engine", "sql"},
     run_sql,
     CN_ROUTE_RAW | CN_ROUTE_FOR(CN_SCOPE_READ)},
    {"GET",
     {"client", "v4", "accounts", "*", "analytics_engine", "sql"},
     run_sql,
     CN_ROUTE_RAW | CN_ROUTE_FOR(CN_SCOPE_READ)},
    {0},
};
const struct cn_control_routes cn_analytics_routes = {routes};
