/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/deploy.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "assets/assets.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "config/compat.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/service_config.h"
#include "deploy/deploy_env.h"
#include "deploy/hosted.h"
#include "fleet/fleet.h"
#include "module/module.h"
#include "object/node.h"
#include "project/deploy_classes.h"
#include "project/monitor.h"
#include "service/def.h"
#include "v4/depot.h"
#include "worker/script.h"

#define CPU_MS_DEFAULT 30000
#define START_MS_DEFAULT 1000 /* of uploads, as the platform has it */
#define WATCH_DEPTH_MAX 12
#define TICK_NS 12000000 /* more than one of the kernel's clock for files */
#define TICKS_MAX 20

/* Whether the current folder holds no project. */
static bool folder_is_bare(void)
{
    static const char *const names[] = {"wrangler.json", "wrangler.jsonc", "wrangler.toml",
                                        ".wrangler/deploy/config.json"};
    struct stat info;
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        if (stat(names[i], &info) == 0)
            return false;
    }
    return true;
}

int cn_deployer_init(struct cn_deployer *deployer, const struct cn_deploy_options *options,
                     struct cn_err *err)
{
    static const char *const here[] = {"."};
    *deployer = (struct cn_deployer){.options = *options};
    if (!options->path_count && !(options->empty && folder_is_bare())) {
        deployer->options.paths = here;
        deployer->options.path_count = CN_ARRAY_COUNT(here);
    }
    pthread_mutex_init(&deployer->lock, NULL);
    pthread_mutex_init(&deployer->building, NULL);
    int rc = cn_bundler_init(&deployer->bundler, err);
    return rc < 0 ? rc : cn_bundler_init(&deployer->hosted_bundler, err);
}

/* Those from `first` on are closed: the ones before belong to a struct cn_own. */
static void close_projects(struct cn_project *projects, size_t first, size_t count)
{
    for (size_t i = first; i < count; i++)
        cn_project_close(&projects[i]);
    cn_free(projects);
}

static void own_unref(struct cn_own *own)
{
    if (!own || --own->refs)
        return;
    for (size_t i = 0; i < own->count; i++) {
        cn_project_close(&own->projects[i]);
        cn_script_unref(own->scripts[i]);
    }
    cn_free(own->projects);
    cn_free(own->scripts);
    cn_free(own);
}

/* Takes over the first `count` projects, of which the first scripts of the deployment are made. */
static struct cn_own *own_new(const struct cn_project *projects, size_t count,
                              const struct cn_deployment *deployment)
{
    struct cn_own *own = CN_NEW(struct cn_own);
    *own = (struct cn_own){.refs = 1, .count = count};
    own->projects = cn_memdup(projects, count * sizeof(*projects)); /* none are fine */
    own->scripts = cn_alloc_zero((count + 1) * sizeof(*own->scripts));
    for (size_t i = 0; i < count; i++)
        own->scripts[i] = cn_script_ref(deployment->scripts[i]);
    return own;
}

static void clear_stamps(struct cn_deployer *deployer)
{
    for (size_t i = 0; i < deployer->stamp_count; i++)
        cn_free(deployer->stamps[i].path);
    cn_free(deployer->stamps);
    deployer->stamps = NULL;
    deployer->stamp_count = 0;
}

static void clear_trees(struct cn_deployer *deployer)
{
    for (size_t i = 0; i < deployer->tree_count; i++)
        cn_free(deployer->trees[i].folder);
    cn_free(deployer->trees);
    deployer->trees = NULL;
    deployer->tree_count = 0;
}

void cn_deployer_fini(struct cn_deployer *deployer)
{
    close_projects(deployer->projects, deployer->own ? deployer->own->count : 0,
                   deployer->project_count);
    own_unref(deployer->own);
    own_unref(deployer->served);
    clear_stamps(deployer);
    clear_trees(deployer);
    cn_free(deployer->told);
    cn_free(deployer->problem);
    cn_free(deployer->data);
    cn_project_close(&deployer->bare);
    cn_depot_state_unref(deployer->state);
    cn_buf_fini(&deployer->classes);
    cn_bundler_fini(&deployer->bundler);
    cn_bundler_fini(&deployer->hosted_bundler);
    pthread_mutex_destroy(&deployer->building);
    pthread_mutex_destroy(&deployer->lock);
}

/* ---- reading projects -------------------------------------------------------------- */

static int check_names(const struct cn_project *projects, size_t count, struct cn_err *err)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (!projects[i].beside &&
                strcmp(projects[i].config->name, projects[j].config->name) == 0)
                return cn_err_set(err, CN_EEXISTS, "%s and %s are both named \"%s\"",
                                  projects[j].config->path, projects[i].config->path,
                                  projects[i].config->name);
    return 0;
}

/* Says what is new about the configurations, not the same again with every reload. */
static void tell(struct cn_deployer *deployer, const struct cn_project *projects, size_t count)
{
    struct cn_buf lines = {0};
    for (size_t i = 0; i < count; i++)
        cn_project_tell(&projects[i], &lines);
    cn_buf_text(&lines);
    if (!deployer->told || strcmp(deployer->told, (char *)lines.data) != 0)
        cn_project_log(&lines);
    cn_free(deployer->told);
    deployer->told = (char *)cn_buf_take(&lines);
}

