/* SPDX-License-Identifier: Apache-2.0 */
/* service/r2/command.c - cairn r2 ...: buckets of R2, whether a server runs or not (cli/api.h).
 * Verbs and options are wrangler's. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "cli/when.h"
#include "service/r2/r2.h"

struct options {
    struct cn_verb_options common; /* first: verb.c reads it */
    const char *file, *prefix, *delimiter;
    const char *content_type, *content_disposition, *content_encoding, *content_language;
    const char *cache_control, *expires, *storage_class;
    bool pipe;
    bool ignored; /* wrangler's, without meaning here */
};

static const struct options *given(const struct cn_verb_run *cli)
{
    return cli->args->options;
}

/* --- buckets --------------------------------------------------------------------------------- */

static void begin_buckets(struct cn_table *table)
{
    cn_table_init(table, 3);
    cn_verb_cell(table, "BUCKET");
    cn_verb_cell(table, "OBJECTS");
    cn_verb_cell(table, "SIZE");
}

static int add_bucket(void *data, const struct cn_json *entry, struct cn_err *err)
{
    (void)err;
    struct cn_table *table = data;
    cn_verb_cell(table, cn_json_text(entry, "name"));
    cn_table_add_json(table, cn_json_find(entry, "objects"));
    cn_verb_size_cell(table, cn_json_int(entry, "bytes"));
    return 0;
}

static int run_buckets(struct cn_verb_run *cli, struct cn_err *err)
{
    struct cn_table table;
    cn_verb_target(cli, "/api/r2", NULL);
    if (cli->common->json)
        return cn_verb_list(cli, "buckets", cn_verb_print, NULL, err);
    begin_buckets(&table);
    int rc = cn_verb_list(cli, "buckets", add_bucket, &table, err);
    cn_table_print(&table);
    return rc;
}

static int show_bucket(struct cn_verb_run *cli, const char *method, struct cn_err *err)
{
    struct cn_table table;
    cn_verb_target(cli, "/api/r2", cli->rest[0], NULL);
    int rc = cn_verb_call(cli, method, err);
    if (rc < 0)
        return rc;
    if (cli->common->json) {
        cn_print_line(cli->answer);
        return 0;
    }
    begin_buckets(&table);
    add_bucket(&table, cli->answer, err);
    cn_table_print(&table);
    return 0;
}

static int run_bucket_info(struct cn_verb_run *cli, struct cn_err *err)
{
    return show_bucket(cli, "GET", err);
}

static int run_bucket_create(struct cn_verb_run *cli, struct cn_err *err)
{
    return show_bucket(cli, "PUT", err);
}

static int run_bucket_delete(struct cn_verb_run *cli, struct cn_err *err)
{
    (void)cli;
    return cn_err_set(err, CN_EUNSUPPORTED,
                      "a bucket is not deleted: delete its objects, and no project that binds it "
                      "sees it any more once the binding is gone");
}

/* --- objects --------------------------------------------------------------------------------- */

/* Where the name of the bucket ends in BUCKET/KEY. A bucket without a name of its own is called
 * worker/BINDING: if there is none up to the first slash, the second one counts. */
static int find_slash(struct cn_verb_run *cli, const char *path, const char **slash,
                      struct cn_err *err)
{
    const char *first = strchr(path, '/'), *second = first ? strchr(first + 1, '/') : NULL;
    if (!first || first == path || !first[1])
        return cn_err_set(err, CN_EINVALID, "\"%s\" must be BUCKET/KEY", path);
    *slash = first;
    if (!second || !second[1])
        return 0;
    struct cn_err missing;
    char *bucket = cn_strndup(path, (size_t)(first - path));
    cn_verb_target(cli, "/api/r2", bucket, NULL);
    cn_free(bucket);
    if (cn_verb_call(cli, "GET", &missing) != CN_ENOTFOUND)
        return 0;
    bucket = cn_strndup(path, (size_t)(second - path));
    cn_verb_target(cli, "/api/r2", bucket, NULL);
    cn_free(bucket);
    if (cn_verb_call(cli, "GET", &missing) == 0)
        *slash = second;
    return 0;
}

/* Begins the target of the object BUCKET/KEY; `key` is where the key begins. */
static int object_target(struct cn_verb_run *cli, const char **key, struct cn_err *err)
{
    const char *path = cli->rest[0], *slash;
    int rc = find_slash(cli, path, &slash, err);
    if (rc < 0)
        return rc;
    char *bucket = cn_strndup(path, (size_t)(slash - path));
    *key = slash + 1;
    cn_verb_target(cli, "/api/r2", bucket, "objects", *key, NULL);
    cn_free(bucket);
    cn_json_free(cli->answer);
    cli->answer = NULL;
    return 0;
}

static int add_object(void *data, const struct cn_json *entry, struct cn_err *err)
{
    (void)err;
    struct cn_table *table = data;
    cn_verb_size_cell(table, cn_json_int(entry, "size"));
    cn_verb_time_cell(table, entry, "uploaded");
    cn_verb_cell(table, cn_json_text(cn_json_find(entry, "http"), "contentType"));
    cn_table_add_json(table, cn_json_find(entry, "key"));
    return 0;
}

