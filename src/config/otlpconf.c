/* SPDX-License-Identifier: Apache-2.0 */
#include "config/otlpconf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/otlp.h"
#include "base/diag.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confnode.h"
#include "text/percent.h"

#define INTERVAL_S_DEFAULT 15
#define TIMEOUT_MS_DEFAULT 10000

static const char *variable(const char *own, const char *standard)
{
    const char *value = getenv(own);
    if ((!value || !*value) && standard)
        value = getenv(standard);
    return value && *value ? value : NULL;
}

/* --- names and values ------------------------------------------------------------------------ */

static void pairs_fini(struct cn_otlpconf_pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        cn_free(pairs->items[i].name);
        cn_free(pairs->items[i].value);
    }
    pairs->count = 0;
}

/* Takes the texts over; a name that is there already gets the new value. */
static int pairs_set(struct cn_otlpconf_pairs *pairs, char *name, char *value, struct cn_err *err)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->items[i].name, name) != 0)
            continue;
        cn_free(name);
        cn_free(pairs->items[i].value);
        pairs->items[i].value = value;
        return 0;
    }
    if (pairs->count == CN_OTLPCONF_PAIRS_MAX) {
        cn_free(name);
        cn_free(value);
        return cn_err_set(err, CN_ELIMIT, "OTLP: more than %d headers or attributes",
                          CN_OTLPCONF_PAIRS_MAX);
    }
    pairs->items[pairs->count++] = (struct cn_otlp_pair){name, value};
    return 0;
}

/* Text from `from` to `end` without spaces around it, %-sequences decoded. */
static char *decode(const char *from, const char *end)
{
    while (from < end && *from == ' ')
        from++;
    while (end > from && end[-1] == ' ')
        end--;
    char *out = cn_alloc((size_t)(end - from) + 1);
    out[cn_percent_decode(from, (size_t)(end - from), 0, out)] = 0;
    return out;
}

/* "a=b,c=d" */
static int pairs_parse(struct cn_otlpconf_pairs *pairs, const char *text, const char *what,
                       struct cn_err *err)
{
    while (text && *text) {
        const char *comma = strchr(text, ','), *equals = strchr(text, '=');
        const char *end = comma ? comma : text + strlen(text);
        if (!equals || equals >= end || equals == text)
            return cn_err_set(err, CN_EINVALID, "%s must be name=value,name=value, not \"%.80s\"",
                              what, text);
        char *name = decode(text, equals), *value = decode(equals + 1, end);
        if (!*name) {
            cn_free(name);
            cn_free(value);
            return cn_err_set(err, CN_EINVALID, "%s: a name is empty in \"%.80s\"", what, text);
        }
        int rc = pairs_set(pairs, name, value, err);
        if (rc < 0)
            return rc;
        text = comma ? comma + 1 : NULL;
    }
    return 0;
}

