/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_serve.c - `cairn serve` and `cairn dev`: server/run.h with what was said. */
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/buf.h"
#include "base/diag.h"
#include "bindings/all.h"
#include "cli/args.h"
#include "config/frame.h"
#include "server/run.h"

/* Somebody has to decide: a service manager does not start it again (RestartPreventExitStatus). It
 * is CN_EOLDER if the engine knows less than this node, or is this node's disk that was displaced
 * by a later life of it: two such processes would end each other, in turn, for ever. */
enum { EXIT_DECIDE = 4 };

/* `cairn dev` on a terminal: a configuration with a mistake is mended in an editor, so the start
 * waits until something in a project's folder has changed. False: nothing can be waited for. */
static bool wait_for_change(const struct cn_args *args)
{
    char events[4096];
    int fd = inotify_init1(IN_CLOEXEC);
    bool watched = false;
    const char *here = ".";
    const char *const *paths = args->rest_count ? (const char *const *)args->rest : &here;
    for (size_t i = 0; fd >= 0 && i < (args->rest_count ? args->rest_count : 1); i++) {
        const char *slash = strrchr(paths[i], '/');
        struct stat info;
        bool folder = stat(paths[i], &info) == 0 && S_ISDIR(info.st_mode);
        char *dir = folder  ? cn_strdup(paths[i])
                    : slash ? cn_strndup(paths[i], (size_t)(slash - paths[i]) + 1)
                            : cn_strdup(".");
        watched |=
            inotify_add_watch(fd, dir, IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR) >= 0;
        cn_free(dir);
    }
    if (watched)
        fprintf(stderr, "cairn: waiting for a change (Ctrl-C ends it)\n");
    bool changed = watched && read(fd, events, sizeof(events)) > 0;
    if (fd >= 0)
        close(fd);
    return changed;
}

static int run(const struct cn_args *args, bool development)
{
    struct cn_run_options options = *(const struct cn_run_options *)args->options;
    struct cn_err err = {0};
    if (options.remote) {
        fprintf(stderr, "cairn: --remote: workers run on this machine and on no other; `cairn "
                        "deploy --server URL` takes the project to a server\n");
        return 2;
    }
    options.guest = &cn_javascript;
    options.deploy.paths = args->rest;
    options.deploy.path_count = args->rest_count;
    options.deploy.development = development;
    options.deploy.empty = !development && options.deploy.project.data;
    bool unread = false;
    options.unread = &unread;
    if (cn_run(&options, &err) == 0)
        return 0;
    if (cn_diag_format() == CN_DIAG_JSON) {
        cn_error("%s", err.text);
        return err.code == CN_EOLDER ? EXIT_DECIDE : 1;
    }
    struct cn_buf frame = {0};
    cn_config_frame(err.text, &frame);
    fprintf(stderr, "cairn: %s\n%s", err.text, cn_buf_text(&frame));
    cn_buf_fini(&frame);
    if (development && unread && err.code == CN_EINVALID && isatty(STDIN_FILENO) &&
        wait_for_change(args))
        return run(args, development);
    return err.code == CN_EOLDER ? EXIT_DECIDE : 1;
}

static int run_serve(const struct cn_args *args)
{
    return run(args, false);
}

static int run_dev(const struct cn_args *args)
{
    return run(args, true);
}

#define AT(member) offsetof(struct cn_run_options, member)

