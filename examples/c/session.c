/* SPDX-License-Identifier: Apache-2.0 */
/* A session store: one object per session. Its name is the secret that the browser keeps in a
 * cookie; whoever does not know it cannot reach the object. It ends by itself, by alarm, when
 * nobody has used it for a while.
 *
 *     await env.SESSIONS.getByName(secret).begin("ada", 900_000);
 *     const data = await env.SESSIONS.getByName(secret).visit();       // null: there is none
 *
 * Teaches: key-value pairs that are objects, reading fields of a value, `null` as a result. */
#include <cairn.h>
#include <string.h>

struct session {
    const char *user;
    int64_t created, expires, visits;
};

static void build(cairn_builder *out, const struct session *session)
{
    cairn->build_object(out);
    cairn->build_name(out, "user");
    cairn->build_text(out, session->user, strlen(session->user));
    cairn->build_name(out, "createdAt");
    cairn->build_int(out, session->created);
    cairn->build_name(out, "expiresAt");
    cairn->build_int(out, session->expires);
    cairn->build_name(out, "visits");
    cairn->build_int(out, session->visits);
    cairn->build_end(out);
}

static int put_int(cairn_object *object, const char *key, int64_t number)
{
    cairn_builder *kept = cairn->builder(object);
    cairn->build_int(kept, number);
    return cairn->kv_put(object, key, kept);
}

/* Keeps it, sets the alarm for its end, and answers with it. */
static int save(cairn_object *object, cairn_event *event, const struct session *session)
{
    cairn_builder *kept = cairn->builder(object);
    build(kept, session);
    int rc = cairn->kv_put(object, "data", kept);
    if (rc == 0)
        rc = cairn->alarm_set(object, session->expires);
    build(cairn->event_result(event), session);
    return rc;
}

static int begin(cairn_object *object, cairn_event *event)
{
    const cairn_value *arguments = cairn->event_arguments(event);
    int64_t lifetime, now = cairn->now(object);
    struct session session = {cairn->value_text(cairn->value_at(arguments, 0), NULL), now, now, 0};
    if (!session.user || cairn->value_int(cairn->value_at(arguments, 1), &lifetime) < 0)
        return cairn->error(object, "TypeError", "begin(user, lifetimeMs) takes a text, a number");
    session.expires += lifetime;
    int rc = put_int(object, "lifetime", lifetime);
    return rc < 0 ? rc : save(object, event, &session);
}

static int visit(cairn_object *object, cairn_event *event)
{
    const cairn_value *data = cairn->kv_get(object, "data");
    int64_t lifetime = 0, now = cairn->now(object);
    struct session session = {cairn->value_text(cairn->value_get(data, "user"), NULL), 0, 0, 0};
    cairn->value_int(cairn->value_get(data, "createdAt"), &session.created);
    cairn->value_int(cairn->value_get(data, "expiresAt"), &session.expires);
    cairn->value_int(cairn->value_get(data, "visits"), &session.visits);
    cairn->value_int(cairn->kv_get(object, "lifetime"), &lifetime);
    if (!session.user || session.expires <= now) { /* the alarm may be late; the time counts */
        cairn->build_null(cairn->event_result(event));
        return 0;
    }
    session.visits++;
    session.expires = now + lifetime;
    return save(object, event, &session);
}

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    if (strcmp(method, "begin") == 0)
        return begin(object, event);
    if (strcmp(method, "visit") == 0)
        return visit(object, event);
    if (strcmp(method, "end") == 0)
        return cairn->delete_all(object); /* the alarm too: nothing is left in storage */
    return cairn->error(object, "TypeError", "there is no such method");
}

static int alarm(cairn_object *object, void *instance, cairn_event *event)
{
    return cairn->delete_all(object);
}

static const struct cairn_class classes[] = {{.name = "Session", .call = call, .alarm = alarm}};
CAIRN_MODULE(classes)