/* With a delimiter: what has more of it is listed once. */
static void print_prefixes(const struct cn_verb_run *cli)
{
    const struct cn_json *prefixes = cn_json_find(cli->answer, "prefixes");
    for (const struct cn_json *each = prefixes ? prefixes->first : NULL; each; each = each->next) {
        struct cn_buf line = {0};
        if (cli->common->json) {
            cn_buf_append_str(&line, "{\"prefix\":");
            cn_buf_append_json(&line, each->text, each->size);
            cn_buf_append_byte(&line, '}');
        } else {
            cn_print_escape(&line, each->text, each->size);
        }
        puts(cn_buf_text(&line));
        cn_buf_fini(&line);
    }
}

/* A page at a time, so that a bucket of any size can be listed. */
static int run_list(struct cn_verb_run *cli, struct cn_err *err)
{
    cn_verb_target(cli, "/api/r2", cli->rest[0], "objects", NULL);
    cn_verb_param(cli, "limit", "1000");
    cn_verb_param(cli, "prefix", given(cli)->prefix);
    cn_verb_param(cli, "delimiter", given(cli)->delimiter);
    size_t size = cli->target.size;
    const char *cursor;
    do {
        struct cn_table table;
        int rc = cn_verb_call(cli, "GET", err);
        if (rc < 0)
            return rc;
        const struct cn_json *objects = cn_json_find(cli->answer, "objects");
        cn_table_init(&table, 4);
        for (const struct cn_json *each = objects->first; each; each = each->next)
            rc = cli->common->json ? cn_verb_print(NULL, each, err) : add_object(&table, each, err);
        cn_table_print(&table);
        print_prefixes(cli);
        cursor = cn_json_text(cli->answer, "cursor");
        cli->target.size = size;
        cn_verb_param(cli, "cursor", cursor);
    } while (cursor);
    return 0;
}

/* Where an object goes without --file: its last name, in the current folder, never elsewhere. */
static const char *default_file(const char *key, struct cn_err *err)
{
    const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;
    if (*name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        return name;
    cn_err_set(err, CN_EINVALID, "\"%s\" gives no file name: --file FILE or --pipe", key);
    return NULL;
}

static int run_get(struct cn_verb_run *cli, struct cn_err *err)
{
    const struct options *options = given(cli);
    struct cn_progress progress;
    struct cn_verb_file out = {STDOUT_FILENO, "standard output", &progress};
    const char *key;
    int rc = object_target(cli, &key, err);
    if (rc == 0 && options->file && options->pipe)
        rc = cn_err_set(err, CN_EINVALID, "--file and --pipe exclude each other");
    if (rc < 0)
        return rc;
    char *part = NULL;
    if (!options->pipe) {
        out.path = options->file ? options->file : default_file(key, err);
        if (!out.path)
            return err->code;
        /* What is there stays until all of the new one has come. */
        part = cn_sprintf("%s.part", out.path);
        out.fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out.fd < 0) {
            rc = cn_err_errno(err, errno, "cannot create %s", part);
            cn_free(part);
            return rc;
        }
    }
    cn_progress_begin(&progress, "reading", 0, true);
    rc = cn_api_fetch(&cli->api, cn_buf_text(&cli->target), cn_verb_write_file, &out, err);
    cn_progress_end(&progress);
    if (part) {
        if (close(out.fd) < 0 && rc == 0)
            rc = cn_err_errno(err, errno, "cannot write %s", part);
        if (rc == 0 && rename(part, out.path) < 0)
            rc = cn_err_errno(err, errno, "cannot create %s", out.path);
        if (rc < 0)
            (void)unlink(part); /* half of it is of no use */
        else
            fprintf(stderr, "wrote %" PRIu64 " bytes to %s\n", progress.done, out.path);
    }
    cn_free(part);
    return rc;
}

static int run_put(struct cn_verb_run *cli, struct cn_err *err)
{
    const struct options *options = given(cli);
    struct cn_progress progress;
    struct cn_verb_file in = {STDIN_FILENO, "standard input", &progress};
    struct stat info;
    const char *key;
    int rc = object_target(cli, &key, err);
    if (rc == 0 && !options->file == !options->pipe)
        rc = cn_err_set(err, CN_EINVALID, "what? One of --file FILE and --pipe");
    if (rc < 0)
        return rc;
    cn_verb_param(cli, "contentType", options->content_type);
    cn_verb_param(cli, "contentDisposition", options->content_disposition);
    cn_verb_param(cli, "contentEncoding", options->content_encoding);
    cn_verb_param(cli, "contentLanguage", options->content_language);
    cn_verb_param(cli, "cacheControl", options->cache_control);
    char expires[24];
    if (options->expires && cn_when_text(options->expires, expires, err) < 0)
        return err->code;
    cn_verb_param(cli, "cacheExpiry", options->expires ? expires : NULL);
    cn_verb_param(cli, "storageClass", options->storage_class);
    if (options->file) {
        in.path = options->file;
        in.fd = open(options->file, O_RDONLY | O_CLOEXEC);
        if (in.fd < 0)
            return cn_err_errno(err, errno, "cannot read %s", options->file);
    }
    bool sized = fstat(in.fd, &info) == 0 && S_ISREG(info.st_mode) && options->file;
    struct cn_api_body body = {sized ? info.st_size : -1, cn_verb_read_file, &in};
    cn_progress_begin(&progress, "writing", sized ? (uint64_t)info.st_size : 0, true);
    rc = cn_api_put(&cli->api, cn_buf_text(&cli->target), &body, &cli->answer, err);
    cn_progress_end(&progress);
    if (options->file)
        close(in.fd);
    if (rc == 0 && options->common.json)
        cn_print_line(cli->answer);
    else if (rc == 0)
        printf("wrote %" PRId64 " bytes, etag %s\n", cn_json_int(cli->answer, "size"),
               cn_json_text(cli->answer, "etag"));
    return rc;
}

