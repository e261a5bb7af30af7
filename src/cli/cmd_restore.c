/* SPDX-License-Identifier: Apache-2.0 */
/* cairn restore BACKUP: a backup of a cluster becomes a single server's data directory, or the
 * first node of another cluster. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "cli/args.h"
#include "fleet/cluster_restore.h"
#include "membership/engine.h"

struct options {
    const char *data, *url, *replicas;
    bool allow_async;
};

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    if (args->rest_count != 1 || !options->data) {
        fprintf(stderr, "cairn: restore needs a backup and a new directory: cairn restore BACKUP "
                        "--data DIR\n");
        return 2;
    }
    struct cn_restore restore = {.from = args->rest[0],
                                 .to = options->data,
                                 .url = options->url,
                                 .allow_async = options->allow_async};
    char *end = NULL;
    unsigned long replicas = options->replicas ? strtoul(options->replicas, &end, 10) : 0;
    if (end && (*end || !replicas || replicas > CN_CLUSTER_REPLICAS_MAX)) {
        fprintf(stderr, "cairn: --replicas is a number from 1 to %d\n", CN_CLUSTER_REPLICAS_MAX);
        return 2;
    }
    restore.replicas = (unsigned)replicas;
    if (cn_restore(&restore, &err) < 0) {
        fprintf(stderr, "cairn: %s\n", err.text);
        return 1;
    }
    if (options->url)
        printf("%s: %u shards, %" PRIu64 " bodies of R2, %" PRIu64
               " bytes: the first node of the cluster\n\n"
               "Start it:    cairn serve [PROJECT] --data %s --node NAME --peer HOST:7701\n"
               "Then others, with empty directories: they get replicas.\n",
               options->data, restore.shard_count, restore.body_count, restore.bytes,
               options->data);
    else
        printf("%s: %" PRIu64 " objects, %" PRIu64 " bodies of R2, %" PRIu64
               " bytes: a single server\n",
               options->data, restore.object_count, restore.body_count, restore.bytes);
    return 0;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    {"data", 0, "DIR", "CAIRN_DATA", "the data directory to make: new or empty", AT(data), 0},
    {"cluster", 0, "URL", "CAIRN_CLUSTER", "the engine of a cluster that was never used", AT(url),
     0},
    {"replicas", 0, "N", NULL, "of each shard of the cluster (as before)", AT(replicas), 0},
    {"allow-async", 0, NULL, NULL, "on an engine that may lose what it has acknowledged",
     AT(allow_async), 0},
};

const struct cn_command cn_cmd_restore = {
    .name = "restore",
    .usage = "BACKUP --data DIR [OPTIONS]",
    .summary = "make a server or a cluster of a cluster's backup",
    .text = "BACKUP is what `cairn backup` has made of a cluster. Without --cluster, DIR becomes "
            "the data\n"
            "directory of a single server; with it, that of the first node of a new cluster. Every "
            "file\n"
            "is compared with its checksum. The backup of a single server is a data directory: "
            "copy it.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
