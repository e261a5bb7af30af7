/* SPDX-License-Identifier: Apache-2.0 */
/* What a script finds of its project's configuration: values as JSON, bindings, options, assets;
 * and what is said of service bindings that lead nowhere. */
#include "deploy/deploy_env.h"

#include <stdio.h>
#include <string.h>

#include "assets/assets.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confnode.h"
#include "project/project.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"
#include "worker/script.h"

#define HEAD "name = \"w\"\nmain = \"i.js\"\ncompatibility_date = \"2026-01-01\"\n"

static struct cn_config *parse_env(const char *path, const char *toml, const char *env)
{
    struct cn_config *config = NULL;
    struct cn_err err = {0};
    struct cn_config_options options = {.env = env};
    if (cn_config_load_text(path, true, toml, strlen(toml), &options, &config, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return config;
}

static struct cn_config *parse(const char *toml)
{
    return parse_env("/p/wrangler.toml", toml, NULL);
}

static struct cn_json *read_json(char *text)
{
    struct cn_err err = {0};
    CHECK(text);
    struct cn_json *json = cn_json_parse(text, strlen(text), &err);
    if (!json)
        test_fail(__FILE__, __LINE__, "%s: %s", err.text, text);
    cn_free(text);
    return json;
}

TEST(deploy_env, values_are_json_whatever_they_hold)
{
    struct cn_project project = {
        .config = parse(HEAD "[vars]\n\"A\\\"\" = \"x\\\"\\\\\\n\\u0000y\"\nB = { c = [1, true] }\n"
                             "[version_metadata]\nbinding = \"V\"\n")};
    cn_buf_append_str(&project.bundle.source, "(function(){})");
    struct cn_json *json = read_json(cn_deploy_env(&project));
    const struct cn_json *a = cn_json_find(json, "A\"");
    CHECK(a && a->size == 6 && memcmp(a->text, "x\"\\\n\0y", 6) == 0);
    CHECK_INT(CN_JSON_OBJECT, cn_json_find(json, "B")->kind);
    const struct cn_json *version = cn_json_find(json, "V");
    CHECK_INT(36, strlen(cn_json_text(version, "id")));
    CHECK_INT(20, strlen(cn_json_text(version, "timestamp")));
    char first[40];
    snprintf(first, sizeof(first), "%s", cn_json_text(version, "id"));
    cn_json_free(json);
    /* A version is its source. */
    json = read_json(cn_deploy_env(&project));
    CHECK_STR(first, cn_json_text(cn_json_find(json, "V"), "id"));
    cn_json_free(json);
    cn_buf_append_str(&project.bundle.source, " ");
    json = read_json(cn_deploy_env(&project));
    CHECK(strcmp(first, cn_json_text(cn_json_find(json, "V"), "id")) != 0);
    cn_json_free(json);
    cn_project_close(&project);
    project.config = parse(HEAD "[version_metadata]\nbinding = \"V\"\n"); /* nothing before it */
    json = read_json(cn_deploy_env(&project));
    CHECK(cn_json_find(json, "V"));
    cn_json_free(json);
    cn_project_close(&project);
    project.config = parse(HEAD);
    char *empty = cn_deploy_env(&project);
    CHECK_STR("{}", empty);
    cn_free(empty);
    cn_project_close(&project);
}

TEST(deploy_env, administration_is_told_of_routes_and_exports)
{
    struct cn_err err;
    struct cn_project project = {
        .config = parse(HEAD "routes = [\"a.com/*\"]\n[cairn]\nhosts = [\"b.com\", \"c.com\"]\n")};
    project.bundle.manifest = cn_jsonc_parse("m", "{\"exports\":[\"default\"]}", 23, &err);
    struct cn_json *json = read_json(cn_deploy_about(&project));
    CHECK_STR("i.js", cn_json_text(json, "main"));
    const struct cn_json *routes = cn_json_find(json, "routes");
    CHECK_STR("a.com/*", routes->first->text);
    CHECK_STR("b.com", routes->first->next->text);
    CHECK_STR("c.com", routes->first->next->next->text);
    CHECK_STR("default", cn_json_find(json, "exports")->first->text);
    CHECK(cn_json_int(json, "deployedAt") > 0);
    cn_json_free(json);
    cn_project_close(&project);
    project.config = parse("name = \"w\"\n[assets]\ndirectory = \"d\"\n");
    json = read_json(cn_deploy_about(&project));
    CHECK_INT(CN_JSON_NULL, cn_json_find(json, "main")->kind);
    CHECK_INT(CN_JSON_NULL, cn_json_find(json, "exports")->kind);
    CHECK(!cn_json_find(json, "routes")->first);
    cn_json_free(json);
    cn_project_close(&project);
}

static struct cn_json *options_of(const char *toml)
{
    struct cn_config *config = parse(toml);
    struct cn_script *script = cn_script_new();
    struct cn_err err = {0};
    script->name = cn_strdup(config->name);
    char *text = cn_deploy_options(config, script, false, NULL, &err);
    if (!text)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    cn_script_unref(script);
    cn_config_free(config);
    return read_json(text);
}

TEST(deploy_env, options_have_flags_bindings_and_limits)
{
    struct cn_json *json = options_of(
        HEAD "compatibility_flags = [\"nodejs_compat\"]\n"
             "[[services]]\nbinding = \"S\"\nservice = \"other\"\nenvironment = \"prod\"\n"
             "entrypoint = \"Named\"\nprops = { a = 1 }\n"
             "[[services]]\nbinding = \"T\"\nservice = \"w\"\nentrypoint = \"default\"\n"
             "[assets]\ndirectory = \"public\"\nbinding = \"ASSETS\"\n"
             "[limits]\nsubrequests = 7\n"
             "[[tail_consumers]]\nservice = \"t\"\n");
    CHECK_STR("2026-01-01", cn_json_text(json, "compatibilityDate"));
    CHECK_STR("w", cn_json_text(json, "worker"));
    CHECK(cn_json_find(cn_json_find(json, "compatibilityFlags"), "nodejs_compat")->boolean);
    CHECK_INT(7, cn_json_int(json, "subrequests"));
    const struct cn_json *first = cn_json_find(json, "bindings")->first;
    CHECK_STR("S", cn_json_text(first, "name"));
    CHECK_STR("other-prod", cn_json_text(first, "worker"));
    CHECK_STR("Named", cn_json_text(first, "entrypoint"));
    CHECK_INT(1, cn_json_int(cn_json_find(first, "props"), "a"));
    CHECK_STR("w", cn_json_text(first->next, "worker"));
    CHECK(!cn_json_find(first->next, "entrypoint") && !cn_json_find(first->next, "props"));
    CHECK_STR("assets", cn_json_text(first->next->next, "type"));
    CHECK(!first->next->next->next);
    cn_json_free(json);
    json = options_of("name = \"w\"\nmain = \"i.js\"\n");
    CHECK_STR("", cn_json_text(json, "compatibilityDate"));
    CHECK(!cn_json_find(cn_json_find(json, "compatibilityFlags"), "nodejs_compat")->boolean);
    CHECK_INT(10000, cn_json_int(json, "subrequests"));
    CHECK(!cn_json_find(json, "bindings")->first);
    cn_json_free(json);
    /* Of assets alone nobody would use a binding. */
    json = options_of("name = \"w\"\n[assets]\ndirectory = \"public\"\nbinding = \"A\"\n");
    CHECK(!cn_json_find(json, "bindings")->first);
    cn_json_free(json);
}

TEST(deploy_env, what_keeps_something_wants_a_data_directory)
{
    static const struct {
        const char *toml;
        bool wants;
    } rows[] = {
        {"", false},
        {"[vars]\nA = \"1\"\n", false},
        {"[[kv_namespaces]]\nbinding = \"K\"\nid = \"k\"\n", true},
        {"[[durable_objects.bindings]]\nname = \"D\"\nclass_name = \"D\"\n"
         "[[migrations]]\ntag = \"1\"\nnew_sqlite_classes = [\"D\"]\n",
         true},
        {"[[migrations]]\ntag = \"1\"\nnew_sqlite_classes = [\"D\"]\n", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *toml = cn_sprintf(HEAD "%s", rows[i].toml);
        struct cn_config *config = parse(toml);
        CHECK_INT(rows[i].wants, cn_deploy_wants_node(config));
        struct cn_script *script = cn_script_new();
        struct cn_err err = {0};
        script->name = cn_strdup("w");
        if (i == 2) { /* and a server without one says so */
            CHECK(!cn_deploy_options(config, script, false, NULL, &err));
            CHECK_INT(CN_EUNSUPPORTED, err.code);
        }
        cn_script_unref(script);
        cn_config_free(config);
        cn_free(toml);
    }
}

TEST(deploy_env, a_service_that_is_not_here_is_named_with_its_place)
{
    static const char text[] = HEAD "[[services]]\nbinding = \"S\"\nservice = \"w\"\n"
                                    "[[services]]\nbinding = \"T\"\nservice = \"none\"\n"
                                    "[env.prod]\n[[env.prod.services]]\nbinding = \"U\"\n"
                                    "service = \"gone\"\n";
    struct cn_err err = {0};
    struct cn_project projects[2] = {{.config = parse(text)}};
    CHECK_INT(0, cn_deploy_check_services(projects, 1, 0, NULL)); /* of a folder: a warning */
    CHECK_INT(1, projects[0].config->warnings.count);
    static char version[] = "v1"; /* of an upload */
    projects[0].version = version;
    CHECK_INT(CN_ENOTFOUND, cn_deploy_check_services(projects, 1, 0, &err));
    CHECK(strstr(err.text, "/p/wrangler.toml:7:") && strstr(err.text, "\"none\" (binding T)"));
    projects[1].config = parse("name = \"none\"\nmain = \"i.js\"\n");
    CHECK_INT(0, cn_deploy_check_services(projects, 2, 0, &err));
    cn_config_free(projects[0].config);
    projects[0].config = parse_env("/p/wrangler.toml", text, "prod"); /* its own list */
    CHECK_INT(CN_ENOTFOUND, cn_deploy_check_services(projects, 2, 0, &err));
    CHECK(strstr(err.text, "/p/wrangler.toml:11:") && strstr(err.text, "\"gone\""));
    char *place = cn_deploy_entry_place(projects[0].config, "services", 99);
    CHECK_STR("/p/wrangler.toml", place); /* as near as it is known */
    cn_free(place);
    cn_config_free(projects[0].config);
    cn_config_free(projects[1].config);
}

TEST(deploy_env, a_folder_of_assets_is_read_as_the_configuration_says)
{
    const char *dir = test_dir();
    struct cn_err err = {0};
    char path[512];
    tree_write(dir, "public/index.html", "top");
    tree_write(dir, "public/404.html", "gone");
    snprintf(path, sizeof(path), "%s/wrangler.toml", dir);
    struct cn_config *config =
        parse_env(path,
                  HEAD "[assets]\ndirectory = \"./public\"\nnot_found_handling = \"404-page\"\n"
                       "html_handling = \"none\"\nrun_worker_first = [\"/api/*\", "
                       "\"!/api/docs\"]\nbinding = \"A\"\n",
                  NULL);
    struct cn_script *script = cn_script_new();
    if (cn_deploy_assets(script, config, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK(script->has_source && script->assets);
    CHECK_INT(2, cn_assets_count(script->assets));
    CHECK(cn_assets_prefer_worker(script->assets, "/api/x", 6));
    CHECK(!cn_assets_prefer_worker(script->assets, "/api/docs", 9));
    cn_script_unref(script);
    cn_config_free(config);
    config = parse_env(path, HEAD "[assets]\ndirectory = \"none\"\n", NULL);
    script = cn_script_new();
    CHECK(cn_deploy_assets(script, config, &err) < 0 && !script->assets);
    cn_script_unref(script);
    cn_config_free(config);
    config = parse(HEAD);
    script = cn_script_new();
    CHECK_INT(0, cn_deploy_assets(script, config, &err));
    CHECK(script->has_source && !script->assets && !cn_deploy_assets_folder(config));
    cn_script_unref(script);
    cn_config_free(config);
}
