/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_serve.c - `cairn serve` and `cairn dev`: settings from flags,
 * variables and [cairn], then cn_serve(). What dev adds is in watch.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/config.h"
#include "cli/data.h"
#include "cli/deploy.h"
#include "cli/serve.h"
#include "cli/watch.h"
#include "net/tls.h"
#include "net/trust.h"

#define LANES_MAX 256

struct settings {
    char *host; /* owned */
    uint16_t port;
    unsigned lane_count;
    struct cn_http_limits limits;
    size_t heap_bytes_max; /* 0: the default */
    struct cn_tls_context *tls;
    struct cn_trust *trust;
    struct cn_data data; /* Durable Objects; not opened if no project has any */
};

/* 0 to 65535, or -1. */
static long parse_port(const char *text)
{
    char *end;
    long port = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    return port >= 0 && port <= 65535 && *end == 0 ? port : -1;
}

/* "HOST:PORT", "[V6]:PORT", ":PORT". */
static int parse_listen(const char *text, struct settings *settings, struct cn_err *err)
{
    const char *colon = strrchr(text, ':');
    long port = colon ? parse_port(colon + 1) : -1;
    size_t host_size = colon ? (size_t)(colon - text) : 0;
    if (port < 0 || (host_size && text[0] == '[' && text[host_size - 1] != ']'))
        return cn_err_set(err, CN_EINVALID, "\"%.100s\" is not an address HOST:PORT", text);
    cn_free(settings->host);
    if (host_size == 0)
        settings->host = cn_strdup("0.0.0.0");
    else if (text[0] == '[')
        settings->host = cn_strndup(text + 1, host_size - 2);
    else
        settings->host = cn_strndup(text, host_size);
    settings->port = (uint16_t)port;
    return 0;
}

static int choose_listen(const struct cn_args *args, const struct cn_config *config,
                         bool development, struct settings *settings, struct cn_err *err)
{
    if (args->listen)
        return parse_listen(args->listen, settings, err);
    if (config->server.listen && !args->ip && !args->port)
        return parse_listen(config->server.listen, settings, err);
    const struct cn_config_dev *dev = &config->dev;
    const char *ip = args->ip ? args->ip : development && dev->ip ? dev->ip : "127.0.0.1";
    long port = args->port                     ? parse_port(args->port)
                : development && dev->port_set ? (long)dev->port
                                               : 8787;
    if (port < 0)
        return cn_err_set(err, CN_EINVALID,
                          "--port must be a number from 0 to 65535, not \"%.40s\"", args->port);
    settings->host = cn_strdup(ip);
    settings->port = (uint16_t)port;
    return 0;
}

static int choose_lanes(const struct cn_args *args, const struct cn_config *config,
                        bool development, struct settings *settings, struct cn_err *err)
{
    char *end = NULL;
    long count = args->lanes ? strtol(args->lanes, &end, 10) : config->server.lanes;
    if (args->lanes && (*end || count < 1 || count > LANES_MAX))
        return cn_err_set(err, CN_EINVALID, "--lanes must be a number from 1 to %d, not \"%.40s\"",
                          LANES_MAX, args->lanes);
    if (count == 0 && !development)
        count = sysconf(_SC_NPROCESSORS_ONLN);
    settings->lane_count = count < 1 ? 1 : count > LANES_MAX ? LANES_MAX : (unsigned)count;
    return 0;
}

static int choose_tls(const struct cn_args *args, const struct cn_config *config,
                      struct settings *settings, struct cn_err *err)
{
    const char *cert = args->tls_cert, *key = args->tls_key;
    if (!cert != !key)
        return cn_err_set(err, CN_EINVALID, "--tls-cert and --tls-key belong together");
    if (cert)
        return cn_tls_context_new(cert, key, &settings->tls, err);
    if (!config->server.tls.cert)
        return 0;
    /* Paths in the file count from the project. */
    cert = config->server.tls.cert;
    key = config->server.tls.key;
    char *cert_path = *cert == '/' ? cn_strdup(cert) : cn_sprintf("%s/%s", config->dir, cert);
    char *key_path = *key == '/' ? cn_strdup(key) : cn_sprintf("%s/%s", config->dir, key);
    int rc = cn_tls_context_new(cert_path, key_path, &settings->tls, err);
    cn_free(cert_path);
    cn_free(key_path);
    return rc;
}

