/* SPDX-License-Identifier: Apache-2.0 */
/* cairn backup DIR: a consistent copy of a data directory, whether a server uses it or not. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/api.h"
#include "cli/args.h"

struct options {
    const char *data;
};

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_err err = {0};
    struct cn_api api = {0};
    struct cn_buf body = {0};
    struct cn_json *answer = NULL;
    char absolute[PATH_MAX];
    if (args->rest_count != 1) {
        fprintf(stderr, "cairn: backup needs the folder to copy to: cairn backup DIR\n");
        return 2;
    }
    const char *target = args->rest[0];
    int rc = cn_api_open(&api, options->data, true, &err);
    /* The folder is made here, as the one who asks; a server with fewer rights says so. */
    if (rc == 0 && mkdir(target, 0700) < 0 && errno != EEXIST)
        rc = cn_err_errno(&err, errno, "cannot make %s", target);
    if (rc == 0 && !realpath(target, absolute))
        rc = cn_err_errno(&err, errno, "cannot find %s", target);
    if (rc == 0) {
        cn_buf_append_str(&body, "{\"path\":");
        cn_buf_append_json(&body, absolute, strlen(absolute));
        cn_buf_append_byte(&body, '}');
        rc = cn_api_call(&api, "POST", "/api/backup", cn_buf_text(&body), &answer, &err);
    }
    const char *cluster = rc == 0 ? cn_json_text(answer, "cluster") : NULL;
    if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    else if (cluster)
        printf("%s: %" PRId64 " files, %" PRId64 " bytes, %" PRId64
               " shards of the cluster %s: %s\n",
               target, cn_json_int(answer, "files"), cn_json_int(answer, "bytes"),
               cn_json_int(answer, "shards"), cluster, cn_json_text(answer, "consistency"));
    else
        printf("%s: %" PRId64 " files, %" PRId64 " bytes, as of commit %" PRId64 "\n", target,
               cn_json_int(answer, "files"), cn_json_int(answer, "bytes"),
               cn_json_int(answer, "lsn"));
    cn_json_free(answer);
    cn_buf_fini(&body);
    cn_api_close(&api);
    return rc < 0 ? 1 : 0;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(data)),
};

const struct cn_command cn_cmd_backup = {
    .name = "backup",
    .usage = "DIR [OPTIONS]",
    .summary = "copy a data directory",
    .text =
        "Copies a data directory to the new or empty folder DIR, as of one moment, also while a\n"
        "server uses it. Of a node of a cluster: the whole cluster, each object as of one moment;\n"
        "`cairn restore` makes a server or another cluster of it.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
