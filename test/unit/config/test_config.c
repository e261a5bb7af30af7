/* SPDX-License-Identifier: Apache-2.0 */
/* A wrangler project becomes structs by wrangler's rules, and every key that
 * cannot be honoured is named with its file and line. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/compat.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/files.h"
#include "config/service_config.h"
#include "service/cron/cron.h"
#include "service/d1/config.h"
#include "service/kv/config.h"
#include "service/queue/config.h"
#include "service/r2/config.h"
#include "service/ratelimit/config.h"
#include "service/ratelimit/ratelimit.h"
#include "test/lib/test.h"
#include "test/unit/config/wrangler_keys.h"

#define HEAD "name = \"w\"\nmain = \"i.js\"\ncompatibility_date = \"2026-01-01\"\n"

static struct cn_config *load_env(const char *text, const char *env)
{
    struct cn_err err = {0};
    struct cn_config *config = NULL;
    struct cn_config_options options = {.env = env};
    cn_config_load_text("/p/wrangler.toml", true, text, strlen(text), &options, &config, &err);
    if (!config)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return config;
}

static struct cn_config *load(const char *text)
{
    return load_env(text, NULL);
}

static void check_refused(const char *text, const char *want)
{
    struct cn_err err = {0};
    struct cn_config *config = NULL;
    int rc = cn_config_load_text("wrangler.toml", true, text, strlen(text), NULL, &config, &err);
    if (rc == 0)
        test_fail(__FILE__, __LINE__, "accepted: %s", text);
    CHECK_STR(want, err.text);
}

TEST(config, reads_the_usual_keys)
{
    struct cn_config *config =
        load(HEAD "compatibility_flags = [\"nodejs_compat\"]\n"
                  "route = { pattern = \"a.com/*\", zone_name = \"a.com\" }\n"
                  "[vars]\nA = \"x\"\nB = { c = [1, true] }\n"
                  "[limits]\ncpu_ms = 50\n"
                  "[[rules]]\ntype = \"Text\"\nglobs = [\"**/*.md\"]\n"
                  "fallthrough = true\n"
                  "[define]\nX = \"1\"\n"
                  "[cairn]\nlisten = \"0.0.0.0:80\"\nlanes = 2\n");
    CHECK_STR("w", config->name);
    CHECK_STR("i.js", config->main);
    CHECK_STR("/p", config->dir);
    CHECK_INT(50, config->limits.cpu_ms);
    CHECK_INT(1, config->rules.count);
    CHECK_STR("**/*.md", config->rules.items[0].globs.items[0]);
    CHECK(config->rules.items[0].fallthrough);
    CHECK_INT(1, config->routes.count);
    CHECK_STR("a.com/*", config->routes.items[0].pattern);
    CHECK_STR("route.zone_name", config->hosted);
    CHECK_INT(2, config->vars.count);
    CHECK_STR("x", config->vars.items[0].text);
    CHECK_INT(CN_VAR_JSON, config->vars.items[1].kind);
    CHECK_STR("{\"c\":[1,true]}", config->vars.items[1].text);
    CHECK_STR("1", cn_confnode_find(config->define, "X")->text);
    CHECK_STR("0.0.0.0:80", config->server.listen);
    CHECK_INT(2, config->server.lanes);
    CHECK(config->keep_names);
    CHECK_INT(0, config->warnings.count);
    cn_config_free(config);
}

TEST(config, json_says_the_same_as_toml)
{
    static const char text[] =
        "{ // c\n\"$schema\": \"x\", \"main\": \"a.ts\", \"vars\": {\"N\": 5},}";
    struct cn_err err = {0};
    struct cn_config *config = NULL;
    CHECK_INT(0, cn_config_load_text("/home/My App/wrangler.jsonc", false, text, strlen(text), NULL,
                                     &config, &err));
    CHECK_STR("my-app", config->name);
    CHECK_STR("5", config->vars.items[0].text);
    CHECK_INT(1, config->warnings.count); /* no compatibility_date */
    cn_config_free(config);
}

