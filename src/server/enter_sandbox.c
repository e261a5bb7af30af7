/* SPDX-License-Identifier: Apache-2.0 */
#include "server/enter_sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/sandbox.h"
#include "config/config.h"
#include "deploy/deploy.h"
#include "deploy/deploy_env.h"
#include "project/monitor.h"
#include "server/run.h"
#include "server/systemd.h"

struct paths {
    struct cn_sandbox_path *items; /* owned, with their texts */
    size_t count;
};

/* Takes over `path`; NULL is nothing. */
static void add(struct paths *paths, char *path, bool write, bool optional)
{
    if (!path)
        return;
    paths->items = cn_realloc(paths->items, (paths->count + 1) * sizeof(*paths->items));
    paths->items[paths->count++] = (struct cn_sandbox_path){path, write, optional};
}

static void add_parent(struct paths *paths, const char *file)
{
    const char *slash = strrchr(file, '/');
    add(paths, slash ? cn_strndup(file, (size_t)(slash - file) + 1) : cn_strdup("."), false, true);
}

/* A renewed certificate is a new file, often behind the same link. */
static void add_certificate(struct paths *paths, const char *dir, const char *file)
{
    if (!file)
        return;
    char *path = *file == '/' || !dir ? cn_strdup(file) : cn_sprintf("%s/%s", dir, file);
    char *target = realpath(path, NULL);
    add_parent(paths, path);
    if (target)
        add_parent(paths, target);
    free(target);
    cn_free(path);
}

static int add_project(struct paths *paths, const struct cn_project *project, bool first,
                       struct cn_err *err)
{
    const struct cn_config *config = project->config;
    int rc = cn_project_make_data(project, err);
    if (rc < 0)
        return rc;
    add(paths, cn_strdup(project->data), first, false);
    add(paths, cn_strdup(config->dir), false, false);
    add(paths, cn_strdup(config->home), false, false);
    add(paths, cn_deploy_assets_folder(config), false, true);
    return 0;
}

/* DIR[:DIR...] */
static void add_list(struct paths *paths, const char *list)
{
    while (list && *list) {
        size_t size = strcspn(list, ":");
        if (size)
            add(paths, cn_strndup(list, size), true, false);
        list += size + (list[size] == ':');
    }
}

static int collect(struct paths *paths, const struct cn_deployer *deployer,
                   const struct cn_run_options *options, struct cn_err *err)
{
    const struct cn_config *config = cn_deployer_settings(deployer)->config;
    int rc = 0;
    if (!deployer->project_count)
        rc = add_project(paths, cn_deployer_settings(deployer), true, err);
    for (size_t i = 0; i < deployer->project_count && rc == 0; i++)
        rc = add_project(paths, &deployer->projects[i], i == 0, err);
    /* The folder of the bundler has the libraries that an archive brings, too: some are loaded when they are needed. */
    add_parent(paths, deployer->bundler.program);
    add_certificate(paths, NULL, options->tls_cert);
    add_certificate(paths, NULL, options->tls_key);
    add_certificate(paths, config->home, config->server.tls.cert);
    add_certificate(paths, config->home, config->server.tls.key);
    /* OpenSSL's, for certificate authorities elsewhere. */
    const char *file = getenv("SSL_CERT_FILE"), *dir = getenv("SSL_CERT_DIR");
    add(paths, file ? cn_strdup(file) : NULL, false, true);
    add(paths, dir ? cn_strdup(dir) : NULL, false, true);
    add_list(paths, options->sandbox_write);
    for (size_t i = 0; i < config->server.sandbox_write.count; i++)
        add(paths, cn_strdup(config->server.sandbox_write.items[i]), true, false);
    return rc;
}

int cn_enter_sandbox(struct cn_monitor *monitor, struct cn_deployer *deployer,
                     const struct cn_run_options *options, int *control_fd, struct cn_err *err)
{
    struct paths paths = {0};
    struct cn_monitor_builder builder = {cn_deployer_build, cn_deployer_cancel, deployer};
    int rc = cn_sandbox_check(err);
    if (rc == 0)
        rc = collect(&paths, deployer, options, err);
    if (rc == 0)
        rc = cn_monitor_start(monitor, &builder, err);
    if (rc == 0)
        rc = cn_admin_bind(cn_deployer_settings(deployer)->data, control_fd, err);
    if (rc == 0)
        cn_systemd_keep();
    if (rc == 0)
        rc = cn_sandbox_enter(paths.items, paths.count, err);
    if (rc >= 0)
        rc = cn_monitor_watch(monitor, rc, err);
    if (rc == 0)
        deployer->monitor = monitor;
    for (size_t i = 0; i < paths.count; i++)
        cn_free((char *)paths.items[i].path);
    cn_free(paths.items);
    return rc;
}