static int check_projects(const struct cn_deployer *deployer, const struct cn_hosted *hosted,
                          struct cn_project *projects, size_t count, struct cn_err *err)
{
    int rc = check_names(projects, count, err);
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = cn_deploy_check_services(projects, count, i, err);
        if (rc == 0)
            rc = cn_deploy_check_tails(projects, count, i, err);
        if (rc < 0)
            rc = cn_hosted_tolerate(hosted, &projects[i], err);
    }
    return rc;
}

/* Those of the command line, or `kept` (P2), then those that were uploaded (NULL: none). */
static int open_projects(struct cn_deployer *deployer, const struct cn_hosted *hosted,
                         const struct cn_own *kept, struct cn_project **out, size_t *out_count,
                         struct cn_err *err)
{
    size_t own = deployer->options.path_count;
    size_t count = own + (hosted ? cn_hosted_count(hosted->state) : 0);
    struct cn_project *projects = cn_alloc_zero((count + 1) * sizeof(*projects));
    int rc = 0;
    for (size_t i = 0; kept && i < own; i++) {
        projects[i] = kept->projects[i];
        projects[i].tolerated = false; /* borrowed: nothing is noted in it */
    }
    for (size_t i = 0; !kept && i < own && rc == 0; i++)
        rc = cn_project_open(&projects[i], deployer->options.paths[i], &deployer->options.project,
                             err);
    if (rc == 0 && hosted)
        rc = cn_hosted_open(hosted, deployer->data, projects + own, err);
    if (rc == 0)
        rc = check_projects(deployer, hosted, projects, count, err);
    if (rc < 0) {
        close_projects(projects, kept ? own : 0, count);
        return rc;
    }
    tell(deployer, projects, count);
    *out = projects;
    *out_count = count;
    return 0;
}

/* The server's settings where no project has any. */
static int open_bare(struct cn_deployer *deployer, struct cn_err *err)
{
    static const char text[] = "{\"name\":\"cairn\",\"main\":\"none\"}";
    char *here = realpath(".", NULL);
    char *path = cn_sprintf("%s/wrangler.json", here ? here : "");
    struct cn_project *bare = &deployer->bare;
    int rc = cn_config_load_text(path, false, text, strlen(text), NULL, &bare->config, err);
    if (rc == 0)
        bare->data = cn_project_data(bare->config, deployer->options.project.data);
    cn_free(path);
    free(here);
    return rc;
}

int cn_deployer_open(struct cn_deployer *deployer, struct cn_err *err)
{
    int rc = deployer->options.path_count ? 0 : open_bare(deployer, err);
    if (rc == 0)
        rc =
            open_projects(deployer, NULL, NULL, &deployer->projects, &deployer->project_count, err);
    if (rc == 0)
        deployer->data = cn_strdup(cn_deployer_settings(deployer)->data);
    if (rc == 0)
        deployer->options.wishes.history_ms = cn_project_history_ms(cn_deployer_settings(deployer));
    return rc;
}

const struct cn_project *cn_deployer_settings(const struct cn_deployer *deployer)
{
    return deployer->options.path_count ? &deployer->projects[0] : &deployer->bare;
}

int cn_deployer_build_version(void *data, const struct cn_depot_script *script, const char *version,
                              struct cn_err *err)
{
    struct cn_deployer *deployer = data;
    pthread_mutex_lock(&deployer->building);
    int rc = cn_hosted_build(deployer->depot, script, version, deployer->data,
                             &deployer->hosted_bundler, err);
    pthread_mutex_unlock(&deployer->building);
    return rc;
}

/* ---- scripts ------------------------------------------------------------------------ */

bool cn_deployer_wants_node(const struct cn_deployer *deployer)
{
    if (!deployer->options.path_count)
        return true; /* whatever comes */
    for (size_t i = 0; i < deployer->project_count; i++) {
        if (cn_deploy_wants_node(deployer->projects[i].config))
            return true;
    }
    return false;
}

/* Which requests the project gets. One project alone gets them all, as in wrangler dev. */
static void add_routes(struct cn_script *script, const struct cn_config *config)
{
    for (size_t i = 0; i < config->routes.count; i++)
        cn_script_add_route(script, config->routes.items[i].pattern);
    for (size_t i = 0; i < config->server.hosts.count; i++)
        cn_script_add_route(script, config->server.hosts.items[i]);
}

/* P2: what was made of the project before is made of it again. */
static void copy_bundle(struct cn_script *script, const struct cn_script *before)
{
    script->tolerated = true; /* it served before (F1 of worker/script.h) */
    script->source = before->source ? cn_strdup(before->source) : NULL;
    for (size_t i = 0; i < before->file_count; i++) {
        const struct cn_script_file *file = &before->files[i];
        cn_script_add_file(script, file->name, cn_memdup(file->bytes, file->size), file->size);
    }
}

/* Those of `before` (P2), or as they are now. */
static int use_assets(struct cn_script *script, const struct cn_config *config,
                      const struct cn_script *before, struct cn_err *err)
{
    if (!before)
        return cn_deploy_assets(script, config, err);
    script->has_source = before->has_source;
    script->assets = before->assets ? cn_assets_ref(before->assets) : NULL;
    return 0;
}

