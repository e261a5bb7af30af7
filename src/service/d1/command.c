/* SPDX-License-Identifier: Apache-2.0 */
/* service/d1/command.c - cairn d1 ...: the D1 databases of a project, whether a server runs or not
 * (cli/api.h). Verbs and flags are wrangler's. What is exported as SQL is made here of a copy of
 * the database, so that a server has no work with it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/when.h"
#include "cli/remote.h"
#include "cli/resource.h"
#include "config/config.h"
#include "config/files.h"
#include "server/data.h"
#include "service/d1/command.h"
#include "service/d1/config.h"
#include "service/d1/d1.h"
#include "store/dump.h"

struct options {
    struct cn_project_options project;
    const char *config, *command, *file, *output, *table, *bookmark, *timestamp;
    const char *server;
    bool no_schema, no_data, json;
    bool ignored; /* wrangler's, without meaning here */
};

static const struct options *given(const struct cn_d1_cli *cli)
{
    return cli->args->options;
}

/* --- the database ---------------------------------------------------------------------------- */

/* By binding, name or id. */
static int find_database(struct cn_d1_cli *cli, const char *name, struct cn_err *err)
{
    const struct cn_config *config = cli->project.config;
    struct cn_buf known = {0};
    const struct cn_d1_entries *entries = cn_d1_entries(config);
    for (size_t i = 0; i < entries->count; i++) {
        const struct cn_config_d1 *d1 = &entries->items[i];
        const char *names[] = {d1->binding, d1->database_name, d1->database_id};
        for (size_t k = 0; k < CN_ARRAY_COUNT(names); k++) {
            if (names[k] && strcmp(names[k], name) == 0)
                cli->d1 = d1;
        }
        cn_buf_printf(&known, "%s%s", known.size ? ", " : "",
                      d1->database_name ? d1->database_name : d1->binding);
    }
    int rc = 0;
    if (cli->d1)
        cli->id = cn_config_d1_id(config, cli->d1);
    else
        rc = cn_err_set(err, CN_ENOTFOUND, "%s has no D1 database \"%s\"%s%s", config->path, name,
                        known.size ? "; it has " : "", known.size ? cn_buf_text(&known) : "");
    cn_buf_fini(&known);
    return rc;
}

static int cli_open(struct cn_d1_cli *cli, const char *name, bool writes, bool remote,
                    struct cn_err *err)
{
    const char *config = given(cli)->config ? given(cli)->config : ".";
    int rc = cn_project_open(&cli->project, config, &given(cli)->project, err);
    if (rc == 0)
        rc = find_database(cli, name, err);
    if (rc == 0 && writes)
        rc = cn_data_make(cli->project.data, err);
    if (rc < 0 || !remote)
        return rc;
    return cn_api_open(&cli->api, cli->project.data, !writes, err);
}

static void cli_close(struct cn_d1_cli *cli)
{
    cn_api_close(&cli->api);
    cn_free(cli->id);
    cn_project_close(&cli->project);
}

/* /api/KIND/ID/VERB; the caller frees the buffer. */
static void api_target(struct cn_d1_cli *cli, struct cn_buf *target, const char *verb)
{
    cn_buf_append_str(target, "/api/d1/");
    cn_api_append_param(target, NULL, cli->id);
    cn_buf_printf(target, "/%s", verb);
}

static void object_target(struct cn_d1_cli *cli, struct cn_buf *target, const char *verb)
{
    char *name = cn_sprintf("$d1/%s", cli->id);
    cn_buf_append_str(target, "/api/objects/");
    cn_api_append_param(target, NULL, name);
    cn_buf_printf(target, "/" CN_D1_OBJECT "/%s", verb);
    cn_free(name);
}

int cn_d1_cli_query(struct cn_d1_cli *cli, const char *sql, size_t size, bool count,
                    struct cn_json **answer, struct cn_err *err)
{
    struct cn_buf target = {0}, body = {0};
    api_target(cli, &target, "query");
    cn_buf_append_str(&body, "{\"sql\":");
    cn_buf_append_json(&body, sql, size);
    cn_buf_printf(&body, ",\"count\":%s}", count ? "true" : "false");
    int rc = cn_api_call(&cli->api, "POST", cn_buf_text(&target), cn_buf_text(&body), answer, err);
    cn_buf_fini(&target);
    cn_buf_fini(&body);
    return rc;
}

/* --- execute --------------------------------------------------------------------------------- */

static int64_t meta_number(const struct cn_json *result, const char *name)
{
    const struct cn_json *value = cn_json_find(cn_json_find(result, "meta"), name);
    return value && value->kind == CN_JSON_INT ? value->integer : 0;
}