/* Those of dev alone, of both, of serve alone. */
#define DEV_ALONE 7
#define SERVE_ALONE 7
static const struct cn_option flags[] = {
    {"local", 0, NULL, NULL, "accepted: workers and data are always this machine's", AT(ignored),
     0},
    {"remote", 0, NULL, NULL, "refused, with the reason", AT(remote), 0},
    {"persist-to", 0, "DIR", NULL, "the same as --data", AT(deploy.project.data), 0},
    {"inspector-port", 0, "PORT", NULL,
     "Chrome DevTools on 127.0.0.1:PORT: console, exceptions, sources (0: any free one)",
     AT(inspector_port), 0},
    {"test-scheduled", 0, NULL, NULL, "accepted: /__scheduled?cron=... always runs scheduled()",
     AT(ignored), 0},
    {"ip", 0, "HOST", NULL, "host to listen on", AT(ip), 0},
    {"port", 0, "PORT", NULL, "port to listen on", AT(port), 0},
    {"listen", 'l', "HOST:PORT", "CAIRN_LISTEN",
     "address to listen on (127.0.0.1:8787; port 0: any free one)", AT(listen), 0},
    CN_OPTION_DATA(AT(deploy.project.data)),
    {"lanes", 0, "N", "CAIRN_LANES", "threads that run workers (one per core; dev: 1)", AT(lanes),
     0},
    CN_OPTION_ENV(AT(deploy.project.env)),
    CN_OPTION_VAR(AT(deploy.project.vars), AT(deploy.project.var_count)),
    {"tls-cert", 0, "FILE", "CAIRN_TLS_CERT", "certificate chain (PEM): serves https", AT(tls_cert),
     0},
    {"tls-key", 0, "FILE", "CAIRN_TLS_KEY", "its private key (PEM)", AT(tls_key), 0},
    CN_OPTION_LOG(AT(log)),
    CN_OPTION_ALLOW_DELETE(AT(deploy.wishes.allow_delete)),
    CN_OPTION_RECOVER(AT(deploy.wishes.recover)),
    CN_OPTION_ALLOW_MISSING(AT(deploy.project.allow_missing)),
    {"admin", 0, "HOST:PORT", "CAIRN_ADMIN",
     "address of the admin listener, or off (127.0.0.1:8788; dev: any free port)", AT(admin), 0},
    {"admin-token", 0, "TOKEN", "CAIRN_ADMIN_TOKEN",
     "its token; the variable keeps it out of the list of processes", AT(admin_token), 0},
    {"health", 0, "HOST:PORT", "CAIRN_HEALTH",
     "a listener with /healthz and /readyz and nothing else, for a load balancer", AT(health), 0},
    {"domain", 0, "HOST", "CAIRN_DOMAIN",
     "workers that were deployed by upload answer at NAME.HOST (and NAME.localhost)", AT(domain),
     0},
    {"sandbox", 0, NULL, "CAIRN_SANDBOX",
     "give up other files, programs and most of the kernel after start", AT(sandbox), 0},
    {"sandbox-write", 0, "DIR[:DIR]", "CAIRN_SANDBOX_WRITE",
     "folders that it may still write to, for POST /api/backup", AT(sandbox_write), 0},
    {"cluster", 0, "URL", "CAIRN_CLUSTER",
     "be a node of the cluster in this PostgreSQL (postgresql://...): docs/reference/cluster.md",
     AT(cluster), 0},
    {"node", 0, "NAME", "CAIRN_NODE_NAME", "its name, which no other node has", AT(node), 0},
    {"peer", 0, "HOST:PORT", "CAIRN_PEER", "where the other nodes reach it", AT(peer), 0},
    {"allow-async", 0, NULL, "CAIRN_ALLOW_ASYNC",
     "serve on a PostgreSQL that may lose what was acknowledged", AT(allow_async), 0},
};

const struct cn_command cn_cmd_serve = {
    .name = "serve",
    .usage = "[PROJECT...] [OPTIONS]",
    .summary = "serve projects",
    .text =
        "Serves Workers projects (folders, or their wrangler.toml, .json or .jsonc; default: the\n"
        "current folder). Several projects share the server; their routes and [cairn] hosts "
        "decide\n"
        "which one a request is for. SIGHUP reloads, SIGTERM and SIGINT finish what is under "
        "way.\n\n"
        "With --data and no project (none is named, and the current folder holds none) the server\n"
        "starts empty and takes what wrangler deploys to it: `cairn help tokens`.",
    .rest_max = 64,
    .options = flags + DEV_ALONE,
    .option_count = CN_ARRAY_COUNT(flags) - DEV_ALONE,
    .options_size = sizeof(struct cn_run_options),
    .run = run_serve,
};

const struct cn_command cn_cmd_dev = {
    .name = "dev",
    .usage = "[PROJECT...] [OPTIONS]",
    .summary = "serve, and reload when a file changes",
    .text =
        "Serves like `cairn serve`, rebuilds and reloads when a file changes, and answers errors "
        "with\n"
        "a page that shows the stack.",
    .rest_max = 64,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags) - SERVE_ALONE,
    .options_size = sizeof(struct cn_run_options),
    .run = run_dev,
};