static void take_bundle(struct cn_script *script, struct cn_bundle *bundle)
{
    script->source = (char *)cn_buf_take(&bundle->source);
    for (size_t i = 0; i < bundle->file_count; i++) {
        cn_script_add_file(script, bundle->files[i].name, bundle->files[i].bytes,
                           bundle->files[i].size);
        bundle->files[i].bytes = NULL;
    }
}

/* Takes the source and the files out of the project's bundle, or from `before`. */
static struct cn_script *make_script(struct cn_project *project, const struct cn_script *before,
                                     bool alone, bool development, struct cn_node *node,
                                     const struct cn_classes *classes, struct cn_err *err)
{
    const struct cn_config *config = project->config;
    struct cn_bundle *bundle = &project->bundle;
    struct cn_script *script = cn_script_new();
    script->name = cn_strdup(config->name);
    script->version = project->version ? cn_strdup(project->version) : NULL;
    script->share = project->code ? project->share : CN_SHARE_ALL;
    script->beside = project->beside;
    script->url = cn_sprintf("%s.js", config->name);
    script->map_path = bundle->map_path ? cn_strdup(bundle->map_path) : NULL;
    script->env_json = cn_deploy_env(project);
    script->about_json = cn_deploy_about(project);
    if (development)
        script->email_dir = cn_sprintf("%s/email", project->data);
    cn_deploy_tails(script, config);
    if (project->modules)
        script->modules = cn_modules_ref(project->modules);
    if (config->server.worker) /* it is there: cn_project_load_modules() */
        script->front = cn_modules_class(script->modules, config->server.worker, err);
    if (use_assets(script, config, before, err) < 0 ||
        cn_deploy_objects(script, config, node, classes, err) < 0 ||
        cn_deploy_observability(script, config, err) < 0 ||
        !(script->options_json = cn_deploy_options(config, script, development, node, err)) ||
        (script->modules && !cn_modules_are_bound(script->modules) &&
         cn_modules_set_bindings(script->modules, script->options_json, err) < 0)) {
        cn_script_unref(script);
        return NULL;
    }
    script->keeps_stubs =
        cn_compat_is_on("allow_irrevocable_stub_storage", config->compatibility_date,
                        config->compatibility_flags.items, config->compatibility_flags.count);
    script->cpu_limit_ms = config->limits.cpu_ms ? (uint64_t)config->limits.cpu_ms : CPU_MS_DEFAULT;
    script->start_limit_ms = project->start_limit_ms;
    script->tolerated = project->tolerated;
    script->way_back = project->way_back ? cn_strdup(project->way_back) : NULL;
    if (before)
        copy_bundle(script, before);
    else
        take_bundle(script, bundle);
    if (script->beside)
        cn_script_drop_triggers(script);
    else if (!alone)
        add_routes(script, config);
    return script;
}

/* H5: a script that only stands for its worker. */
static struct cn_script *make_broken_script(const struct cn_project *project, bool alone,
                                            struct cn_node *node, const struct cn_classes *classes,
                                            struct cn_err *err)
{
    const struct cn_config *config = project->config;
    struct cn_script *script = cn_script_new();
    script->name = cn_strdup(config->name);
    script->version = project->version ? cn_strdup(project->version) : NULL;
    script->share = project->code ? project->share : CN_SHARE_ALL;
    script->beside = project->beside;
    script->url = cn_sprintf("%s.js", config->name);
    script->about_json = cn_deploy_about(project);
    script->tolerated = true;
    script->broken = cn_strdup(project->broken);
    script->way_back = cn_strdup(project->way_back);
    if (cn_deploy_objects(script, config, node, classes, err) < 0) {
        cn_script_unref(script);
        return NULL;
    }
    if (!script->beside && !alone)
        add_routes(script, config);
    return script;
}

/* ---- what files look like ----------------------------------------------------------- */

static void stat_stamp(const char *path, struct cn_stamp *stamp)
{
    struct stat info;
    stamp->size = -1;
    stamp->mtime_ns = 0;
    if (stat(path, &info) == 0) {
        stamp->size = info.st_size;
        stamp->mtime_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    }
}

static void visit_tree(const char *folder, int depth, void (*visit)(const char *folder, void *data),
                       void *data)
{
    DIR *dir = depth < WATCH_DEPTH_MAX ? opendir(folder) : NULL;
    if (!dir)
        return;
    visit(folder, data);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            strcmp(entry->d_name, "node_modules") == 0)
            continue;
        char *path = cn_sprintf("%s/%s", folder, entry->d_name);
        visit_tree(path, depth + 1, visit, data);
        cn_free(path);
    }
    closedir(dir);
}

/* The names, sizes and times of the files of a folder are added to the sum. */
struct summing {
    uint64_t sum;
    int64_t *newest_ns;
};

static void sum_files(const char *folder, void *data)
{
    struct summing *summing = data;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_type == DT_DIR)
            continue;
        struct cn_stamp stamp;
        char *path = cn_sprintf("%s/%s", folder, entry->d_name);
        stat_stamp(path, &stamp);
        int64_t parts[2] = {stamp.size, stamp.mtime_ns};
        /* A sum: the order of a folder's entries may change. */
        summing->sum += cn_hash_bytes(cn_hash_bytes(1, parts, sizeof(parts)), path, strlen(path));
        if (stamp.mtime_ns > *summing->newest_ns)
            *summing->newest_ns = stamp.mtime_ns;
        cn_free(path);
    }
    if (dir)
        closedir(dir);
}