TEST(config, environment_inherits_as_wrangler_does)
{
    static const char text[] =
        HEAD "minify = true\n[vars]\nA = \"top\"\n[define]\nD = \"1\"\n"
             "[env.prod]\nmain = \"prod.js\"\n[env.prod.vars]\nA = \"prod\"\n"
             "[env.named]\nname = \"other\"\n";
    struct cn_config *config = load_env(text, "prod");
    CHECK_STR("w-prod", config->name);
    CHECK_STR("prod.js", config->main);
    CHECK(config->minify);
    CHECK_STR("prod", config->vars.items[0].text);
    CHECK(!config->define);
    CHECK_INT(1, config->warnings.count);
    CHECK_STR("/p/wrangler.toml:7: \"define\" is not inherited by [env.prod]; repeat it there if "
              "needed",
              config->warnings.items[0]);
    cn_config_free(config);
    config = load_env(text, "named");
    CHECK_STR("other", config->name);
    CHECK_INT(0, config->vars.count);
    cn_config_free(config);
    struct cn_err err = {0};
    CHECK(cn_config_load_text("f.toml", true, text, strlen(text),
                              &(struct cn_config_options){.env = "x"}, &config, &err) < 0);
    CHECK_STR("f.toml: there is no [env.x]; the file has prod, named", err.text);
}

TEST(config, unknown_keys_are_told_all_at_once)
{
    struct cn_config *config =
        load(HEAD "nam = \"w\"\n[limits]\ncpu = 5\n[[kv_namespaces]]\nbinding = \"K\"\nidd = \"\"\n"
                  "[env.x]\nvarz = 1\n");
    CHECK_INT(1, config->warnings.count);
    CHECK_STR("/p/wrangler.toml: unknown keys, passed over: \"nam\" (line 4; did you mean "
              "\"name\"?), \"env.x.varz\" (line 11; did you mean \"vars\"?), \"limits.cpu\" "
              "(line 6), \"kv_namespaces[0].idd\" (line 9; did you mean \"id\"?)",
              config->warnings.items[0]);
    cn_config_free(config);
}

/* Whether a table has a line for the key behind `path`, "a.b[].c" or "a.*.b": the rest of a key
 * that is taken as a whole is known, too. */
static bool is_known(const struct cn_schema *schema, const char *path)
{
    size_t size = strcspn(path, ".[");
    for (size_t i = 0; i < schema->count; i++) {
        const struct cn_schema_field *field = &schema->fields[i];
        if (strlen(field->name) != size || memcmp(field->name, path, size) != 0)
            continue;
        const char *rest = path + size;
        bool list = strncmp(rest, "[]", 2) == 0;
        if (!field->sub || !rest[list ? 2 : 0])
            return true;
        CHECK_INT(field->kind == CN_FIELD_LIST, list);
        rest += list ? 2 : 0;
        if (field->kind == CN_FIELD_MAP) {
            CHECK(strncmp(rest, ".*", 2) == 0);
            rest += 2;
        }
        CHECK(*rest == '.');
        return is_known(field->sub, rest + 1);
    }
    return false;
}

TEST(config, every_key_of_wrangler_is_in_a_table)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(wrangler_keys); i++) {
        bool known = is_known(&cn_config_schema, wrangler_keys[i]);
        for (size_t j = 0; cn_service_table[j] && !known; j++) {
            const struct cn_service_config *service = cn_service_table[j]->config;
            struct cn_schema one = {0, service ? &service->key : NULL, 1};
            known = service && !service->in_cairn && is_known(&one, wrangler_keys[i]);
        }
        if (!known)
            test_fail(__FILE__, __LINE__, "no table knows the key \"%s\"", wrangler_keys[i]);
    }
}

TEST(config, a_key_in_a_table_is_refused_by_its_whole_name)
{
    check_refused(
        HEAD "[triggers]\ncrons = []\nevents = [{ type = \"x\", targets = [] }]\n",
        "wrangler.toml:6:10: \"triggers.events\" is a key of wrangler that cairn does not "
        "run yet (--allow-missing triggers.events starts without it)");
}

