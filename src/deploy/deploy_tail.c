/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/deploy_tail.c - who is told of a worker's invocations: `tail_consumers`, workers that are,
 * and `observability`, how many of them become spans. */
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/confnode.h"
#include "deploy/deploy_env.h"
#include "project/project.h"
#include "worker/script.h"

static char *consumer_name(const struct cn_config_tail *tail)
{
    return tail->environment ? cn_sprintf("%s-%s", tail->service, tail->environment)
                             : cn_strdup(tail->service);
}

static const struct cn_config *find_project(const struct cn_project *projects, size_t count,
                                            const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(projects[i].config->name, name) == 0)
            return projects[i].config;
    }
    return NULL;
}

/* Whether what `from` does is told to `target`, perhaps by way of others. `depth` bounds the
 * search: a way without repetitions is no longer than there are projects. */
static bool reaches(const struct cn_project *projects, size_t count, const struct cn_config *from,
                    const struct cn_config *target, size_t depth)
{
    bool found = false;
    for (size_t i = 0; i < from->tail_consumers.count && depth && !found; i++) {
        char *name = consumer_name(&from->tail_consumers.items[i]);
        const struct cn_config *next = find_project(projects, count, name);
        cn_free(name);
        found = next == target || (next && reaches(projects, count, next, target, depth - 1));
    }
    return found;
}

static int check(const struct cn_project *projects, size_t count, const struct cn_config *config,
                 size_t index, struct cn_err *err)
{
    char *name = consumer_name(&config->tail_consumers.items[index]);
    const struct cn_config *consumer = find_project(projects, count, name);
    char *place = cn_deploy_entry_place(config, "tail_consumers", index);
    int rc = 0;
    if (!consumer)
        rc = cn_err_set(err, CN_ENOTFOUND,
                        "%s: tail_consumers: no project of this server is named \"%s\"; name its "
                        "folder on the command line too",
                        place, name);
    else if (consumer == config)
        rc =
            cn_err_set(err, CN_EINVALID,
                       "%s: tail_consumers: a worker cannot be told of its own invocations", place);
    else if (reaches(projects, count, consumer, config, count))
        rc = cn_err_set(
            err, CN_EINVALID,
            "%s: tail_consumers: \"%s\" tells \"%s\" of its own invocations, which would "
            "never end",
            place, name, config->name);
    cn_free(place);
    cn_free(name);
    return rc;
}

int cn_deploy_check_tails(const struct cn_project *projects, size_t count, size_t index,
                          struct cn_err *err)
{
    const struct cn_config *config = projects[index].config;
    int rc = 0;
    for (size_t k = 0; k < config->tail_consumers.count && rc == 0; k++)
        rc = check(projects, count, config, k, err);
    return rc;
}

void cn_deploy_tails(struct cn_script *script, const struct cn_config *config)
{
    size_t count = config->tail_consumers.count;
    script->tails = cn_alloc_zero((count + 1) * sizeof(*script->tails));
    for (size_t i = 0; i < count; i++)
        script->tails[script->tail_count++] = consumer_name(&config->tail_consumers.items[i]);
}

/* --- observability --------------------------------------------------------------------------- */

static int refuse(const struct cn_config *config, const struct cn_confnode *node, const char *key,
                  const char *what, struct cn_err *err)
{
    return cn_err_set(err, CN_EINVALID, "%s:%d:%d: observability: %s must be %s", config->path,
                      node->line, node->column, key, what);
}

/* Reads `enabled` and `head_sampling_rate` of a table; what is not there leaves *rate as it is. */
static int read_rate(const struct cn_config *config, const struct cn_confnode *table, double *rate,
                     struct cn_err *err)
{
    const struct cn_confnode *enabled = cn_confnode_find(table, "enabled");
    const struct cn_confnode *share = cn_confnode_find(table, "head_sampling_rate");
    if (share) {
        if (share->kind != CN_CONF_INTEGER && share->kind != CN_CONF_FLOAT)
            return refuse(config, share, "head_sampling_rate", "a number from 0 to 1", err);
        *rate = share->kind == CN_CONF_INTEGER ? (double)share->integer : share->number;
        if (!(*rate >= 0 && *rate <= 1))
            return refuse(config, share, "head_sampling_rate", "a number from 0 to 1", err);
    }
    if (enabled && enabled->kind != CN_CONF_BOOL)
        return refuse(config, enabled, "enabled", "true or false", err);
    if (enabled && !enabled->boolean)
        *rate = 0;
    return 0;
}

int cn_deploy_observability(struct cn_script *script, const struct cn_config *config,
                            struct cn_err *err)
{
    const struct cn_confnode *table = config->observability;
    script->trace_rate = 1;
    if (!table)
        return 0;
    if (table->kind != CN_CONF_TABLE)
        return refuse(config, table, "it", "a table", err);
    int rc = read_rate(config, table, &script->trace_rate, err);
    const struct cn_confnode *traces = cn_confnode_find(table, "traces");
    if (rc == 0 && traces && traces->kind != CN_CONF_TABLE)
        return refuse(config, traces, "traces", "a table", err);
    if (rc == 0 && traces)
        rc = read_rate(config, traces, &script->trace_rate, err);
    return rc;
}