static uint64_t sum_tree(const struct cn_tree *tree, int64_t *newest_ns)
{
    if (tree->kind == CN_TREE_ASSETS)
        return cn_assets_stamp(tree->folder, newest_ns);
    struct summing summing = {0, newest_ns};
    visit_tree(tree->folder, 0, sum_files, &summing);
    return summing.sum;
}

/* Takes over the folder; NULL: there is none. */
static void add_tree(struct cn_deployer *deployer, enum cn_tree_kind kind, char *folder,
                     int64_t *newest_ns)
{
    if (!folder)
        return;
    deployer->trees =
        cn_realloc(deployer->trees, (deployer->tree_count + 1) * sizeof(*deployer->trees));
    struct cn_tree *tree = &deployer->trees[deployer->tree_count++];
    *tree = (struct cn_tree){.kind = kind, .folder = folder};
    tree->sum = sum_tree(tree, newest_ns);
}

static void add_stamp(struct cn_deployer *deployer, char *path, int64_t *newest_ns)
{
    deployer->stamps =
        cn_realloc(deployer->stamps, (deployer->stamp_count + 1) * sizeof(*deployer->stamps));
    struct cn_stamp *stamp = &deployer->stamps[deployer->stamp_count++];
    stamp->path = path;
    stat_stamp(path, stamp);
    if (stamp->mtime_ns > *newest_ns)
        *newest_ns = stamp->mtime_ns;
}

/* The folder of `main`. Owned. */
static char *source_folder(const struct cn_config *config)
{
    char *folder = *config->main == '/' ? cn_strdup(config->main)
                                        : cn_sprintf("%s/%s", config->dir, config->main);
    char *slash = strrchr(folder, '/');
    *slash = 0;
    return folder;
}

static void add_stamp_once(struct cn_deployer *deployer, char *path, int64_t *newest_ns)
{
    bool known = false;
    for (size_t i = 0; i < deployer->stamp_count && !known; i++)
        known = strcmp(deployer->stamps[i].path, path) == 0;
    if (known)
        cn_free(path);
    else
        add_stamp(deployer, path, newest_ns);
}

/* Configuration, secrets, modules in C, and what decides which packages there are. */
static void stamp_files(struct cn_deployer *deployer, const struct cn_config *config,
                        int64_t *newest_ns)
{
    static const char *const secrets[] = {".dev.vars", ".env", ".env.local"};
    static const char *const packages[] = {"package.json", "node_modules/.package-lock.json"};
    add_stamp_once(deployer, cn_strdup(config->path), newest_ns);
    if (config->note)
        add_stamp_once(deployer, cn_strdup(config->note), newest_ns);
    for (size_t j = 0; j < CN_ARRAY_COUNT(secrets); j++)
        add_stamp_once(deployer, cn_sprintf("%s/%s", config->home, secrets[j]), newest_ns);
    for (size_t j = 0; j < CN_ARRAY_COUNT(packages); j++)
        add_stamp_once(deployer, cn_sprintf("%s/%s", config->dir, packages[j]), newest_ns);
    const struct cn_confnode *modules = config->server.modules;
    for (size_t j = 0; modules && j < modules->count; j++)
        add_stamp_once(deployer, cn_project_module_path(config, modules->items[j]->text),
                       newest_ns);
    if (config->env) {
        add_stamp_once(deployer, cn_sprintf("%s/.dev.vars.%s", config->home, config->env),
                       newest_ns);
        add_stamp_once(deployer, cn_sprintf("%s/.env.%s", config->home, config->env), newest_ns);
    }
}

/* Assets, what the build command reads, and all that a build may stumble over: nobody knows which
 * file that was, or looked for. */
static void stamp_trees(struct cn_deployer *deployer, const struct cn_config *config,
                        int64_t *newest_ns)
{
    static const char *const fallback[] = {"src"};
    add_tree(deployer, CN_TREE_ASSETS, cn_deploy_assets_folder(config), newest_ns);
    if (!config->build.command) {
        add_tree(deployer, CN_TREE_SOURCE, config->main ? source_folder(config) : NULL, newest_ns);
        return;
    }
    const char *const *names = config->build.watch_dir.items;
    size_t count = config->build.watch_dir.count;
    if (count == 0) {
        names = fallback;
        count = CN_ARRAY_COUNT(fallback);
    }
    for (size_t i = 0; i < count; i++)
        add_tree(deployer, CN_TREE_BUILD,
                 names[i][0] == '/' ? cn_strdup(names[i])
                                    : cn_sprintf("%s/%s", config->dir, names[i]),
                 newest_ns);
}

/* What the bundle was made of; a build command writes that. */
static const struct cn_confnode *inputs_of(const struct cn_project *project)
{
    const struct cn_confnode *inputs = project->bundle.manifest && !project->config->build.command
                                           ? cn_confnode_find(project->bundle.manifest, "inputs")
                                           : NULL;
    return inputs && inputs->kind == CN_CONF_ARRAY ? inputs : NULL;
}