static void print_result(const struct cn_json *result)
{
    const struct cn_json *rows = cn_json_find(result, "results"), *first = rows->first;
    if (!first) {
        printf("%" PRId64 " rows changed\n", meta_number(result, "changes"));
        return;
    }
    struct cn_table table;
    size_t count = 0;
    for (const struct cn_json *cell = first->first; cell; cell = cell->next)
        count++;
    cn_table_init(&table, count);
    for (const struct cn_json *cell = first->first; cell; cell = cell->next)
        cn_table_add(&table, cell->name, strlen(cell->name));
    for (const struct cn_json *row = first; row; row = row->next) {
        for (const struct cn_json *cell = row->first; cell; cell = cell->next)
            cn_table_add_json(&table, cell);
    }
    cn_table_print(&table);
}

static int execute_text(struct cn_d1_cli *cli, const char *sql, size_t size, bool count,
                        struct cn_err *err)
{
    struct cn_json *answer;
    int rc = cn_d1_cli_query(cli, sql, size, count, &answer, err);
    if (rc < 0)
        return rc;
    const struct cn_json *results = cn_json_find(answer, "results");
    if (given(cli)->json) {
        cn_print_line(results);
    } else if (count) {
        const struct cn_json *number = cn_json_find(results, "count");
        printf("executed %" PRId64 " queries (%" PRId64 " rows read, %" PRId64 " rows written)\n",
               number ? number->integer : 0, meta_number(results, "rows_read"),
               meta_number(results, "rows_written"));
    } else {
        for (const struct cn_json *result = results->first; result; result = result->next)
            print_result(result);
    }
    cn_json_free(answer);
    return 0;
}

static int execute_file(struct cn_d1_cli *cli, const char *path, struct cn_err *err)
{
    struct cn_buf sql = {0};
    int rc = cn_files_read(path, SIZE_MAX, &sql, err);
    if (rc == 0)
        rc = execute_text(cli, (const char *)sql.data, sql.size, true, err);
    cn_buf_fini(&sql);
    return rc;
}

static int run_execute(struct cn_d1_cli *cli, struct cn_err *err)
{
    const struct options *options = given(cli);
    if (!options->command == !options->file)
        return cn_err_set(err, CN_EINVALID, "what? One of --command SQL and --file FILE");
    return options->command
               ? execute_text(cli, options->command, strlen(options->command), false, err)
               : execute_file(cli, options->file, err);
}

static int run_import(struct cn_d1_cli *cli, struct cn_err *err)
{
    return execute_file(cli, cli->args->rest[2], err);
}

/* --- export ---------------------------------------------------------------------------------- */

static int on_piece(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    return cn_files_write_all(*(int *)data, "the export", bytes, size, err);
}

/* Fetches a copy of the database into a file that has a name in `dir`, and no other user. */
static int fetch_copy(struct cn_d1_cli *cli, const char *path, struct cn_err *err)
{
    struct cn_buf target = {0};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return cn_err_errno(err, errno, "cannot create %s", path);
    object_target(cli, &target, "export");
    int rc = cn_api_fetch(&cli->api, cn_buf_text(&target), on_piece, &fd, err);
    cn_buf_fini(&target);
    close(fd);
    return rc;
}