static int run_delete(struct cn_verb_run *cli, struct cn_err *err)
{
    const char *key;
    int rc = object_target(cli, &key, err);
    if (rc == 0)
        rc = cn_verb_call(cli, "DELETE", err);
    if (rc < 0)
        return rc;
    const struct cn_json *deleted = cn_json_find(cli->answer, "deleted");
    if (cli->common->json)
        cn_print_line(cli->answer);
    else
        printf(deleted && deleted->boolean ? "deleted %s\n" : "%s was not there\n", cli->rest[0]);
    return 0;
}

/* --- the command ----------------------------------------------------------------------------- */

static int run(const struct cn_args *args)
{
    static const struct cn_verb verbs[] = {
        {"bucket", "list", 0, 0, false, run_buckets},
        {"bucket", "info", 1, 1, false, run_bucket_info},
        {"bucket", "create", 1, 1, true, run_bucket_create},
        {"bucket", "delete", 1, 1, false, run_bucket_delete},
        {"object", "list", 1, 1, false, run_list},
        {"object", "get", 1, 1, false, run_get},
        {"object", "put", 1, 1, true, run_put},
        {"object", "delete", 1, 1, true, run_delete},
    };
    return cn_verb_main(args, verbs, CN_ARRAY_COUNT(verbs),
                        "r2 needs one of: bucket list | bucket info|create BUCKET | object list "
                        "BUCKET | object get|put|delete BUCKET/KEY; `cairn help r2` explains "
                        "them");
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(common.project.data)),
    CN_OPTION_ENV(AT(common.project.env)),
    CN_OPTION_ALLOW_MISSING(AT(common.project.allow_missing)),
    {"file", 'f', "FILE", NULL, "get: where to; put: what", AT(file), 0},
    {"pipe", 'p', NULL, NULL, "get: to standard output; put: from standard input", AT(pipe), 0},
    {"content-type", 0, "TYPE", NULL, "put: HTTP metadata", AT(content_type), 0},
    {"content-disposition", 0, "TEXT", NULL, "put: HTTP metadata", AT(content_disposition), 0},
    {"content-encoding", 0, "TEXT", NULL, "put: HTTP metadata", AT(content_encoding), 0},
    {"content-language", 0, "TEXT", NULL, "put: HTTP metadata", AT(content_language), 0},
    {"cache-control", 0, "TEXT", NULL, "put: HTTP metadata", AT(cache_control), 0},
    {"expires", 0, "T", NULL, "put: " CN_WHEN_HELP, AT(expires), 0},
    {"storage-class", 's', "CLASS", NULL, "put: Standard or InfrequentAccess", AT(storage_class),
     0},
    {"delimiter", 0, "D", NULL, "list: keys that share what comes before it are one line",
     AT(delimiter), 0},
    CN_OPTION_PREFIX(AT(prefix)),
    CN_OPTION_JSON(AT(common.json)),
    CN_OPTION_CONFIG(AT(common.config)),
    CN_OPTION_YES(AT(ignored)),
    CN_OPTION_LOCAL(AT(ignored)),
    CN_OPTION_REMOTE(AT(ignored)),
};

const struct cn_command cn_r2_command = {
    .name = "r2",
    .usage = "bucket|object ... [OPTIONS]",
    .summary = "list R2 buckets and objects; read, write and delete them",
    .text =
        "Works on a data directory, also while a server uses it. Verbs and options are "
        "wrangler's.\n\n"
        "  cairn r2 bucket list              buckets, with objects and bytes\n"
        "  cairn r2 bucket info BUCKET       one of them\n"
        "  cairn r2 bucket create BUCKET     makes one\n"
        "  cairn r2 object list BUCKET       keys, with size, time and type\n"
        "  cairn r2 object get BUCKET/KEY    to --file, to standard output (--pipe), or to a file "
        "with\n"
        "                                    the last name of the key\n"
        "  cairn r2 object put BUCKET/KEY    from --file or standard input (--pipe)\n"
        "  cairn r2 object delete BUCKET/KEY deletes it\n\n"
        "Exit code 0: done, 1: failed (no such object, for example), 2: wrong command line.",
    .rest_max = 3,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