static const char *path_of(const struct cn_confnode *input)
{
    const struct cn_confnode *path =
        input->kind == CN_CONF_TABLE ? cn_confnode_find(input, "path") : NULL;
    return path && path->kind == CN_CONF_STRING ? path->text : NULL;
}

static void stamp_inputs(struct cn_deployer *deployer, const struct cn_project *project,
                         int64_t *newest_ns)
{
    const struct cn_confnode *inputs = inputs_of(project);
    for (size_t i = 0; inputs && i < inputs->count; i++) {
        if (path_of(inputs->items[i]))
            add_stamp(deployer, cn_strdup(path_of(inputs->items[i])), newest_ns);
    }
}

static void stamp_projects(struct cn_deployer *deployer, int64_t *newest_ns)
{
    clear_stamps(deployer);
    clear_trees(deployer);
    for (size_t i = 0; i < deployer->project_count; i++) {
        const struct cn_project *project = &deployer->projects[i];
        stamp_files(deployer, project->config, newest_ns);
        stamp_trees(deployer, project->config, newest_ns);
    }
    /* They may be changed before a build that fails. */
    for (size_t i = 0; i < deployer->project_count; i++)
        stamp_inputs(deployer, &deployer->projects[i], newest_ns);
}

/* P4. Before the configurations are read. */
static void take_stamps(struct cn_deployer *deployer)
{
    const struct timespec tick = {0, TICK_NS};
    for (int i = 0; deployer->options.development && i < TICKS_MAX; i++) {
        int64_t newest_ns = 0;
        pthread_mutex_lock(&deployer->lock);
        stamp_projects(deployer, &newest_ns);
        pthread_mutex_unlock(&deployer->lock);
        int64_t age_ns = cn_clock_wall_ms(cn_clock_system()) * 1000000 - newest_ns;
        if (age_ns > TICK_NS || age_ns < -TICK_NS)
            return;
        (void)nanosleep(&tick, NULL); /* one that was interrupted comes again */
    }
}

/* P4. Once the configurations have been read: they may name other files and folders. */
static void add_stamps(struct cn_deployer *deployer, const struct cn_project *projects,
                       size_t count)
{
    int64_t newest_ns = 0;
    if (!deployer->options.development)
        return;
    pthread_mutex_lock(&deployer->lock);
    clear_trees(deployer);
    for (size_t i = 0; i < count; i++) {
        stamp_files(deployer, projects[i].config, &newest_ns);
        stamp_trees(deployer, projects[i].config, &newest_ns);
    }
    pthread_mutex_unlock(&deployer->lock);
}

/* ---- loading ---------------------------------------------------------------------- */

/* A queue has one consumer, as on the platform. */
static int check_consumers(const struct cn_deployment *deployment, struct cn_err *err)
{
    for (size_t i = 0; i < deployment->script_count; i++) {
        const struct cn_script *script = deployment->scripts[i];
        for (size_t k = 0; k < script->consumer_count; k++) {
            for (size_t j = 0; j <= i; j++) {
                const struct cn_script *other = deployment->scripts[j];
                size_t limit = j == i ? k : other->consumer_count;
                for (size_t l = 0; l < limit; l++) {
                    if (other->consumers[l].ns == script->consumers[k].ns)
                        return cn_err_set(
                            err, CN_EEXISTS, "%s has two consumers (%s and %s); a queue has one",
                            script->consumers[k].ns->name + strlen("$"), other->name, script->name);
                }
            }
        }
    }
    return 0;
}

/* Scripts of the server's own that services have. */
static int add_own_scripts(struct cn_deployment *deployment, const struct cn_project *projects,
                           size_t count, struct cn_node *node, struct cn_err *err)
{
    for (size_t i = 0; cn_service_table[i]; i++) {
        const struct cn_service_config *service = cn_service_table[i]->config;
        struct cn_script *script = NULL;
        if (!service || !service->own_script)
            continue;
        int rc = service->own_script(projects, count, node, &script, err);
        if (rc < 0)
            return rc;
        if (script)
            cn_deployment_add(deployment, script);
    }
    return 0;
}

/* Workers that were deleted: "a,b". Owned. */
static char *gone_names(const struct cn_depot_state *state)
{
    struct cn_buf names = {0};
    for (size_t i = 0; state && i < state->gone.count; i++)
        cn_buf_printf(&names, "%s,", state->gone.items[i]);
    cn_buf_text(&names);
    return (char *)cn_buf_take(&names);
}

/* `outside`: what the process outside of the sandbox said, which has built it. */
static int bundle_project(struct cn_deployer *deployer, const struct cn_hosted *hosted,
                          struct cn_project *project, const struct cn_err *outside,
                          struct cn_buf *messages, struct cn_err *err)
{
    int rc = project->code ? cn_hosted_bundle(hosted, project, &deployer->bundler, messages, err)
             : deployer->monitor ? cn_project_take_bundle(project, &deployer->bundler, err)
                                 : cn_project_bundle(project, &deployer->bundler, NULL,
                                                     deployer->options.development, messages, err);
    if (rc < 0 && !project->code && outside->code)
        *err = *outside;
    if (rc == 0)
        rc = cn_project_load_modules(project, err);
    return rc < 0 && rc != -ECANCELED ? cn_hosted_tolerate(hosted, project, err) : rc;
}

