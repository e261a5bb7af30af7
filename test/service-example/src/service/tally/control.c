/* SPDX-License-Identifier: Apache-2.0 */
/* service/tally/control.c - GET /api/tallies/NAME, POST /api/tallies/NAME {"by"}. */
#include <inttypes.h>
#include <string.h>

#include "admin/handler.h"
#include "service/tally/tally.h"

static int handle(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_namespace *ns;
    const struct cn_json *by = cn_json_find(call->json, "by");
    bool adds = strcmp(call->method, "POST") == 0;
    if (adds && (!by || by->kind != CN_JSON_INT))
        return cn_err_set(err, CN_EINVALID, "\"by\" must be a whole number");
    int rc = cn_control_service(call, "tally", call->path[2], &ns, err);
    if (rc < 0)
        return rc;
    struct cn_tally_call *tally =
        cn_tally_call_new(ns, adds ? CN_TALLY_ADD : CN_TALLY_GET, cn_json_int(call->json, "by"));
    rc = cn_control_ask(call, &tally->base, err);
    cn_buf_printf(&call->scratch, "{\"count\":%" PRId64 "}", tally->count);
    cn_service_call_free(&tally->base);
    return rc < 0 ? rc : cn_control_answer(call, &call->scratch);
}

static const struct cn_control_route routes[] = {
    {"GET", {"api", "tallies", "*"}, handle, 0},
    {"POST", {"api", "tallies", "*"}, handle, 0},
    {0},
};
const struct cn_control_routes cn_tally_routes = {routes};