static int pairs_from_table(struct cn_otlpconf_pairs *pairs, const struct cn_confnode *table,
                            struct cn_err *err)
{
    if (table && table->kind != CN_CONF_TABLE)
        return cn_err_set(err, CN_EINVALID, "[cairn.otlp] headers must be a table of strings");
    for (size_t i = 0; table && i < table->count; i++) {
        const struct cn_confnode *value = table->items[i];
        if (value->kind != CN_CONF_STRING)
            return cn_err_set(err, CN_EINVALID, "[cairn.otlp] header %s must be a string",
                              value->key);
        int rc = pairs_set(pairs, cn_strdup(value->key), cn_strdup(value->text), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* --- settings -------------------------------------------------------------------------------- */

static int choose_signals(const struct cn_config *config, struct cn_otlp_options *options,
                          struct cn_err *err)
{
    const struct cn_strings *list = &config->server.otlp.signals;
    const char *text = variable("CAIRN_OTLP_SIGNALS", NULL);
    struct cn_buf joined = {0};
    for (size_t i = 0; !text && i < list->count; i++)
        cn_buf_printf(&joined, "%s%s", i ? "," : "", list->items[i]);
    if (!text && joined.size)
        text = cn_buf_text(&joined);
    int rc = 0;
    for (size_t i = 0; i < CN_OTLP_SIGNALS; i++)
        options->signals[i] = !text;
    while (text && *text && rc == 0) {
        size_t size = strcspn(text, ","), found = CN_OTLP_SIGNALS;
        for (size_t i = 0; i < CN_OTLP_SIGNALS; i++) {
            if (strlen(cn_otlp_signal_names[i]) == size &&
                memcmp(text, cn_otlp_signal_names[i], size) == 0)
                found = i;
        }
        if (found == CN_OTLP_SIGNALS)
            rc = cn_err_set(err, CN_EINVALID,
                            "OTLP signals are traces, logs and metrics, not \"%.*s\"", (int)size,
                            text);
        else
            options->signals[found] = true;
        text += text[size] ? size + 1 : size;
    }
    cn_buf_fini(&joined);
    return rc;
}

static int read_number(const char *name, const char *text, long min, long max, unsigned *out,
                       struct cn_err *err)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < min || value > max)
        return cn_err_set(err, CN_EINVALID, "%s must be a number from %ld to %ld, not \"%.40s\"",
                          name, min, max, text);
    *out = (unsigned)value;
    return 0;
}

static int choose_times(const struct cn_config *config, struct cn_otlp_options *options,
                        struct cn_err *err)
{
    unsigned seconds = INTERVAL_S_DEFAULT;
    if (config->server.otlp.interval)
        seconds = (unsigned)config->server.otlp.interval;
    const char *text = variable("CAIRN_OTLP_INTERVAL", NULL);
    if (text && read_number("CAIRN_OTLP_INTERVAL", text, 1, 86400, &seconds, err) < 0)
        return err->code;
    options->interval_ms = seconds * 1000;
    options->timeout_ms = TIMEOUT_MS_DEFAULT;
    if (config->server.otlp.timeout)
        options->timeout_ms = (unsigned)config->server.otlp.timeout * 1000;
    if ((text = variable("OTEL_EXPORTER_OTLP_TIMEOUT", NULL)) &&
        read_number("OTEL_EXPORTER_OTLP_TIMEOUT", text, 1, 3600000, &options->timeout_ms, err) < 0)
        return err->code;
    if ((text = variable("CAIRN_OTLP_TIMEOUT", NULL))) {
        if (read_number("CAIRN_OTLP_TIMEOUT", text, 1, 3600, &seconds, err) < 0)
            return err->code;
        options->timeout_ms = seconds * 1000;
    }
    return 0;
}

static int choose_resource(struct cn_otlpconf_pairs *resource, struct cn_err *err)
{
    char host[256] = "", pid[16];
    (void)gethostname(host, sizeof(host) - 1); /* then it is not named */
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    int rc = pairs_set(resource, cn_strdup("service.name"), cn_strdup("cairn"), err);
    if (rc == 0)
        rc = pairs_set(resource, cn_strdup("service.version"), cn_strdup(CN_VERSION), err);
    if (rc == 0)
        rc = pairs_set(resource, cn_strdup("service.instance.id"), cn_sprintf("%s:%s", host, pid),
                       err);
    if (rc == 0)
        rc = pairs_set(resource, cn_strdup("host.name"), cn_strdup(host), err);
    if (rc == 0)
        rc = pairs_set(resource, cn_strdup("process.pid"), cn_strdup(pid), err);
    if (rc == 0)
        rc = pairs_parse(resource, variable("OTEL_RESOURCE_ATTRIBUTES", NULL),
                         "OTEL_RESOURCE_ATTRIBUTES", err);
    const char *name = variable("OTEL_SERVICE_NAME", NULL);
    if (rc == 0 && name)
        rc = pairs_set(resource, cn_strdup("service.name"), cn_strdup(name), err);
    return rc;
}

static int choose_headers(const struct cn_config *config, struct cn_otlpconf_pairs *headers,
                          struct cn_err *err)
{
    const char *text = variable("CAIRN_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS");
    return text ? pairs_parse(headers, text, "the variable for headers of OTLP", err)
                : pairs_from_table(headers, config->server.otlp.headers, err);
}

int cn_otlpconf_choose(struct cn_otlpconf *conf, const struct cn_config *config, struct cn_err *err)
{
    const char *endpoint = variable("CAIRN_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
    const char *disabled = getenv("OTEL_SDK_DISABLED");
    struct cn_otlp_options *options = &conf->options;
    *conf = (struct cn_otlpconf){0};
    if (!endpoint)
        endpoint = config->server.otlp.endpoint;
    if (!endpoint || (disabled && strcmp(disabled, "true") == 0))
        return 0;
    if (strncmp(endpoint, "http://", 7) != 0 && strncmp(endpoint, "https://", 8) != 0)
        return cn_err_set(err, CN_EINVALID,
                          "the endpoint of OTLP must begin with http:// or https://, not \"%.80s\"",
                          endpoint);
    const char *protocol = getenv("OTEL_EXPORTER_OTLP_PROTOCOL");
    if (protocol && *protocol && strcmp(protocol, "http/json") != 0)
        cn_warn("OTEL_EXPORTER_OTLP_PROTOCOL is %s; cairn speaks http/json", protocol);
    options->endpoint = endpoint;
    int rc = choose_signals(config, options, err);
    if (rc == 0)
        rc = choose_times(config, options, err);
    if (rc == 0)
        rc = choose_headers(config, &conf->headers, err);
    if (rc == 0)
        rc = choose_resource(&conf->resource, err);
    options->headers = conf->headers.items;
    options->header_count = conf->headers.count;
    options->resource = conf->resource.items;
    options->resource_count = conf->resource.count;
    return rc;
}

void cn_otlpconf_fini(struct cn_otlpconf *conf)
{
    pairs_fini(&conf->headers);
    pairs_fini(&conf->resource);
    conf->options = (struct cn_otlp_options){0};
}

int cn_otlpconf_start(const struct cn_config *config, struct cn_trust *trust, struct cn_otlp **otlp,
                      struct cn_err *err)
{
    struct cn_otlpconf conf;
    *otlp = NULL;
    int rc = cn_otlpconf_choose(&conf, config, err);
    conf.options.trust = trust;
    if (rc == 0 && conf.options.endpoint)
        rc = cn_otlp_start(&conf.options, otlp, err);
    cn_otlpconf_fini(&conf);
    return rc;
}