/* P3: somebody must be left to serve. */
static int check_any(const struct cn_project *projects, size_t count, struct cn_err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!projects[i].broken || projects[i].code)
            return 0;
    }
    return count ? cn_err_set(err, CN_EINVALID, "%s", projects[0].broken) : 0;
}

/* Bundles every project that is not yet, and loads what it has in C. P2: not the first `kept`. */
static int bundle_projects(struct cn_deployer *deployer, const struct cn_hosted *hosted,
                           struct cn_project *projects, size_t kept, size_t count,
                           struct cn_buf *messages, struct cn_err *err)
{
    struct cn_err outside = {0};
    if (deployer->monitor && kept < deployer->options.path_count &&
        cn_monitor_build(deployer->monitor, &outside) < 0 && !projects[0].tolerated)
        return cn_err_set(err, outside.code, "%s", outside.text);
    int rc = 0;
    for (size_t i = kept; i < count && rc == 0; i++) {
        if (!projects[i].broken)
            rc = bundle_project(deployer, hosted, &projects[i], &outside, messages, err);
    }
    return rc < 0 ? rc : check_any(projects, count, err);
}

/* How many projects are workers of their own; the others, after them, are beside one (H4). */
static size_t first_count(const struct cn_project *projects, size_t count)
{
    while (count > 0 && projects[count - 1].beside)
        count--;
    return count;
}

/* H4: with one that is beside in the place of its worker's newest, the classes are as they are. */
static int check_beside(const struct cn_deploy_input *input, const struct cn_project *beside,
                        const struct cn_classes *classes, struct cn_err *err)
{
    struct cn_project *projects = cn_memdup(input->projects, input->count * sizeof(*projects));
    struct cn_deploy_input other = *input;
    struct cn_plan plan;
    for (size_t i = 0; i < input->count; i++) {
        if (strcmp(projects[i].config->name, beside->config->name) == 0)
            projects[i] = *beside; /* borrowed */
    }
    other.projects = projects;
    cn_deploy_plan(&other, classes, &plan);
    int rc = cn_plan_check(&plan, err);
    if (rc == 0 && plan.changes)
        rc = cn_err_set(err, CN_EINVALID, "the classes of %s differ between its versions",
                        beside->config->name);
    cn_plan_fini(&plan);
    cn_free(projects);
    return rc;
}

static int prepare_classes(struct cn_deployer *deployer, const struct cn_depot_state *state,
                           const struct cn_project *projects, size_t count,
                           struct cn_classes *classes, struct cn_err *err)
{
    size_t own = deployer->options.path_count, firsts = first_count(projects, count);
    struct cn_deploy_wishes wishes = deployer->options.wishes;
    char *allowed = cn_hosted_allowed(projects + own, count - own, wishes.allow_delete);
    char *gone = gone_names(state);
    wishes.allow_delete = *allowed ? allowed : NULL;
    wishes.gone = gone;
    struct cn_deploy_input input = {projects, firsts, &wishes, deployer->disk, deployer->ledger};
    bool tells = !(state && cn_depot_rehearses(deployer->depot)); /* once */
    int rc = cn_deploy_classes(&input, tells, cn_node_shards(deployer->node), classes,
                               &deployer->classes, err);
    for (size_t i = firsts; i < count && rc == 0; i++) {
        if (!projects[i].broken)
            rc = check_beside(&input, &projects[i], classes, err);
    }
    cn_free(allowed);
    cn_free(gone);
    return rc;
}

/* P1 */
static int commit_state(struct cn_deployer *deployer, struct cn_err *err)
{
    const struct cn_ledger *ledger = deployer->ledger;
    int rc = deployer->fleet ? cn_fleet_serves(deployer->fleet, deployer->state, err) : 0;
    if (rc == 0 && deployer->depot)
        rc = cn_depot_commit(deployer->depot, deployer->state, &deployer->classes, err);
    if (rc < 0)
        return rc;
    if (rc == 1) { /* with the classes: what is left is their copy here */
        struct cn_err copy = {0};
        if (cn_deploy_classes_commit(deployer->disk, NULL, &deployer->classes, &copy) < 0)
            cn_warn("%s; the next deployment fetches it again", copy.text);
        return 0;
    }
    rc = cn_deploy_classes_commit(deployer->disk, ledger, &deployer->classes, err);
    if (rc < 0 && deployer->depot)
        cn_depot_revert(deployer->depot);
    return rc;
}

/* P1, P2: the next upload leaves the projects of this one as they are. No load runs meanwhile. */
static int commit(void *data, struct cn_err *err)
{
    struct cn_deployer *deployer = data;
    int rc = commit_state(deployer, err);
    if (rc < 0)
        return rc;
    deployer->own->refs++;
    own_unref(deployer->served);
    deployer->served = deployer->own;
    return 0;
}

/* H5: the script of a project, or one that stands for it. */
static struct cn_script *make_any_script(struct cn_deployer *deployer,
                                         const struct cn_hosted *hosted, struct cn_project *project,
                                         const struct cn_script *before, bool alone,
                                         const struct cn_classes *classes, struct cn_err *err)
{
    struct cn_script *script = NULL;
    if (!project->broken)
        script = make_script(project, before, alone, deployer->options.development, deployer->node,
                             classes, err);
    if (script || (!project->broken && cn_hosted_tolerate(hosted, project, err) < 0))
        return script;
    return make_broken_script(project, alone, deployer->node, classes, err);
}