TEST(config, every_refusal_names_file_line_and_key)
{
    check_refused(HEAD "[cairn]\nlanez = 5\n",
                  "wrangler.toml:5:9: unknown key \"cairn.lanez\" (did you mean \"lanes\"?)");
    check_refused(HEAD "[cairn.limits]\nurl = 5\n",
                  "wrangler.toml:5:7: unknown key \"cairn.limits.url\"");
    check_refused(HEAD "[env.x.cairn]\n", "wrangler.toml:4:8: \"cairn\" must stand at the top "
                                          "level, not in [env.x]");
    check_refused(HEAD "[[queues.producers]]\nbinding = \"Q\"\n",
                  "wrangler.toml:4:10: \"queues.producers[0]\" needs the key \"queue\"");
    check_refused(HEAD "[browser]\nbinding = \"B\"\n",
                  "wrangler.toml:4:2: \"browser\" is a key of wrangler that cairn does not run yet "
                  "(--allow-missing browser starts without it)");
    check_refused(HEAD "[images]\nbinding = \"I\"\n[browser]\nbinding = \"B\"\n",
                  "wrangler.toml:6:2: \"browser\", \"images\" (line 4) are keys of wrangler that "
                  "cairn does not run yet (--allow-missing browser,images starts without them)");
    check_refused("name = 1\n", "wrangler.toml:1:8: \"name\" must be a string, not an integer");
    check_refused("main = \"x\"\nname = \"Not Good\"\n",
                  "wrangler.toml:2:8: \"name\" is \"Not Good\", but a worker's name has only lower "
                  "case letters, digits, '-' and '_', and does not begin with '-'");
    check_refused("name = \"w\"\n",
                  "wrangler.toml: the key \"main\" is missing: it names the worker's source file, "
                  "unless there are only assets, or [cairn] worker names a class in C");
    check_refused(HEAD "compatibility_flags = [\"nodejs_compta\"]\n",
                  "wrangler.toml:4:24: unknown compatibility flag \"nodejs_compta\" (did you mean "
                  "\"nodejs_compat\"?)");
    check_refused(HEAD "compatibility_flags = [\"url_standard\", \"url_original\"]\n",
                  "wrangler.toml:4:40: compatibility flag \"url_original\" is given twice, or "
                  "together with its opposite");
    check_refused("main = \"x\"\ncompatibility_date = \"2026-13-01\"\n",
                  "wrangler.toml:2:22: compatibility_date is \"2026-13-01\", but must be a date "
                  "YYYY-MM-DD");
    check_refused(HEAD "[[rules]]\ntype = \"Txt\"\nglobs = []\n",
                  "wrangler.toml:5:8: \"rules[0].type\" must be one of \"ESModule\", \"CommonJS\", "
                  "\"CompiledWasm\", \"Text\", \"Data\", \"JSON\", not \"Txt\"");
    check_refused(HEAD "[vars]\nA = 1\n[version_metadata]\nbinding = \"A\"\n",
                  "wrangler.toml:7:11: the name \"A\" is given twice, in \"vars\" and in "
                  "\"version_metadata\"");
    check_refused(HEAD "[limits]\ncpu_ms = 0\n", "wrangler.toml:5:10: \"limits.cpu_ms\" must be "
                                                 "between 1 and 86400000, not 0");
}

TEST(config, hosted_keys_are_named_once)
{
    struct cn_config *config =
        load("account_id = \"x\"\nworkers_dev = true\n" HEAD "[placement]\nmode = \"smart\"\n");
    CHECK_STR("account_id, placement, workers_dev", config->hosted);
    cn_config_free(config);
}

TEST(config, a_flag_without_its_behaviour_is_a_warning)
{
    struct cn_config *config = load(HEAD "compatibility_flags = [\"python_workers\"]\n");
    CHECK_INT(1, config->warnings.count);
    CHECK_STR("/p/wrangler.toml:4: compatibility flag \"python_workers\" is accepted, but cairn "
              "does not have that behaviour",
              config->warnings.items[0]);
    cn_config_free(config);
}