static int dump_copy(struct cn_d1_cli *cli, const char *dir, const char *name, struct cn_err *err)
{
    const struct options *options = given(cli);
    bool to_stdout = strcmp(options->output, "-") == 0;
    int fd = to_stdout ? STDOUT_FILENO
                       : open(options->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return cn_err_errno(err, errno, "cannot create %s", options->output);
    struct cn_disk *disk = cn_disk_system_new(dir);
    struct cn_dump dump = {.table = options->table,
                           .no_schema = options->no_schema,
                           .no_data = options->no_data,
                           .write = on_piece,
                           .data = &fd};
    int rc = disk ? cn_dump_sql(disk, name, &dump, err)
                  : cn_err_errno(err, errno, "cannot open %s", dir);
    cn_disk_system_free(disk);
    if (!to_stdout && close(fd) < 0 && rc == 0)
        rc = cn_err_errno(err, errno, "cannot write %s", options->output);
    return rc;
}

static int run_export(struct cn_d1_cli *cli, struct cn_err *err)
{
    const struct options *options = given(cli);
    if (!options->output)
        return cn_err_set(err, CN_EINVALID, "where to? --output FILE (- is standard output)");
    if (options->no_schema && options->no_data)
        return cn_err_set(err, CN_EINVALID, "--no-schema and --no-data leave nothing to export");
    char dir[] = "/tmp/cairn-d1-XXXXXX";
    if (!mkdtemp(dir))
        return cn_err_errno(err, errno, "cannot make a folder in /tmp");
    char *copy = cn_sprintf("%s/copy", dir);
    int rc = fetch_copy(cli, copy, err);
    if (rc == 0)
        rc = dump_copy(cli, dir, "copy", err);
    (void)unlink(copy); /* may not exist */
    (void)rmdir(dir);   /* then empty */
    cn_free(copy);
    return rc;
}

/* --- time travel ----------------------------------------------------------------------------- */

static int run_moment_info(struct cn_d1_cli *cli, struct cn_err *err)
{
    struct cn_buf target = {0};
    struct cn_json *answer;
    char time[24];
    if (given(cli)->timestamp && cn_when_text(given(cli)->timestamp, time, err) < 0)
        return err->code;
    api_target(cli, &target, "bookmark");
    if (given(cli)->timestamp) {
        cn_buf_append_byte(&target, '?');
        cn_api_append_param(&target, "time", time);
    }
    int rc = cn_api_call(&cli->api, "GET", cn_buf_text(&target), NULL, &answer, err);
    cn_buf_fini(&target);
    if (rc < 0)
        return rc;
    if (given(cli)->json)
        cn_print_line(answer);
    else
        printf("the bookmark is %s\nto go back to it: cairn d1 time-travel restore %s "
               "--bookmark=%s\n",
               cn_json_text(answer, "bookmark"), cli->args->rest[2],
               cn_json_text(answer, "bookmark"));
    cn_json_free(answer);
    return 0;
}

static int run_moment_restore(struct cn_d1_cli *cli, struct cn_err *err)
{
    const struct options *options = given(cli);
    struct cn_buf target = {0}, body = {0};
    struct cn_json *answer;
    char time[24];
    if (!options->bookmark == !options->timestamp)
        return cn_err_set(err, CN_EINVALID, "to which moment? --bookmark B or --timestamp T");
    if (options->timestamp && cn_when_text(options->timestamp, time, err) < 0)
        return err->code;
    const char *moment = options->bookmark ? options->bookmark : time;
    object_target(cli, &target, "restore");
    cn_buf_printf(&body, "{\"%s\":", options->bookmark ? "bookmark" : "time");
    cn_buf_append_json(&body, moment, strlen(moment));
    cn_buf_append_byte(&body, '}');
    int rc = cn_api_call(&cli->api, "POST", cn_buf_text(&target), cn_buf_text(&body), &answer, err);
    cn_buf_fini(&target);
    cn_buf_fini(&body);
    if (rc < 0)
        return rc;
    if (options->json)
        cn_print_line(answer);
    else
        printf("restored; this bookmark undoes it: %s\n", cn_json_text(answer, "undo"));
    cn_json_free(answer);
    return 0;
}

static int run_info(struct cn_d1_cli *cli, struct cn_err *err)
{
    struct cn_buf target = {0};
    struct cn_json *answer;
    object_target(cli, &target, "");
    target.size--; /* the slash */
    int rc = cn_api_call(&cli->api, "GET", cn_buf_text(&target), NULL, &answer, err);
    cn_buf_fini(&target);
    if (rc < 0)
        return rc;
    cn_print_line(answer);
    cn_json_free(answer);
    return 0;
}

/* --- the command ----------------------------------------------------------------------------- */

static const struct verb {
    const char *group, *name; /* group NULL: none */
    size_t rest_count;
    bool writes, remote; /* remote: needs the data */
    int (*run)(struct cn_d1_cli *cli, struct cn_err *err);
} verbs[] = {
    {NULL, "execute", 2, true, true, run_execute},
    {NULL, "import", 3, true, true, run_import},
    {NULL, "export", 2, false, true, run_export},
    {NULL, "info", 2, false, true, run_info},
    {"migrations", "list", 3, true, true, cn_d1_migrations_list},
    {"migrations", "apply", 3, true, true, cn_d1_migrations_apply},
    {"migrations", "create", 4, false, false, cn_d1_migrations_create},
    {"time-travel", "info", 3, false, true, run_moment_info},
    {"time-travel", "restore", 3, true, true, run_moment_restore},
};

static const struct verb *find_verb(const struct cn_args *args)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(verbs); i++) {
        const struct verb *verb = &verbs[i];
        size_t at = verb->group ? 1 : 0;
        if (args->rest_count == verb->rest_count &&
            (!verb->group || strcmp(args->rest[0], verb->group) == 0) &&
            strcmp(args->rest[at], verb->name) == 0)
            return verb;
    }
    return NULL;
}

/* Those of the data directory, whatever project has them. */
static int list_here(const struct options *options)
{
    struct cn_err err = {0};
    struct cn_api api;
    struct cn_json *answer = NULL;
    struct cn_project project = {0};
    const char *data = options->project.data;
    int rc = data ? 0
                  : cn_project_open(&project, options->config ? options->config : ".",
                                    &options->project, &err);
    if (rc == 0)
        rc = cn_api_open(&api, data ? data : project.data, true, &err);
    if (rc == 0) {
        rc = cn_api_call(&api, "GET", "/api/d1", NULL, &answer, &err);
        cn_api_close(&api);
    }
    const struct cn_json *list = cn_json_find(answer, "databases");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const char *name = cn_json_text(item, "name"), *id = cn_json_text(item, "id");
        if (options->json)
            cn_print_line(item);
        else
            printf("%s%s%s\n", name ? name : id, name ? "  " : "", name ? id : "");
    }
    cn_json_free(answer);
    if (project.config)
        cn_project_close(&project);
    return cn_print_outcome(rc, &err);
}

