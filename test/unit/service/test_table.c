/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of services (service/def.h): what each says is given once, and leads somewhere.
 */
#include <string.h>
#include <unistd.h>

#include "admin/handler.h"
#include "base/mem.h"
#include "cli/args.h"
#include "config/service_config.h"
#include "object/node.h"
#include "service/def.h"
#include "service/service.h"
#include "test/lib/test.h"

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static const char *key_of(const struct cn_service_def *def)
{
    return def->config ? def->config->key.name : NULL;
}

static const char *command_of(const struct cn_service_def *def)
{
    return def->command ? def->command->name : NULL;
}

/* D1 of service/def.h. */
TEST(service_table, names_keys_and_commands_are_given_once)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_def *a = cn_service_table[i];
        CHECK_INT(i, cn_service_index(a));
        CHECK(cn_service_named(a->name, strlen(a->name)) == a);
        for (size_t k = i + 1; cn_service_table[k]; k++) {
            const struct cn_service_def *b = cn_service_table[k];
            if (same(a->name, b->name) || same(key_of(a), key_of(b)) ||
                same(command_of(a), command_of(b)))
                test_fail(__FILE__, __LINE__, "%s and %s have something in common", a->name,
                          b->name);
        }
    }
    CHECK(!cn_service_named("k", 1));
    CHECK(!cn_service_named("kvx", 3));
}

static bool same_route(const struct cn_control_route *a, const struct cn_control_route *b)
{
    for (size_t i = 0; i < CN_CONTROL_PATH_MAX; i++) {
        if (!a->path[i] && !b->path[i])
            break;
        if (!same(a->path[i], b->path[i]))
            return false;
    }
    return same(a->method, b->method);
}

TEST(service_table, routes_are_given_once)
{
    const struct cn_control_route *all[500];
    size_t count = 0;
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_control_routes *routes = cn_service_table[i]->routes;
        for (size_t k = 0; routes && routes->items[k].method; k++)
            all[count++] = &routes->items[k];
    }
    CHECK(count > 20 && count < 500);
    for (size_t i = 0; i < count; i++) {
        CHECK(all[i]->run);
        for (size_t k = i + 1; k < count; k++)
            if (same_route(all[i], all[k]))
                test_fail(__FILE__, __LINE__, "%s /%s/%s twice", all[i]->method, all[i]->path[0],
                          all[i]->path[1]);
    }
}

/* D2 of service/def.h. */
TEST(service_table, a_namespace_has_the_class_of_the_service_that_it_names)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_def *def = cn_service_table[i];
        char *name = cn_sprintf("$%s/any/thing", def->name);
        struct cn_namespace ns = {.name = name};
        const struct cn_class *found = NULL;
        CHECK(cn_service_of(name) == def);
        CHECK_INT(def->class_ != NULL, cn_service_find(&ns, &found));
        CHECK(found == def->class_);
        CHECK(!def->class_ == !def->operations[0]);
        cn_free(name);
    }
    CHECK(!cn_service_of("kv/x"));
    CHECK(!cn_service_of("$kv"));
    CHECK(!cn_service_of("$kvx/a"));
    CHECK(!cn_service_of("$/a"));
}

TEST(service_table, each_is_documented)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_def *def = cn_service_table[i];
        CHECK(def->title && *def->title && def->about && *def->about);
        char *path = cn_sprintf("docs/%s", def->page);
        if (access(path, R_OK) != 0)
            test_fail(__FILE__, __LINE__, "%s: there is no %s", def->name, path);
        cn_free(path);
    }
}
