/* SPDX-License-Identifier: Apache-2.0 */
/* Who is told of a worker's invocations: projects of this server, and nobody in a circle; and how
 * many become spans. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "deploy/deploy_env.h"
#include "project/project.h"
#include "test/lib/test.h"
#include "worker/script.h"

static struct cn_config *parse(const char *name, const char *text)
{
    struct cn_config *config = NULL;
    struct cn_err err = {0};
    char *toml = cn_sprintf("name = \"%s\"\nmain = \"i.js\"\n%s", name, text);
    if (cn_config_load_text("/p/wrangler.toml", true, toml, strlen(toml), NULL, &config, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    cn_free(toml);
    return config;
}

/* Projects named a, b, c...: each line says whom one tells, as "bc". */
static int check(const char *const *told, size_t count, struct cn_err *err)
{
    struct cn_project projects[12] = {0};
    for (size_t i = 0; i < count; i++) {
        char text[1024] = "", name[2] = {(char)('a' + i), 0};
        for (const char *at = told[i]; *at; at++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text),
                     "[[tail_consumers]]\nservice = \"%c\"\n", *at);
        projects[i].config = parse(name, text);
    }
    *err = (struct cn_err){0};
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = cn_deploy_check_tails(projects, count, i, err);
    CHECK_INT(rc, err->code);
    for (size_t i = 0; i < count; i++)
        cn_config_free(projects[i].config);
    return rc;
}

#define CHECK_TAILS(rc, ...)                                \
    CHECK_INT(rc, check((const char *const[]){__VA_ARGS__}, \
                        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), &err))

TEST(deploy_tail, consumers_are_projects_of_this_server)
{
    struct cn_err err;
    CHECK_TAILS(0, "");
    CHECK_TAILS(0, "b", "");
    CHECK_TAILS(0, "bc", "c", ""); /* twice by two ways is no circle */
    CHECK_TAILS(CN_ENOTFOUND, "z");
    CHECK(strstr(err.text, "/p/wrangler.toml:3:") && strstr(err.text, "\"z\""));
    CHECK_TAILS(CN_ENOTFOUND, "", "ac");
    CHECK(strstr(err.text, ":5:")); /* the second entry */
}

TEST(deploy_tail, nobody_is_told_of_what_it_does_by_being_told)
{
    struct cn_err err;
    CHECK_TAILS(CN_EINVALID, "a");
    CHECK(strstr(err.text, "its own invocations"));
    CHECK_TAILS(CN_EINVALID, "b", "a");
    CHECK(strstr(err.text, "never end"));
    CHECK_TAILS(CN_EINVALID, "b", "c", "d", "a");
    CHECK_TAILS(CN_EINVALID, "b", "c", "d", "b"); /* a tells a circle, and is none of it */
    CHECK_TAILS(0, "bcd", "cd", "d", "");
    /* As far as there are projects. */
    CHECK_TAILS(CN_EINVALID, "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "a");
    CHECK_TAILS(0, "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "");
}

TEST(deploy_tail, a_script_knows_its_consumers_by_their_full_names)
{
    struct cn_config *config = parse("w", "[[tail_consumers]]\nservice = \"t\"\n"
                                          "[[tail_consumers]]\nservice = \"t\"\nenvironment = "
                                          "\"staging\"\n");
    struct cn_script *script = cn_script_new();
    cn_deploy_tails(script, config);
    CHECK_INT(2, script->tail_count);
    CHECK_STR("t", script->tails[0]);
    CHECK_STR("t-staging", script->tails[1]);
    cn_script_unref(script);
    cn_config_free(config);
}

static int observe(const char *text, double *rate, struct cn_err *err)
{
    struct cn_config *config = parse("w", text);
    struct cn_script *script = cn_script_new();
    *err = (struct cn_err){0};
    int rc = cn_deploy_observability(script, config, err);
    CHECK_INT(rc, err->code);
    *rate = script->trace_rate;
    cn_script_unref(script);
    cn_config_free(config);
    return rc;
}

TEST(deploy_tail, the_share_of_invocations_that_become_spans)
{
    static const struct {
        const char *text;
        double rate;
    } rows[] = {
        {"", 1},
        {"[observability]\nenabled = true\n", 1},
        {"[observability]\nenabled = false\n", 0},
        {"[observability]\nhead_sampling_rate = 0.25\n", 0.25},
        {"[observability]\nhead_sampling_rate = 0\n", 0},
        {"[observability]\nhead_sampling_rate = 1\n", 1},
        {"[observability]\nenabled = false\nhead_sampling_rate = 0.5\n", 0},
        {"[observability]\nhead_sampling_rate = 0.5\n[observability.traces]\nenabled = true\n",
         0.5},
        {"[observability]\nhead_sampling_rate = 0.5\n[observability.traces]\n"
         "head_sampling_rate = 0.1\n",
         0.1},
        {"[observability]\nenabled = true\n[observability.traces]\nenabled = false\n", 0},
    };
    struct cn_err err;
    double rate;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(0, observe(rows[i].text, &rate, &err));
        if (rate != rows[i].rate)
            test_fail(__FILE__, __LINE__, "%s: %f", rows[i].text, rate);
    }
    static const char *const bad[] = {"[observability]\nhead_sampling_rate = 1.5\n",
                                      "[observability]\nhead_sampling_rate = -1\n",
                                      "[observability]\nhead_sampling_rate = nan\n",
                                      "[observability]\nhead_sampling_rate = \"1\"\n",
                                      "[observability]\nenabled = 1\n",
                                      "[observability]\ntraces = true\n",
                                      "[observability.traces]\nhead_sampling_rate = 2\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(CN_EINVALID, observe(bad[i], &rate, &err));
        CHECK(strstr(err.text, "/p/wrangler.toml:") && strstr(err.text, "observability:"));
    }
}