static void choose_limits(const struct cn_config *config, struct settings *settings)
{
    struct cn_http_limits *limits = &settings->limits;
    *limits = cn_http_limits_default;
    if (config->server.limits.url_bytes)
        limits->target_size_max = (size_t)config->server.limits.url_bytes;
    if (config->server.limits.header_bytes)
        limits->head_size_max = (size_t)config->server.limits.header_bytes;
    if (config->server.limits.body_bytes)
        limits->body_size_max = (uint64_t)config->server.limits.body_bytes;
    if (config->server.limits.header_timeout_ms)
        limits->head_timeout_ms = (unsigned)config->server.limits.header_timeout_ms;
    if (config->server.limits.idle_timeout_ms)
        limits->idle_timeout_ms = (unsigned)config->server.limits.idle_timeout_ms;
    if (config->server.limits.connections)
        limits->connection_count_max = (unsigned)config->server.limits.connections;
    settings->heap_bytes_max = (size_t)config->server.limits.heap_bytes;
}

static int choose(const struct cn_args *args, const struct cn_config *config, bool development,
                  struct settings *settings, struct cn_err *err)
{
    int rc = cn_project_setup_log(args->log ? args->log : config->server.log, err);
    if (rc == 0)
        rc = choose_listen(args, config, development, settings, err);
    if (rc == 0)
        rc = choose_lanes(args, config, development, settings, err);
    if (rc == 0)
        rc = choose_tls(args, config, settings, err);
    if (rc < 0)
        return rc;
    choose_limits(config, settings);
    settings->trust = cn_trust_new(NULL, err);
    return settings->trust ? 0 : err->code;
}

static int serve(const struct cn_args *args, bool development, struct cn_deployer *deployer,
                 struct settings *settings, struct cn_err *err)
{
    int rc = cn_project_setup_log(args->log, err);
    if (rc == 0)
        rc = cn_deployer_init(deployer, args, development, err);
    if (rc == 0)
        rc = cn_deployer_open(deployer, err);
    if (rc == 0)
        rc = choose(args, deployer->projects[0].config, development, settings, err);
    if (rc < 0)
        return rc;
    if (cn_deployer_wants_node(deployer)) {
        struct cn_data_options data = {
            .lane_count = settings->lane_count,
            .object_idle_ms = (unsigned)deployer->projects[0].config->server.limits.object_idle_ms,
        };
        rc = cn_data_open(&settings->data, deployer->projects[0].data, &data, err);
        if (rc < 0)
            return rc;
        deployer->node = settings->data.node;
        deployer->disk = settings->data.disk;
    }
    struct cn_watch watch;
    cn_watch_init(&watch, deployer);
    struct cn_serve_options options = {
        .host = settings->host,
        .port = settings->port,
        .lane_count = settings->lane_count,
        .limits = settings->limits,
        .heap_bytes_max = settings->heap_bytes_max,
        .tls = settings->tls,
        .trust = settings->trust,
        .node = settings->data.node,
        .show_errors = development,
        .load = cn_watch_load,
        .on_start = development ? cn_watch_start : NULL,
        .on_stop = cn_watch_stop,
        .data = &watch,
    };
    return cn_serve(&options, err);
}

static int run(const struct cn_args *args, bool development)
{
    struct cn_err err = {0};
    struct cn_deployer deployer = {0};
    struct settings settings = {0};
    int rc = serve(args, development, &deployer, &settings, &err);
    if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    cn_data_close(&settings.data);
    cn_deployer_fini(&deployer);
    cn_tls_context_unref(settings.tls);
    cn_trust_free(settings.trust);
    cn_free(settings.host);
    return rc < 0 ? 1 : 0;
}

int cn_cmd_serve(const struct cn_args *args)
{
    return run(args, false);
}

int cn_cmd_dev(const struct cn_args *args)
{
    return run(args, true);
}