/* list and create, which name no database of a project; -1: another verb. */
static int run_resource(const struct cn_args *args)
{
    const struct options *options = args->options;
    const char *data = options->project.data;
    struct cn_remote_options remote = {.server = options->server,
                                       .data = options->server ? data : cn_args_data(data),
                                       .json = options->json};
    if (args->rest_count == 1 && strcmp(args->rest[0], "list") == 0)
        return options->server ? cn_resource_main(&remote, "d1", "list", NULL) : list_here(options);
    if (args->rest_count == 2 && strcmp(args->rest[0], "create") == 0)
        return cn_resource_main(&remote, "d1", "create", args->rest[1]);
    return -1;
}

static int run(const struct cn_args *args)
{
    int status = run_resource(args);
    if (status >= 0)
        return status;
    const struct verb *verb = find_verb(args);
    if (!verb) {
        fprintf(stderr,
                "cairn: d1 needs one of: list | create NAME | execute NAME | import NAME FILE | "
                "export NAME | info NAME "
                "| migrations list|apply NAME | migrations create NAME MESSAGE | time-travel "
                "info|restore NAME; `cairn help d1` explains them\n");
        return 2;
    }
    struct cn_err err = {0};
    struct cn_d1_cli cli = {.args = args};
    int rc = cli_open(&cli, args->rest[verb->group ? 2 : 1], verb->writes, verb->remote, &err);
    if (rc == 0)
        rc = verb->run(&cli, &err);
    cli_close(&cli);
    if (rc < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    return rc < 0 ? 1 : 0;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(project.data)),
    CN_OPTION_ENV(AT(project.env)),
    CN_OPTION_ALLOW_MISSING(AT(project.allow_missing)),
    {"bookmark", 0, "B", NULL, "the moment: a bookmark of the object", AT(bookmark), 0},
    CN_OPTION_SERVER(AT(server)),
    CN_OPTION_JSON(AT(json)),
    CN_OPTION_CONFIG(AT(config)),
    {"command", 0, "SQL", NULL, "execute: these statements", AT(command), 0},
    {"file", 0, "FILE", NULL, "execute: the statements of a file", AT(file), 0},
    {"output", 0, "FILE", NULL, "export: where to (-: standard output)", AT(output), 0},
    {"table", 0, "NAME", NULL, "export: only this table", AT(table), 0},
    {"no-schema", 0, NULL, NULL, "export: only rows", AT(no_schema), 0},
    {"no-data", 0, NULL, NULL, "export: only the schema", AT(no_data), 0},
    {"timestamp", 0, "T", NULL, "time-travel: " CN_WHEN_HELP, AT(timestamp), 0},
    CN_OPTION_YES(AT(ignored)),
    CN_OPTION_LOCAL(AT(ignored)),
    CN_OPTION_REMOTE(AT(ignored)),
};

const struct cn_command cn_d1_command = {
    .name = "d1",
    .usage = "list|create|execute|import|export|info|migrations|time-travel ... [OPTIONS]",
    .summary = "query D1 databases, apply migrations, export, go back in time",
    .text =
        "Works on the D1 databases of a project (the current folder, or --config), also while a "
        "server\n"
        "serves it. NAME is a database_name, a binding or a database_id. Verbs and options are\n"
        "wrangler's.\n\n"
        "  cairn d1 list                              those of the data directory, or of --server\n"
        "  cairn d1 create NAME                       for workers that are deployed to a server\n"
        "  cairn d1 execute NAME --command SQL        runs statements, prints their rows\n"
        "  cairn d1 execute NAME --file FILE          runs a file as one transaction\n"
        "  cairn d1 import NAME FILE                  the same\n"
        "  cairn d1 export NAME --output FILE         writes schema and rows as SQL\n"
        "  cairn d1 info NAME                         its size, tables, bookmark\n"
        "  cairn d1 migrations create NAME MESSAGE    makes an empty, numbered file\n"
        "  cairn d1 migrations list NAME              what is not applied yet\n"
        "  cairn d1 migrations apply NAME             applies it, each file as one transaction\n"
        "  cairn d1 time-travel info NAME             the bookmark of now, or of --timestamp\n"
        "  cairn d1 time-travel restore NAME          makes it what it was at --bookmark or\n"
        "                                             --timestamp; prints the bookmark that undoes "
        "this",
    .rest_max = 4,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
