/* SPDX-License-Identifier: Apache-2.0 */
/* What is exported to whom: variables before the configuration (O1), names once (O2), and what
 * cannot be understood (O3). */
#include "config/otlpconf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "config/config.h"
#include "config/confnode.h"
#include "test/lib/test.h"

#define HEAD "name = \"w\"\nmain = \"i.js\"\ncompatibility_date = \"2026-01-01\"\n"

static const char *const variables[] = {
    "CAIRN_OTLP_ENDPOINT",        "OTEL_EXPORTER_OTLP_ENDPOINT", "CAIRN_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS", "CAIRN_OTLP_INTERVAL",         "CAIRN_OTLP_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TIMEOUT", "CAIRN_OTLP_SIGNALS",          "OTEL_SERVICE_NAME",
    "OTEL_RESOURCE_ATTRIBUTES",   "OTEL_SDK_DISABLED",           "OTEL_EXPORTER_OTLP_PROTOCOL"};

static struct cn_otlpconf conf;
static struct cn_err err;

/* "NAME=value" pairs, ended by NULL; nothing else is set. */
static int choose(const char *toml, const char *const *given)
{
    struct cn_config *config = NULL;
    struct cn_buf text = {0};
    for (size_t i = 0; i < CN_ARRAY_COUNT(variables); i++)
        unsetenv(variables[i]);
    for (; given && *given; given++) {
        char name[64];
        const char *equals = strchr(*given, '=');
        snprintf(name, sizeof(name), "%.*s", (int)(equals - *given), *given);
        CHECK_INT(0, setenv(name, equals + 1, 1));
    }
    cn_buf_printf(&text, HEAD "%s", toml ? toml : "");
    err = (struct cn_err){0};
    if (cn_config_load_text("/p/w.toml", true, cn_buf_text(&text), text.size, NULL, &config, &err))
        test_fail(__FILE__, __LINE__, "%s", err.text);
    int rc = cn_otlpconf_choose(&conf, config, &err);
    CHECK_INT(rc, err.code);
    if (rc == 0 && conf.options.endpoint) /* it may be the configuration's */
        conf.options.endpoint = strdup(conf.options.endpoint);
    cn_config_free(config);
    cn_buf_fini(&text);
    return rc;
}

static void done(void)
{
    free((char *)conf.options.endpoint);
    cn_otlpconf_fini(&conf);
    CHECK(!conf.headers.count && !conf.resource.count);
}

#define WITH(...)         \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static const char *value(const struct cn_otlp_pair *pairs, size_t count, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(pairs[i].name, name) == 0) {
            CHECK(!found); /* O2 */
            found = pairs[i].value;
        }
    return found;
}

static const char *header(const char *name)
{
    return value(conf.options.headers, conf.options.header_count, name);
}

static const char *attribute(const char *name)
{
    return value(conf.options.resource, conf.options.resource_count, name);
}

TEST(otlpconf, without_an_endpoint_nothing_is_exported)
{
    CHECK_INT(0, choose(NULL, NULL));
    CHECK(!conf.options.endpoint);
    done();
    CHECK_INT(0, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_ENDPOINT=")));
    CHECK(!conf.options.endpoint);
    done();
    /* Switched off, and then nothing else is read. */
    CHECK_INT(0, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=http://c", "OTEL_SDK_DISABLED=true",
                                   "CAIRN_OTLP_TIMEOUT=x")));
    CHECK(!conf.options.endpoint);
    done();
    CHECK_INT(0, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=http://c", "OTEL_SDK_DISABLED=1")));
    CHECK_STR("http://c", conf.options.endpoint);
    done();
    struct cn_otlp *otlp = (struct cn_otlp *)&conf;
    struct cn_config nothing = {0};
    unsetenv("CAIRN_OTLP_ENDPOINT");
    CHECK_INT(0, cn_otlpconf_start(&nothing, NULL, &otlp, &err));
    CHECK(!otlp);
}

