/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts and deployments: which route fits, what a script may reach, who holds on to whom. */
#include "worker/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "test/lib/test.h"

/* A deployment with a script for each route; "" has none. */
static struct cn_deployment *routes(const char *route, ...)
{
    struct cn_deployment *deployment = cn_deployment_new();
    va_list args;
    va_start(args, route);
    for (; route; route = va_arg(args, const char *)) {
        struct cn_script *script = cn_script_new();
        if (*route)
            cn_script_add_route(script, route);
        cn_deployment_add(deployment, script);
    }
    va_end(args);
    return deployment;
}

static int match(struct cn_deployment *deployment, const char *host, const char *path)
{
    return cn_deployment_match(deployment, host, strlen(host), path, strlen(path));
}

TEST(script, the_longest_host_and_then_the_longest_path_wins_whatever_the_order)
{
    struct cn_deployment *deployment =
        routes("*/*", "*.example.com/*", "a.example.com/*", "a.example.com/api/*",
               "a.example.com/api/v1", "https://B.example.com/", NULL);
    CHECK_INT(0, match(deployment, "other.test", "/"));
    CHECK_INT(1, match(deployment, "x.example.com", "/"));
    CHECK_INT(2, match(deployment, "a.example.com", "/"));
    CHECK_INT(2, match(deployment, "a.example.com", "/api"));
    CHECK_INT(3, match(deployment, "a.example.com", "/api/"));
    CHECK_INT(4, match(deployment, "a.example.com", "/api/v1"));
    CHECK_INT(3, match(deployment, "a.example.com", "/api/v1/"));
    CHECK_INT(5, match(deployment, "b.example.com", "/"));
    CHECK_INT(1, match(deployment, "b.example.com", "/x"));
    cn_deployment_unref(deployment);
}

TEST(script, case_of_hosts_ports_and_queries_do_not_count)
{
    struct cn_deployment *deployment = routes("Example.COM/a", "[::1]/b", NULL);
    CHECK_INT(0, match(deployment, "EXAMPLE.com:8080", "/a?x=/b"));
    CHECK_INT(-1, match(deployment, "example.com", "/A"));
    CHECK_INT(1, match(deployment, "[::1]:80", "/b"));
    CHECK_INT(1, match(deployment, "[::1]", "/b"));
    CHECK_INT(-1, match(deployment, "example.com.evil.test", "/a"));
    CHECK_INT(-1, match(deployment, "notexample.com", "/a"));
    CHECK_INT(-1, match(deployment, "", ""));
    cn_deployment_unref(deployment);
}

TEST(script, one_without_routes_takes_what_no_route_fits_and_the_first_of_them)
{
    struct cn_deployment *deployment = routes("a.test/*", "", "", NULL);
    CHECK_INT(0, match(deployment, "a.test", "/"));
    CHECK_INT(1, match(deployment, "b.test", "/"));
    cn_deployment_unref(deployment);
    deployment = routes("a.test", NULL); /* without a path: all of them */
    CHECK_INT(0, match(deployment, "a.test", "/any/where"));
    CHECK_INT(-1, match(deployment, "b.test", "/"));
    cn_deployment_unref(deployment);
    deployment = cn_deployment_new();
    CHECK_INT(-1, match(deployment, "a.test", "/"));
    cn_deployment_unref(deployment);
}

TEST(script, reaches_the_namespaces_it_was_granted_and_no_others)
{
    struct cn_script *script = cn_script_new();
    CHECK(!cn_script_is_granted(script, 0));
    cn_script_grant(script, 7);
    cn_script_grant(script, 9);
    CHECK(cn_script_is_granted(script, 7) && cn_script_is_granted(script, 9));
    CHECK(!cn_script_is_granted(script, 8) && !cn_script_is_granted(script, 0));
    CHECK_INT(0, cn_script_add_namespace(script, NULL));
    CHECK_INT(1, cn_script_add_namespace(script, NULL));
    cn_script_unref(script);
}

TEST(script, a_stack_without_a_map_is_shown_as_it_is)
{
    struct cn_script *script = cn_script_new();
    struct cn_buf out = {0};
    script->url = cn_strdup("w.js");
    script->map_path = cn_strdup("/nowhere/w.js.map");
    for (int i = 0; i < 2; i++) { /* the second does not try again */
        cn_buf_clear(&out);
        cn_script_explain(script, "Error at w.js:1:2", 17, true, &out);
        CHECK_STR("Error at w.js:1:2", cn_buf_text(&out));
        CHECK(script->map_tried);
    }
    cn_buf_fini(&out);
    cn_script_unref(script);
}

TEST(script, lives_as_long_as_any_deployment_that_has_it)
{
    struct cn_script *script = cn_script_new();
    script->name = cn_strdup("shared");
    cn_script_add_file(script, "a.wasm", cn_memdup("abc", 3), 3);
    struct cn_deployment *first = cn_deployment_new(), *second = cn_deployment_new();
    cn_deployment_add(first, cn_script_ref(script));
    cn_deployment_add(second, script);
    cn_deployment_unref(cn_deployment_ref(first));
    cn_deployment_unref(first);
    CHECK_STR("shared", second->scripts[0]->name);
    CHECK_INT(1, atomic_load(&second->scripts[0]->refs));
    cn_deployment_unref(second);
}