/* Of what a deployment is made. */
struct parts {
    const struct cn_hosted *hosted; /* NULL: nothing was uploaded */
    const struct cn_own *kept;      /* P2; NULL: projects on disk were read again */
    struct cn_project *projects;
    size_t count;
    struct cn_classes classes;
};

static int make_deployment(struct cn_deployer *deployer, const struct parts *parts,
                           struct cn_deployment **out, struct cn_err *err)
{
    struct cn_deployment *deployment = cn_deployment_new();
    bool alone = first_count(parts->projects, parts->count) == 1;
    int rc = 0;
    for (size_t i = 0; i < parts->count && rc == 0; i++) {
        const struct cn_own *kept = parts->kept;
        const struct cn_script *before = kept && i < kept->count ? kept->scripts[i] : NULL;
        struct cn_script *script = make_any_script(deployer, parts->hosted, &parts->projects[i],
                                                   before, alone, &parts->classes, err);
        if (script)
            cn_deployment_add(deployment, script);
        else
            rc = err->code;
    }
    if (rc == 0)
        rc = check_consumers(deployment, err);
    if (rc == 0)
        rc = add_own_scripts(deployment, parts->projects, parts->count, deployer->node, err);
    if (rc < 0) {
        cn_deployment_unref(deployment);
        return rc;
    }
    deployment->rehearsal = deployer->depot && cn_depot_rehearses(deployer->depot);
    if (deployer->disk) {
        deployment->commit = commit;
        deployment->commit_data = deployer;
    }
    *out = deployment;
    return 0;
}

/* P3: at the start a project with neighbours is tolerated. */
static void tolerate(const struct cn_deployer *deployer, struct cn_project *projects, size_t count)
{
    if (deployer->served || deployer->options.development || count < 2)
        return;
    for (size_t i = 0; i < deployer->options.path_count; i++) {
        projects[i].tolerated = true;
        cn_free(projects[i].way_back);
        projects[i].way_back = cn_sprintf("mend %s and reload the server", projects[i].config->dir);
    }
}

/* The deployment is made: its projects are the deployer's. */
static void take_projects(struct cn_deployer *deployer, struct cn_own *kept,
                          struct cn_project *projects, size_t count,
                          const struct cn_deployment *deployment)
{
    struct cn_own *own = kept;
    if (kept)
        kept->refs++;
    else
        own = own_new(projects, deployer->options.path_count, deployment);
    pthread_mutex_lock(&deployer->lock);
    close_projects(deployer->projects, deployer->own ? deployer->own->count : 0,
                   deployer->project_count);
    own_unref(deployer->own);
    deployer->own = own;
    deployer->projects = projects;
    deployer->project_count = count;
    pthread_mutex_unlock(&deployer->lock);
}

static int load_state(struct cn_deployer *deployer, const struct cn_hosted *hosted,
                      struct cn_own *kept, struct cn_deployment **out, struct cn_buf *messages,
                      struct cn_err *err)
{
    struct parts parts = {.hosted = hosted, .kept = kept};
    size_t first = kept ? kept->count : 0;
    int rc = open_projects(deployer, hosted, kept, &parts.projects, &parts.count, err);
    if (rc < 0)
        return rc;
    add_stamps(deployer, parts.projects, parts.count);
    tolerate(deployer, parts.projects, parts.count);
    rc = bundle_projects(deployer, hosted, parts.projects, first, parts.count, messages, err);
    if (rc == 0 && deployer->node)
        rc = prepare_classes(deployer, hosted ? hosted->state : NULL, parts.projects, parts.count,
                             &parts.classes, err);
    if (rc == 0)
        rc = make_deployment(deployer, &parts, out, err);
    cn_classes_fini(&parts.classes);
    if (rc < 0) {
        close_projects(parts.projects, first, parts.count);
        return rc;
    }
    cn_hosted_tell(parts.projects, parts.count, deployer->projects, deployer->project_count);
    take_projects(deployer, kept, parts.projects, parts.count, *out);
    return 0;
}

static int load(struct cn_deployer *deployer, bool reread, struct cn_deployment **out,
                struct cn_buf *messages, struct cn_err *err)
{
    struct cn_own *kept = reread ? NULL : deployer->served;
    struct cn_depot_state *state = deployer->depot ? cn_depot_take_next(deployer->depot) : NULL;
    cn_depot_state_unref(deployer->state); /* no lane starts what was made of it any more */
    deployer->state = state;
    if (!state)
        return load_state(deployer, NULL, kept, out, messages, err);
    struct cn_depot_state *current = cn_depot_take(deployer->depot);
    int64_t limit_ms = cn_deployer_settings(deployer)->config->server.limits.start_cpu_ms;
    struct cn_hosted hosted = {.depot = deployer->depot,
                               .state = state,
                               .current = current,
                               .start_limit_ms = limit_ms ? (uint64_t)limit_ms : START_MS_DEFAULT,
                               .builds = !deployer->monitor};
    int rc = load_state(deployer, &hosted, kept, out, messages, err);
    cn_depot_state_unref(current);
    return rc;
}

