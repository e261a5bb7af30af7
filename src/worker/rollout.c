/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/rollout.h"

#include <string.h>
#include <strings.h>

#include "base/map.h"
#include "base/rand.h"
#include "net/server.h"
#include "object/id.h"
#include "worker/script.h"

static const struct cn_http_header *find_header(const struct cn_http_request *http,
                                                const char *name, size_t *from)
{
    size_t size = strlen(name);
    for (size_t i = *from; i < http->header_count; i++) {
        const struct cn_http_header *header = &http->headers[i];
        if (header->name_size == size && strncasecmp(header->name, name, size) == 0) {
            *from = i + 1;
            return header;
        }
    }
    return NULL;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

const char *cn_rollout_override(const char *text, size_t size, const char *worker, size_t *id_size)
{
    const char *at = text, *end = text + size;
    size_t want = strlen(worker);
    while (at < end) {
        while (at < end && (is_space(*at) || *at == ','))
            at++;
        const char *name = at;
        while (at < end && *at != '=' && *at != ',')
            at++;
        if (at == end || *at == ',')
            continue; /* a name without a value */
        size_t name_size = (size_t)(at - name);
        if (++at == end || *at != '"')
            return NULL; /* not what this list has */
        const char *id = ++at;
        while (at < end && *at != '"')
            at++;
        if (at == end)
            return NULL;
        if (name_size == want && memcmp(name, worker, want) == 0) {
            *id_size = (size_t)(at - id);
            return id;
        }
        at++;
    }
    return NULL;
}

/* The place of the version that the request asks for, or -1. */
static int find_override(const struct cn_deployment *deployment, size_t first,
                         const struct cn_http_request *http)
{
    const struct cn_http_header *header;
    size_t from = 0;
    while ((header = find_header(http, "cloudflare-workers-version-overrides", &from))) {
        size_t size;
        const char *id = cn_rollout_override(header->value, header->value_size,
                                             deployment->scripts[first]->name, &size);
        if (id)
            return cn_deployment_find_version(deployment, first, id, size);
    }
    return -1;
}

size_t cn_rollout_request(const struct cn_deployment *deployment, size_t first,
                          const struct cn_http_request *http, struct cn_rand *rand)
{
    if (!deployment->scripts[first]->next)
        return first;
    int asked = find_override(deployment, first, http);
    if (asked >= 0)
        return (size_t)asked;
    size_t from = 0;
    const struct cn_http_header *key = find_header(http, "cloudflare-workers-version-key", &from);
    uint64_t number =
        key && key->value_size ? cn_hash_bytes(0, key->value, key->value_size) : cn_rand_next(rand);
    return cn_deployment_pick(deployment, first, number);
}

size_t cn_rollout_event(const struct cn_deployment *deployment, size_t first, uint64_t request,
                        struct cn_rand *rand)
{
    const struct cn_script *script = deployment->scripts[first];
    if (!script->next)
        return first;
    uint64_t number =
        request ? cn_hash_bytes(request, script->name, strlen(script->name)) : cn_rand_next(rand);
    return cn_deployment_pick(deployment, first, number);
}

size_t cn_rollout_object(const struct cn_deployment *deployment, size_t first,
                         const struct cn_object_key *key)
{
    if (!deployment->scripts[first]->next)
        return first;
    return cn_deployment_pick(deployment, first, cn_hash_bytes(0, key->id, sizeof(key->id)));
}