/* O1 */
TEST(otlpconf, variables_win_and_cairns_own_first)
{
    static const char table[] = "[cairn.otlp]\nendpoint = \"http://conf\"\ninterval = 5\n"
                                "timeout = 6\nsignals = [\"logs\"]\nheaders = { a = \"conf\" }\n";
    CHECK_INT(0, choose(table, NULL));
    CHECK_STR("http://conf", conf.options.endpoint);
    CHECK_INT(5000, conf.options.interval_ms);
    CHECK_INT(6000, conf.options.timeout_ms);
    CHECK(conf.options.signals[CN_OTLP_LOGS] && !conf.options.signals[CN_OTLP_TRACES]);
    CHECK_STR("conf", header("a"));
    done();
    CHECK_INT(0, choose(table, WITH("OTEL_EXPORTER_OTLP_ENDPOINT=https://std",
                                    "OTEL_EXPORTER_OTLP_HEADERS=a=std",
                                    "OTEL_EXPORTER_OTLP_TIMEOUT=1500", "CAIRN_OTLP_ENDPOINT=")));
    CHECK_STR("https://std", conf.options.endpoint);
    CHECK_INT(1500, conf.options.timeout_ms); /* in milliseconds */
    CHECK_STR("std", header("a"));
    done();
    CHECK_INT(
        0, choose(table,
                  WITH("OTEL_EXPORTER_OTLP_ENDPOINT=https://std", "CAIRN_OTLP_ENDPOINT=http://own",
                       "OTEL_EXPORTER_OTLP_HEADERS=a=std", "CAIRN_OTLP_HEADERS=b=own",
                       "OTEL_EXPORTER_OTLP_TIMEOUT=1500", "CAIRN_OTLP_TIMEOUT=2",
                       "CAIRN_OTLP_INTERVAL=86400", "CAIRN_OTLP_SIGNALS=traces,metrics")));
    CHECK_STR("http://own", conf.options.endpoint);
    CHECK_INT(2000, conf.options.timeout_ms);
    CHECK_INT(86400000, conf.options.interval_ms);
    CHECK(!header("a"));
    CHECK_STR("own", header("b"));
    CHECK(conf.options.signals[CN_OTLP_TRACES] && conf.options.signals[CN_OTLP_METRICS] &&
          !conf.options.signals[CN_OTLP_LOGS]);
    done();
    CHECK_INT(0, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=http://c")));
    CHECK_INT(15000, conf.options.interval_ms);
    CHECK_INT(10000, conf.options.timeout_ms);
    CHECK(conf.options.signals[CN_OTLP_TRACES] && conf.options.signals[CN_OTLP_METRICS] &&
          conf.options.signals[CN_OTLP_LOGS]);
    CHECK_INT(0, conf.options.header_count);
    done();
}

/* O2 */
TEST(otlpconf, names_stand_once_and_values_are_decoded)
{
    CHECK_INT(0, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=http://c",
                                   "CAIRN_OTLP_HEADERS= a = x%20y%2C , b=1=2,a=last,c=,d=%zz,",
                                   "OTEL_RESOURCE_ATTRIBUTES=service.name=attr,x=y")));
    CHECK_STR("last", header("a"));
    CHECK_STR("1=2", header("b"));
    CHECK_STR("", header("c"));
    CHECK_STR("%zz", header("d"));
    CHECK_INT(4, conf.options.header_count);
    CHECK_STR("attr", attribute("service.name"));
    CHECK_STR("y", attribute("x"));
    CHECK_STR(CN_VERSION, attribute("service.version"));
    CHECK(attribute("process.pid") && atol(attribute("process.pid")) == (long)getpid());
    CHECK(strstr(attribute("service.instance.id"), attribute("process.pid")));
    CHECK(attribute("host.name"));
    done();
    CHECK_INT(0, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=http://c", "OTEL_SERVICE_NAME=named",
                                   "OTEL_RESOURCE_ATTRIBUTES=service.name=attr")));
    CHECK_STR("named", attribute("service.name"));
    done();
}

/* O3 */
TEST(otlpconf, what_cannot_be_understood_is_an_error_that_names_it)
{
    static const char *const rows[][2] = {
        {"CAIRN_OTLP_ENDPOINT=collector:4318", "must begin with http"},
        {"CAIRN_OTLP_ENDPOINT=ftp://c", "must begin with http"},
        {"CAIRN_OTLP_INTERVAL=0", "CAIRN_OTLP_INTERVAL"},
        {"CAIRN_OTLP_INTERVAL=86401", "CAIRN_OTLP_INTERVAL"},
        {"CAIRN_OTLP_INTERVAL=5s", "\"5s\""},
        {"CAIRN_OTLP_TIMEOUT=-1", "CAIRN_OTLP_TIMEOUT"},
        {"CAIRN_OTLP_TIMEOUT=99999999999999999999", "CAIRN_OTLP_TIMEOUT"},
        {"OTEL_EXPORTER_OTLP_TIMEOUT=3600001", "OTEL_EXPORTER_OTLP_TIMEOUT"},
        {"CAIRN_OTLP_SIGNALS=traces,spans", "\"spans\""},
        {"CAIRN_OTLP_SIGNALS=,", "OTLP signals are"},
        {"CAIRN_OTLP_SIGNALS=trace", "\"trace\""},
        {"CAIRN_OTLP_HEADERS=a", "name=value"},
        {"CAIRN_OTLP_HEADERS==b", "name=value"},
        {"CAIRN_OTLP_HEADERS= =b", "a name is empty"},
        {"CAIRN_OTLP_HEADERS=a=1,b", "name=value"},
        {"CAIRN_OTLP_HEADERS=a=1,,b=2", "name=value"},
        {"OTEL_RESOURCE_ATTRIBUTES=x", "OTEL_RESOURCE_ATTRIBUTES"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(rows); i++) {
        const char *const with[] = {"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", rows[i][0], NULL};
        CHECK_INT(CN_EINVALID, choose(NULL, with));
        if (!strstr(err.text, rows[i][1]))
            test_fail(__FILE__, __LINE__, "%s: %s", rows[i][0], err.text);
        cn_otlpconf_fini(&conf);
    }
}

TEST(otlpconf, names_have_a_bound)
{
    struct cn_buf text = {0};
    cn_buf_append_str(&text, "CAIRN_OTLP_HEADERS=");
    for (int i = 0; i < CN_OTLPCONF_PAIRS_MAX; i++)
        cn_buf_printf(&text, "h%d=1,", i);
    CHECK_INT(0, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=http://c", cn_buf_text(&text))));
    CHECK_INT(CN_OTLPCONF_PAIRS_MAX, conf.options.header_count);
    done();
    cn_buf_append_str(&text, "h0=again,"); /* no more than before */
    CHECK_INT(0, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=http://c", cn_buf_text(&text))));
    CHECK_STR("again", header("h0"));
    done();
    cn_buf_append_str(&text, "more=1");
    CHECK_INT(CN_ELIMIT, choose(NULL, WITH("CAIRN_OTLP_ENDPOINT=http://c", cn_buf_text(&text))));
    cn_otlpconf_fini(&conf);
    cn_buf_fini(&text);
}