int cn_deployer_load(void *data, bool reread, struct cn_deployment **deployment, struct cn_err *err)
{
    struct cn_deployer *deployer = data;
    struct cn_buf messages = {0};
    take_stamps(deployer);
    int rc = load(deployer, reread, deployment, &messages, err);
    pthread_mutex_lock(&deployer->lock);
    deployer->failed = rc < 0;
    cn_free(deployer->problem);
    deployer->problem =
        rc < 0 ? cn_sprintf("%s\n\n%s", err->text, messages.size ? cn_buf_text(&messages) : "")
               : NULL;
    pthread_mutex_unlock(&deployer->lock);
    cn_buf_fini(&messages);
    /* Only development builds again and again. */
    if (!deployer->options.development)
        cn_bundler_rest(&deployer->bundler);
    return rc;
}

int cn_deployer_build(void *data, struct cn_err *err)
{
    struct cn_deployer *deployer = data;
    struct cn_err first = {0}; /* P3: the others are built all the same */
    for (size_t i = 0; i < deployer->options.path_count; i++) {
        struct cn_project project = {0};
        struct cn_err why = {0};
        int rc =
            cn_project_open(&project, deployer->options.paths[i], &deployer->options.project, &why);
        if (rc == 0)
            rc = cn_project_bundle(&project, &deployer->bundler, NULL, false, NULL, &why);
        cn_project_close(&project);
        if (rc < 0 && !first.code)
            first = why;
    }
    cn_bundler_rest(&deployer->bundler);
    if (first.code)
        *err = first;
    return first.code;
}

void cn_deployer_cancel(void *data)
{
    struct cn_deployer *deployer = data;
    cn_bundler_cancel(&deployer->bundler);
    cn_bundler_cancel(&deployer->hosted_bundler);
    if (deployer->monitor)
        cn_monitor_cancel(deployer->monitor);
}

/* ---- watching ---------------------------------------------------------------------- */

static const char *changed_input(const struct cn_project *project)
{
    if (!project->config->main)
        return NULL;
    return project->bundle.manifest ? cn_bundle_changed_input(project->bundle.manifest)
                                    : project->config->main;
}

static const char *find_change(const struct cn_deployer *deployer)
{
    for (size_t i = 0; i < deployer->stamp_count; i++) {
        struct cn_stamp now;
        const struct cn_stamp *then = &deployer->stamps[i];
        stat_stamp(then->path, &now);
        if (now.size != then->size || now.mtime_ns != then->mtime_ns)
            return then->path;
    }
    for (size_t i = 0; i < deployer->tree_count; i++) {
        const struct cn_tree *tree = &deployer->trees[i];
        int64_t newest_ns = 0;
        if ((tree->kind != CN_TREE_SOURCE || deployer->failed) &&
            sum_tree(tree, &newest_ns) != tree->sum)
            return tree->folder;
    }
    /* The manifest has the inputs as they were read. */
    const char *changed = NULL;
    for (size_t i = 0; i < deployer->project_count && !deployer->failed && !changed; i++)
        changed = changed_input(&deployer->projects[i]);
    return changed;
}

bool cn_deployer_changed(struct cn_deployer *deployer, struct cn_buf *what)
{
    pthread_mutex_lock(&deployer->lock);
    const char *changed = find_change(deployer);
    if (changed && what) {
        const char *home = deployer->project_count ? deployer->projects[0].config->home : "";
        size_t inside = strlen(home);
        bool below = inside && strncmp(changed, home, inside) == 0 && changed[inside] == '/';
        cn_buf_append_str(what, below ? changed + inside + 1 : changed);
    }
    pthread_mutex_unlock(&deployer->lock);
    return changed != NULL;
}

char *cn_deployer_problem(struct cn_deployer *deployer)
{
    pthread_mutex_lock(&deployer->lock);
    char *problem = deployer->problem ? cn_strdup(deployer->problem) : NULL;
    pthread_mutex_unlock(&deployer->lock);
    return problem;
}

static void visit_parent(const char *path, void (*visit)(const char *folder, void *data),
                         void *data)
{
    const char *slash = strrchr(path, '/'), *package = strstr(path, "/node_modules/");
    if (!slash || (package && package + strlen("/node_modules") != slash))
        return;
    char *folder = cn_strndup(path, (size_t)(slash - path));
    visit(folder, data);
    cn_free(folder);
}

void cn_deployer_each_folder(struct cn_deployer *deployer,
                             void (*visit)(const char *folder, void *data), void *data)
{
    pthread_mutex_lock(&deployer->lock);
    for (size_t i = 0; i < deployer->stamp_count; i++)
        visit_parent(deployer->stamps[i].path, visit, data);
    for (size_t i = 0; i < deployer->tree_count; i++) {
        const struct cn_tree *tree = &deployer->trees[i];
        if (tree->kind == CN_TREE_SOURCE && !deployer->failed)
            visit(tree->folder, data);
        else
            visit_tree(tree->folder, 0, visit, data);
    }
    for (size_t i = 0; i < deployer->project_count; i++) {
        const struct cn_confnode *inputs = inputs_of(&deployer->projects[i]);
        for (size_t j = 0; inputs && j < inputs->count; j++) {
            if (path_of(inputs->items[j]))
                visit_parent(path_of(inputs->items[j]), visit, data);
        }
    }
    pthread_mutex_unlock(&deployer->lock);
}
