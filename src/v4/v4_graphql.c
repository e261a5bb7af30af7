/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_graphql.c - the one question of the platform's analytics that can be answered here:
 * `wrangler r2 bucket info` asks so how much is in a bucket. It is known by its field, not parsed.
 */
#include <inttypes.h>
#include <string.h>

#include "v4/v4.h"

static int check_account(struct cn_control_call *call, const char *account, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    bool own = account && strcmp(account, state->account) == 0;
    cn_depot_state_unref(state);
    return own ? 0
               : cn_v4_fail(call, err, CN_EDENIED, 9109,
                            "\"accountTag\" is not the account of this server"); /* W1 */
}

static int answer_bucket(struct cn_control_call *call, const char *bucket, struct cn_err *err)
{
    static const struct cn_buf none = {0};
    struct cn_buf target = {0}, out = {0};
    cn_buf_append_str(&target, "/api/r2");
    cn_v4_segment(&target, bucket, strlen(bucket));
    int status = cn_v4_forward(call, "GET", cn_buf_text(&target), &none, &out);
    int rc = cn_v4_forwarded(call, status, &out, 10006, err);
    cn_buf_fini(&target);
    struct cn_json *json = rc == 0 ? cn_json_parse((const char *)out.data, out.size, err) : NULL;
    cn_buf_clear(&out);
    if (json) {
        cn_buf_printf(&out,
                      "{\"data\":{\"viewer\":{\"accounts\":[{\"r2StorageAdaptiveGroups\":[{\"max\":"
                      "{\"objectCount\":%" PRId64 ",\"payloadSize\":%" PRId64
                      ",\"metadataSize\":0},\"dimensions\":{\"datetime\":",
                      cn_json_int(json, "objects"), cn_json_int(json, "bytes"));
        cn_depot_append_time(&out, cn_v4_now());
        cn_buf_append_str(&out, "}}]}]}},\"errors\":null}");
        rc = cn_control_answer(call, &out);
    } else if (rc == 0) {
        rc = CN_ECORRUPT;
    }
    cn_json_free(json);
    cn_buf_fini(&out);
    return rc;
}

int cn_v4_graphql(struct cn_control_call *call, struct cn_err *err)
{
    const char *query = cn_json_text(call->json, "query");
    const struct cn_json *variables = cn_json_find(call->json, "variables");
    const char *bucket = cn_json_text(cn_json_find(variables, "filter"), "bucketName");
    int rc = check_account(call, cn_json_text(variables, "accountTag"), err);
    if (rc < 0)
        return rc;
    if (!query || !bucket || !strstr(query, "r2StorageAdaptiveGroups"))
        return cn_v4_fail(call, err, CN_ENOTFOUND, 10007,
                          "of the platform's analytics only the storage of a bucket is here; "
                          "/metrics of this server has its figures");
    return answer_bucket(call, bucket, err);
}
