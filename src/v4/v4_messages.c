/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_messages.c - messages of a queue over HTTP: sent, pulled, acknowledged, purged. The
 * queue itself does it, asked by the control API (service/queue/control.c), whose bodies and
 * answers are the platform's; here the id becomes a name, and the one who pulls gets the settings
 * that they were given.
 *
 *   P1  Messages are pulled and acknowledged only from a queue with a consumer that pulls: else
 *       they are the worker's. */
#include <string.h>

#include "base/mem.h"
#include "v4/v4.h"

static bool is_about(const struct cn_control_call *call, const char *verb)
{
    return call->path_count == 8 && strcmp(call->path[7], verb) == 0;
}

/* The body with the consumer's settings. */
static void put_body(const struct cn_control_call *call, const struct cn_json *puller,
                     struct cn_buf *body)
{
    cn_buf_append_byte(body, '{');
    for (const struct cn_json *member = call->json ? call->json->first : NULL; member;
         member = member->next) {
        if (strcmp(member->name, "consumer") == 0)
            continue;
        /* What wrangler tells its users to send. */
        const char *name = strcmp(member->name, "visibility_timeout") == 0 ? "visibility_timeout_ms"
                                                                           : member->name;
        cn_buf_append_json(body, name, strlen(name));
        cn_buf_append_byte(body, ':');
        cn_json_write(body, member);
        cn_buf_append_byte(body, ',');
    }
    if (puller) {
        cn_buf_append_str(body, "\"consumer\":");
        cn_json_write(body, puller);
        cn_buf_append_byte(body, '}');
    } else if (body->data[body->size - 1] == ',') {
        body->data[body->size - 1] = '}';
    } else {
        cn_buf_append_byte(body, '}');
    }
}

/* A queue that was created and that no worker has named yet is made now, and so is the one for dead
 * letters. */
static int make_queues(struct cn_control_call *call, const char *name, const struct cn_json *puller,
                       struct cn_err *err)
{
    const char *dead = cn_json_text(puller, "dead_letter_queue");
    int rc = cn_control_service_make(call, "queue", name, err);
    return rc == 0 && dead ? cn_control_service_make(call, "queue", dead, err) : rc;
}

int cn_v4_queue_messages(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_resource *queue = cn_depot_resource(state, "queue", call->path[5], NULL);
    char *name = queue ? cn_strdup(queue->name) : NULL;
    bool pulls = is_about(call, "pull") || is_about(call, "ack");
    struct cn_json *puller = queue && pulls ? cn_v4_puller(state, queue->name) : NULL;
    struct cn_buf target = {0}, body = {0}, out = {0};
    int rc = 0;
    cn_depot_state_unref(state);
    if (!name)
        rc = cn_v4_fail(call, err, CN_ENOTFOUND, 11000, "there is no such queue");
    else if (call->json && call->json->kind != CN_JSON_OBJECT)
        rc = cn_v4_fail(call, err, CN_EINVALID, 11003, "the body must be an object");
    else if (pulls && !puller) /* P1 */
        rc = cn_v4_fail(call, err, CN_EINVALID, 11001,
                        "the queue %s has no consumer that pulls (wrangler queues consumer http "
                        "add)",
                        name);
    if (rc == 0)
        rc = make_queues(call, name, puller, err);
    if (rc == 0) {
        cn_buf_append_str(&target, "/api/queues");
        cn_v4_segment(&target, name, strlen(name));
        for (size_t i = 6; i < call->path_count; i++)
            cn_v4_segment(&target, call->path[i], strlen(call->path[i]));
        put_body(call, puller, &body);
        int status = cn_v4_forward(call, "POST", cn_buf_text(&target), &body, &out);
        rc = cn_v4_forwarded(call, status, &out, 11003, err);
    }
    if (rc == 0)
        rc = cn_control_answer(call, &out);
    cn_json_free(puller);
    cn_free(name);
    cn_buf_fini(&target);
    cn_buf_fini(&body);
    cn_buf_fini(&out);
    return rc;
}
