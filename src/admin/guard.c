/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/guard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/diag.h"
#include "net/server.h"

#define FREE_FAILURES 5
#define REFUSED_MS_MIN 1000u
#define REFUSED_MS_MAX 300000u
#define DOUBLINGS 9

bool cn_guard_equal(const char *secret, const char *given, size_t given_size)
{
    size_t size = strlen(secret);
    volatile unsigned difference = size != given_size;
    for (size_t i = 0; i < size; i++)
        difference |= (unsigned char)secret[i] ^ (unsigned char)(i < given_size ? given[i] : 0);
    return difference == 0;
}

bool cn_guard_is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "[::1]") == 0 ||
           (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == strlen(host));
}

bool cn_guard_host_is_loopback(const struct cn_http_text *host)
{
    char name[64];
    size_t size = host->size;
    const char *colon = memrchr(host->data, ':', size);
    if (colon && !memchr(colon, ']', size - (size_t)(colon - host->data)))
        size = (size_t)(colon - host->data);
    if (size >= sizeof(name))
        return false;
    memcpy(name, host->data, size);
    name[size] = 0;
    return cn_guard_is_loopback(name);
}

static bool origin_is_ours(const struct cn_http_request *req)
{
    const struct cn_http_header *origin = cn_http_request_find(req, "origin");
    if (!origin)
        return true;
    const char *scheme = req->https ? "https://" : "http://";
    size_t scheme_size = strlen(scheme);
    return origin->value_size == scheme_size + req->host.size &&
           memcmp(origin->value, scheme, scheme_size) == 0 &&
           strncasecmp(origin->value + scheme_size, req->host.data, req->host.size) == 0;
}

static struct cn_guard_address *find_address(struct cn_guard *guard, const char *remote,
                                             uint64_t now_ms)
{
    struct cn_guard_address *oldest = &guard->addresses[0];
    for (size_t i = 0; i < CN_GUARD_ADDRESS_MAX; i++) {
        struct cn_guard_address *address = &guard->addresses[i];
        if (strcmp(address->remote, remote) == 0)
            return address;
        if (address->last_ms < oldest->last_ms)
            oldest = address;
    }
    *oldest = (struct cn_guard_address){.last_ms = now_ms};
    snprintf(oldest->remote, sizeof(oldest->remote), "%s", remote);
    return oldest;
}

/* G3: the milliseconds that the address is told to wait; 0: none. */
static uint64_t note_failure(struct cn_guard_address *address, uint64_t now_ms)
{
    if (now_ms - address->last_ms >= REFUSED_MS_MAX)
        address->failures = 0;
    address->last_ms = now_ms;
    unsigned before = address->failures;
    if (before < FREE_FAILURES + DOUBLINGS)
        address->failures++;
    if (before < FREE_FAILURES)
        return 0;
    if (before == FREE_FAILURES)
        cn_warn("%s has sent %d wrong tokens to the admin listener", address->remote,
                FREE_FAILURES + 1);
    uint64_t wait = (uint64_t)REFUSED_MS_MIN << (before - FREE_FAILURES);
    return wait < REFUSED_MS_MAX ? wait : REFUSED_MS_MAX;
}

void cn_guard_operator(struct cn_guard_who *who)
{
    *who = (struct cn_guard_who){.scopes = CN_SCOPE_ALL, .name = "admin"};
}

static bool has_token(const struct cn_guard *guard, const struct cn_http_request *req,
                      struct cn_guard_who *who)
{
    static const char bearer[] = "bearer ";
    const size_t skip = sizeof(bearer) - 1;
    const struct cn_http_header *header = cn_http_request_find(req, "authorization");
    if (!header || header->value_size <= skip || strncasecmp(header->value, bearer, skip) != 0)
        return false;
    const char *token = header->value + skip;
    size_t size = header->value_size - skip;
    if (cn_guard_equal(guard->token, token, size))
        cn_guard_operator(who);
    else if (guard->find)
        guard->find(guard->find_data, token, size, who); /* G5 */
    return who->scopes != 0;
}

int cn_guard_check(struct cn_guard *guard, struct cn_http_request *req, enum cn_guard_need need,
                   uint64_t now_ms, struct cn_guard_who *who, const char **sentence,
                   unsigned *retry_seconds)
{
    *retry_seconds = 0;
    *who = (struct cn_guard_who){0};
    if (guard->loopback && !cn_guard_host_is_loopback(&req->host)) {
        *sentence = "the Host of the request is not a name of this machine";
        return 403;
    }
    if (!origin_is_ours(req)) {
        *sentence = "requests of other sites are refused";
        return 403;
    }
    if (need == CN_GUARD_OPEN || (need == CN_GUARD_METRICS && guard->loopback))
        return 0; /* G1 */
    if (has_token(guard, req, who))
        return 0;
    uint64_t wait_ms = 0;
    if (cn_http_request_find(req, "authorization"))
        wait_ms =
            note_failure(find_address(guard, cn_http_request_remote(req, NULL), now_ms), now_ms);
    *sentence =
        wait_ms ? "too many wrong tokens; wait" : "a token is needed: Authorization: Bearer TOKEN";
    *retry_seconds = (unsigned)(wait_ms / 1000);
    return wait_ms ? 429 : 401;
}
