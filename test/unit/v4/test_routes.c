/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI document describes every request that there is and no other, each with the scopes that
 * its route asks for: `make tokens` is made from it. */
#include <stdio.h>
#include <string.h>

#include "admin/handler.h"
#include "admin/openapi.h"
#include "base/buf.h"
#include "base/json.h"
#include "service/def.h"
#include "test/lib/test.h"
#include "v4/v4.h"

static const struct {
    const char *name;
    unsigned scope;
} scopes[] = {{"read", CN_SCOPE_READ},
              {"deploy", CN_SCOPE_DEPLOY},
              {"data", CN_SCOPE_DATA},
              {"upload", CN_SCOPE_UPLOAD},
              {"transfer", CN_SCOPE_TRANSFER}};

/* Those that are no routes: pages of admin.c, and the WebSocket of a tail. */
static const char *const pages[] = {"/healthz",      "/readyz",     "/metrics",
                                    "/openapi.json", "/api/tail",   "/api/address",
                                    "/api/recent",   "/api/memory", "/client/v4/tails/{secret}"};

/* Whether a described path is that of the route: a parameter stands for "*" and for "**". */
static bool is_path(const char *described, const struct cn_control_route *route)
{
    for (size_t i = 0; i < CN_CONTROL_PATH_MAX && route->path[i]; i++) {
        if (*described++ != '/')
            return false;
        size_t size = strcspn(described, "/");
        bool wild = route->path[i][0] == '*';
        if (wild != (*described == '{') ||
            (!wild && (strlen(route->path[i]) != size || memcmp(described, route->path[i], size))))
            return false;
        described += size;
    }
    return !*described;
}

static bool is_method(const char *described, const char *method)
{
    return strcasecmp(described, method) == 0;
}

/* The scopes of which a token needs one; 0: it is for the operator. */
static unsigned scopes_of(const struct cn_json *operation)
{
    const struct cn_json *security = cn_json_find(operation, "security");
    unsigned found = 0;
    for (const struct cn_json *way = security ? security->first : NULL; way; way = way->next) {
        const struct cn_json *names = cn_json_find(way, "token");
        for (size_t i = 0; i < sizeof(scopes) / sizeof(*scopes); i++) {
            if (names && names->first && strcmp(names->first->text, scopes[i].name) == 0)
                found |= scopes[i].scope;
        }
    }
    return found;
}

static const struct cn_json *find_operation(const struct cn_json *paths,
                                            const struct cn_control_route *route)
{
    for (const struct cn_json *path = paths->first; path; path = path->next) {
        if (!is_path(path->name, route))
            continue;
        for (const struct cn_json *each = path->first; each; each = each->next) {
            if (is_method(each->name, route->method))
                return each;
        }
    }
    return NULL;
}

static size_t check_table(const struct cn_json *paths, const struct cn_control_route *table)
{
    size_t count = 0;
    for (; table->method; table++, count++) {
        const struct cn_json *operation = find_operation(paths, table);
        char name[512] = "";
        for (size_t i = 0; i < CN_CONTROL_PATH_MAX && table->path[i]; i++) {
            size_t at = strlen(name);
            snprintf(name + at, sizeof(name) - at, "/%s", table->path[i]);
        }
        if (!operation)
            test_fail(__FILE__, __LINE__, "%s %s is not described", table->method, name);
        if (scopes_of(operation) != table->flags >> 8)
            test_fail(__FILE__, __LINE__, "%s %s has other scopes", table->method, name);
    }
    return count;
}

static size_t count_operations(const struct cn_json *paths)
{
    size_t count = 0;
    for (const struct cn_json *path = paths->first; path; path = path->next) {
        for (const struct cn_json *each = path->first; each; each = each->next)
            count += strcmp(each->name, "parameters") != 0;
    }
    return count;
}

TEST(routes, are_described_with_their_scopes_and_nothing_else_is)
{
    struct cn_json *document = cn_json_parse(cn_openapi, cn_openapi_size, NULL);
    const struct cn_json *paths = cn_json_find(document, "paths");
    CHECK(paths);
    size_t count = check_table(paths, cn_control_own_routes) + check_table(paths, cn_v4_routes);
    for (size_t i = 0; cn_service_table[i]; i++) {
        if (cn_service_table[i]->routes)
            count += check_table(paths, cn_service_table[i]->routes->items);
    }
    CHECK(count > 150);
    for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
        CHECK(cn_json_find(paths, pages[i]));
    CHECK_INT(count + sizeof(pages) / sizeof(*pages), count_operations(paths));
    cn_json_free(document);
}