/* No key is passed over in silence (docs/reference/configuration.md). */
TEST(config, https_in_development_says_what_it_needs)
{
    struct cn_config *config = load(HEAD "[dev]\nlocal_protocol = \"https\"\n");
    CHECK_INT(1, config->warnings.count);
    CHECK_STR("/p/wrangler.toml:4: \"dev.local_protocol\": https needs a certificate: --tls-cert "
              "and --tls-key",
              config->warnings.items[0]);
    cn_config_free(config);
    config = load(HEAD "[dev]\nlocal_protocol = \"http\"\n");
    CHECK_INT(0, config->warnings.count);
    cn_config_free(config);
}

TEST(config, var_options_and_secrets_win)
{
    const char *dir = test_dir();
    char path[300];
    struct cn_err err = {0};
    static const char toml[] = HEAD "[vars]\nA = \"a\"\nB = \"b\"\nC = \"c\"\n";
    static const char secrets[] = "# head\nexport B=\"x\\ny\" # tail\nS='q r'\nE=\nP = plain # c\n";
    snprintf(path, sizeof(path), "%s/wrangler.toml", dir);
    CHECK_INT(0, cn_files_write(path, toml, strlen(toml), &err));
    snprintf(path, sizeof(path), "%s/.dev.vars", dir);
    CHECK_INT(0, cn_files_write(path, secrets, strlen(secrets), &err));
    const char *vars[] = {"A=1=2", "N:v", "P=flag"};
    struct cn_config_options options = {.vars = vars, .var_count = 3};
    struct cn_config *config = NULL;
    if (cn_config_load(dir, &options, &config, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    static const char *const want[][2] = {{"A", "1=2"},  {"B", "x\ny"}, {"C", "c"}, {"N", "v"},
                                          {"P", "flag"}, {"S", "q r"},  {"E", ""}};
    CHECK_INT(7, config->vars.count);
    for (size_t i = 0; i < 7; i++) {
        CHECK_STR(want[i][0], config->vars.items[i].name);
        CHECK_STR(want[i][1], config->vars.items[i].text);
    }
    CHECK_INT(CN_VAR_SECRET, config->vars.items[1].kind);
    CHECK_STR(path, config->secrets_path);
    cn_config_free(config);
}

TEST(config, missing_project_is_a_sentence)
{
    struct cn_err err = {0};
    struct cn_config *config = NULL;
    CHECK(cn_config_load("/nonexistent/x", NULL, &config, &err) < 0);
    CHECK_STR("/nonexistent/x: no such project: No such file or directory", err.text);
}

TEST(compat, dates_flags_and_implications)
{
    const char *off[] = {"no_nodejs_compat"}, *on[] = {"nodejs_compat"};
    CHECK(!cn_compat_is_on("nodejs_compat", "2026-08-03", NULL, 0));
    CHECK(cn_compat_is_on("nodejs_compat", "2026-08-04", NULL, 0));
    CHECK(!cn_compat_is_on("nodejs_compat", "2026-08-04", off, 1));
    CHECK(!cn_compat_is_on("nodejs_compat_v2", "2024-09-22", on, 1));
    CHECK(cn_compat_is_on("nodejs_compat_v2", "2024-09-23", on, 1));
    CHECK(!cn_compat_is_on("url_standard", NULL, NULL, 0));
    CHECK(cn_compat_date_valid("2024-02-29"));
    CHECK(!cn_compat_date_valid("2024-2-29"));
}

/* Keys that are not built yet are parsed all the same: when a service comes, only the word
 * UNBUILT goes. */
TEST(config, unbuilt_keys_fill_their_structs)
{
    static const char text[] =
        "[[durable_objects.bindings]]\nname = \"ROOM\"\nclass_name = \"Room\"\n"
        "[[migrations]]\ntag = \"v1\"\nnew_sqlite_classes = [\"Room\", \"Hall\"]\n"
        "renamed_classes = [{from = \"A\", to = \"B\"}]\n"
        "[exports.Room]\ntype = \"durable-object\"\nstorage = \"sqlite\"\n"
        "[assets]\ndirectory = \"public\"\nrun_worker_first = [\"/api/*\"]\n"
        "[[services]]\nbinding = \"S\"\nservice = \"other\"\nentrypoint = \"E\"\n"
        "[[tail_consumers]]\nservice = \"t\"\n";
    struct cn_err err = {0};
    struct cn_confnode *root = cn_toml_parse("f", text, strlen(text), &err);
    CHECK(root);
    struct cn_config config = {0};
    struct cn_schema_reader reader = {.file = "f"};
    for (size_t i = 0; i < root->count; i++) {
        const struct cn_confnode *node = root->items[i];
        int rc = cn_schema_read_field(&reader, cn_schema_find(&cn_config_schema, node->key), node,
                                      node->key, &config, &err);
        if (rc < 0 && rc != CN_EUNSUPPORTED)
            test_fail(__FILE__, __LINE__, "%s", err.text);
    }
    CHECK_STR("Room", config.durable_objects.bindings.items[0].class_name);
    CHECK_STR("Hall", config.migrations.items[0].new_sqlite_classes.items[1]);
    CHECK_STR("B", config.migrations.items[0].renamed_classes.items[0].to);
    CHECK_STR("Room", config.exports.items[0].name);
    CHECK_STR("sqlite", config.exports.items[0].storage);
    CHECK(config.assets_set);
    CHECK_STR("/api/*", config.assets.run_worker_first->items[0]->text);
    CHECK_STR("E", config.services.items[0].entrypoint);
    CHECK_STR("t", config.tail_consumers.items[0].service);
    cn_schema_fini(&cn_config_schema, &config);
    cn_confnode_free(root);
}

TEST(config, keys_of_services_fill_their_structs)
{
    struct cn_config *config = load(
        HEAD
        "[[kv_namespaces]]\nbinding = \"KV\"\nid = \"1\"\npreview_id = \"2\"\n"
        "[[d1_databases]]\nbinding = \"DB\"\ndatabase_name = \"d\"\nmigrations_dir = \"m\"\n"
        "[[r2_buckets]]\nbinding = \"R\"\nbucket_name = \"b\"\n"
        "[[queues.producers]]\nbinding = \"Q\"\nqueue = \"q\"\ndelivery_delay = 5\n"
        "[[queues.consumers]]\nqueue = \"q\"\nmax_retries = 0\ndead_letter_queue = \"dlq\"\n"
        "[triggers]\ncrons = [\"* * * * *\"]\n"
        "[[analytics_engine_datasets]]\nbinding = \"AE\"\n"
        "[[ratelimits]]\nname = \"RL\"\nnamespace_id = \"1\"\nsimple = {limit = 5, period = 10}\n");
    const struct cn_queue_entries *queues = cn_queue_entries(config);
    CHECK_STR("1", cn_kv_entries(config)->items[0].id);
    CHECK_STR("m", cn_d1_entries(config)->items[0].migrations_dir);
    CHECK_STR("b", cn_r2_entries(config)->items[0].bucket_name);
    CHECK_INT(5, queues->producers.items[0].delivery_delay);
    CHECK(queues->consumers.items[0].max_retries_set);
    CHECK(!queues->consumers.items[0].max_batch_size_set);
    CHECK_STR("dlq", queues->consumers.items[0].dead_letter_queue);
    const struct cn_ratelimit_entries *limits = cn_config_entries(config, &cn_service_ratelimit);
    CHECK_INT(10, limits->items[0].simple.period);
    const struct cn_strings *crons = cn_config_entries(config, &cn_service_cron);
    CHECK_STR("* * * * *", crons->items[0]);
    CHECK(strstr(config->hosted, "preview_id"));
    cn_config_free(config);
}

TEST(config, a_key_that_asks_for_nothing_is_no_reason_to_refuse)
{
    struct cn_config *config = load("find_additional_modules = false\nvectorize = []\n"
                                    "unsafe = {bindings = []}\n" HEAD);
    CHECK_STR("w", config->name);
    cn_config_free(config);
}

TEST(config, names_from_folders)
{
    static const char *const cases[][2] = {{"/a/My App/", "my-app"}, {"x", "x"},
                                           {"/", "worker"},          {"--", "worker"},
                                           {"_a.B", "_a-b"},         {"", "worker"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *name = cn_config_name_from(cases[i][0]);
        CHECK_STR(cases[i][1], name);
        cn_free(name);
    }
}
