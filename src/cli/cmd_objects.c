/* SPDX-License-Identifier: Apache-2.0 */
/* cairn objects ...: the objects of a data directory, whether a server uses it or not (cli/api.h).
 * What each verb does is in its row of the table below and in the help text of main.c. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/api.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/verb.h"
#include "cli/when.h"

struct options {
    const char *data, *bookmark, *time, *prefix;
    bool force, json, empty;
};

struct command {
    struct cn_api api;
    const struct cn_args *args;
    const struct options *options; /* of it */
    struct cn_buf target, body;
    struct cn_json *answer; /* owned, the last one */
};

/* Begins a target: /api/objects/NAMESPACE/OBJECT and what follows. */
static void object_target(struct command *command, const char *suffix)
{
    cn_buf_clear(&command->target);
    cn_buf_append_str(&command->target, "/api/objects/");
    cn_api_append_param(&command->target, NULL, command->args->rest[1]);
    cn_buf_append_byte(&command->target, '/');
    cn_api_append_param(&command->target, NULL, command->args->rest[2]);
    cn_buf_append_str(&command->target, suffix);
}

static int call(struct command *command, const char *method, struct cn_err *err)
{
    cn_json_free(command->answer);
    command->answer = NULL;
    return cn_api_call(&command->api, method, cn_buf_text(&command->target),
                       command->body.size ? cn_buf_text(&command->body) : NULL, &command->answer,
                       err);
}

/* --- list ------------------------------------------------------------------------------------ */

static void print_entry(const struct cn_json *entry)
{
    char changed[32], alarm[32];
    const struct cn_json *alarm_time = cn_json_find(entry, "alarm");
    const char *name = cn_json_text(entry, "name");
    cn_print_time(cn_json_int(entry, "changed"), changed);
    printf("%s  %s  %10" PRId64 "  %-20s", cn_json_text(entry, "namespace"),
           cn_json_text(entry, "id"), cn_json_int(entry, "size"), changed);
    if (alarm_time && alarm_time->kind == CN_JSON_INT) {
        cn_print_time(alarm_time->integer, alarm);
        printf("  alarm  %-20s", alarm);
    }
    if (name)
        printf("  %s", name);
    putchar('\n');
}

static int list_namespace(struct command *command, const char *namespace_name, struct cn_err *err)
{
    char *cursor = NULL;
    int rc;
    do {
        cn_buf_clear(&command->target);
        cn_buf_append_str(&command->target, "/api/objects?limit=1000&");
        cn_api_append_param(&command->target, "namespace", namespace_name);
        if (command->options->prefix) {
            cn_buf_append_byte(&command->target, '&');
            cn_api_append_param(&command->target, "prefix", command->options->prefix);
        }
        if (cursor) {
            cn_buf_append_byte(&command->target, '&');
            cn_api_append_param(&command->target, "cursor", cursor);
        }
        cn_free(cursor);
        cursor = NULL;
        rc = call(command, "GET", err);
        const struct cn_json *objects = cn_json_find(command->answer, "objects");
        for (const struct cn_json *entry = objects ? objects->first : NULL; entry;
             entry = entry->next) {
            if (command->options->json)
                cn_print_line(entry);
            else
                print_entry(entry);
        }
        const char *next = cn_json_text(command->answer, "cursor");
        if (next)
            cursor = cn_strdup(next);
    } while (rc == 0 && cursor);
    cn_free(cursor);
    return rc;
}

static int run_list(struct command *command, struct cn_err *err)
{
    if (command->args->rest_count > 1)
        return list_namespace(command, command->args->rest[1], err);
    cn_buf_append_str(&command->target, "/api/namespaces");
    int rc = call(command, "GET", err);
    struct cn_json *all = command->answer;
    command->answer = NULL;
    const struct cn_json *names = cn_json_find(all, "namespaces");
    for (const struct cn_json *item = names ? names->first : NULL; item && rc == 0;
         item = item->next)
        rc = list_namespace(command, cn_json_text(item, "name"), err);
    cn_json_free(all);
    return rc;
}

/* --- inspect and sql ------------------------------------------------------------------------- */

static void print_field(const struct cn_json *object, const char *name, bool is_time)
{
    char text[32];
    const struct cn_json *value = cn_json_find(object, name);
    if (!value || value->kind == CN_JSON_NULL)
        return;
    printf("%-13s", name);
    if (is_time && value->kind == CN_JSON_INT) {
        cn_print_time(value->integer, text);
        puts(text);
    } else if (value->kind == CN_JSON_STRING) {
        puts(value->text);
    } else {
        cn_print_line(value);
    }
}

static int run_inspect(struct command *command, struct cn_err *err)
{
    object_target(command, "");
    int rc = call(command, "GET", err);
    if (rc < 0)
        return rc;
    if (command->options->json) {
        cn_print_line(command->answer);
        return 0;
    }
    static const struct {
        const char *name;
        bool is_time;
    } fields[] = {{"namespace", false},   {"id", false},     {"name", false}, {"size", false},
                  {"created", true},      {"changed", true}, {"alarm", true}, {"bookmark", false},
                  {"historySince", true}, {"keys", false}};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        print_field(command->answer, fields[i].name, fields[i].is_time);
    const struct cn_json *tables = cn_json_find(command->answer, "tables");
    for (const struct cn_json *table = tables ? tables->first : NULL; table; table = table->next)
        printf("%-13s%s: %" PRId64 " rows\n", "table", cn_json_text(table, "name"),
               cn_json_int(table, "rows"));
    const struct cn_json *sockets = cn_json_find(command->answer, "sockets");
    const struct cn_json *hibernated = cn_json_find(sockets, "hibernated");
    if (cn_json_int(sockets, "count"))
        printf("%-13s%" PRId64 "%s\n", "sockets", cn_json_int(sockets, "count"),
               hibernated && hibernated->boolean ? ", hibernated" : "");
    return 0;
}

static void print_rows(const struct cn_json *result)
{
    const struct cn_json *columns = cn_json_find(result, "columns");
    const struct cn_json *rows = cn_json_find(result, "rows");
    struct cn_table table;
    size_t count = 0;
    for (const struct cn_json *name = columns->first; name; name = name->next)
        count++;
    if (count == 0) {
        printf("%" PRId64 " rows written\n", cn_json_int(result, "rowsWritten"));
        return;
    }
    cn_table_init(&table, count);
    for (const struct cn_json *name = columns->first; name; name = name->next)
        cn_table_add(&table, name->text, name->size);
    for (const struct cn_json *row = rows->first; row; row = row->next) {
        for (const struct cn_json *cell = row->first; cell; cell = cell->next)
            cn_table_add_json(&table, cell);
    }
    cn_table_print(&table);
}

/* Each row as an object with the columns as names. */
static void print_row_lines(const struct cn_json *result)
{
    const struct cn_json *rows = cn_json_find(result, "rows");
    struct cn_buf line = {0};
    for (const struct cn_json *row = rows->first; row; row = row->next) {
        const struct cn_json *name = cn_json_find(result, "columns")->first;
        cn_buf_clear(&line);
        for (const struct cn_json *cell = row->first; cell; cell = cell->next, name = name->next) {
            cn_buf_append_byte(&line, line.size ? ',' : '{');
            cn_buf_append_json(&line, name->text, name->size);
            cn_buf_append_byte(&line, ':');
            cn_json_write(&line, cell);
        }
        cn_buf_append_str(&line, line.size ? "}" : "{}");
        puts(cn_buf_text(&line));
    }
    cn_buf_fini(&line);
}

static int run_sql(struct command *command, struct cn_err *err)
{
    const char *sql = command->args->rest[3];
    object_target(command, "/sql");
    cn_buf_append_str(&command->body, "{\"sql\":");
    cn_buf_append_json(&command->body, sql, strlen(sql));
    cn_buf_append_byte(&command->body, '}');
    int rc = call(command, "POST", err);
    if (rc < 0)
        return rc;
    const struct cn_json *results = cn_json_find(command->answer, "results");
    for (const struct cn_json *result = results->first; result; result = result->next) {
        if (command->options->json)
            print_row_lines(result);
        else
            print_rows(result);
    }
    const struct cn_json *truncated = cn_json_find(command->answer, "truncated");
    if (truncated && truncated->boolean)
        fprintf(stderr, "cairn: there are more rows than are shown; use LIMIT and OFFSET\n");
    return 0;
}

/* --- export, restore, delete ----------------------------------------------------------------- */

static int run_export(struct command *command, struct cn_err *err)
{
    const struct options *options = command->options;
    struct cn_progress progress;
    struct cn_verb_file sink = {.path = command->args->rest[3], .progress = &progress};
    if (options->bookmark && options->time)
        return cn_err_set(err, CN_EINVALID, "--bookmark and --time exclude each other");
    object_target(command, "/export?");
    char time[24];
    if (options->time && cn_when_text(options->time, time, err) < 0)
        return err->code;
    if (options->bookmark || options->time)
        cn_api_append_param(&command->target, options->bookmark ? "bookmark" : "time",
                            options->bookmark ? options->bookmark : time);
    sink.fd = open(sink.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (sink.fd < 0)
        return cn_err_errno(err, errno, "cannot create %s", sink.path);
    cn_progress_begin(&progress, "exporting", 0, true);
    int rc =
        cn_api_fetch(&command->api, cn_buf_text(&command->target), cn_verb_write_file, &sink, err);
    cn_progress_end(&progress);
    if (rc == 0 && fsync(sink.fd) < 0)
        rc = cn_err_errno(err, errno, "cannot write %s", sink.path);
    close(sink.fd);
    if (rc < 0)
        (void)unlink(sink.path); /* half a copy is of no use */
    return rc;
}

static int run_restore(struct command *command, struct cn_err *err)
{
    const struct options *options = command->options;
    if (options->bookmark && options->time)
        return cn_err_set(err, CN_EINVALID, "--bookmark and --time exclude each other");
    if (!options->bookmark && !options->time)
        return cn_err_set(err, CN_EINVALID, "to which moment? --bookmark B or --time T");
    char time[24];
    if (options->time && cn_when_text(options->time, time, err) < 0)
        return err->code;
    const char *moment = options->bookmark ? options->bookmark : time;
    object_target(command, "/restore");
    cn_buf_printf(&command->body, "{\"%s\":", options->bookmark ? "bookmark" : "time");
    cn_buf_append_json(&command->body, moment, strlen(moment));
    cn_buf_append_str(&command->body, options->empty ? ",\"empty\":true}" : "}");
    int rc = call(command, "POST", err);
    if (rc == 0 && options->json)
        cn_print_line(command->answer);
    else if (rc == 0)
        printf("restored; this bookmark undoes it: %s\n", cn_json_text(command->answer, "undo"));
    return rc;
}

static bool confirmed(const struct command *command)
{
    char answer[16];
    if (command->options->force)
        return true;
    if (!isatty(STDIN_FILENO))
        return false;
    fprintf(stderr, "Delete %s %s? [y/N] ", command->args->rest[1], command->args->rest[2]);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int run_delete(struct command *command, struct cn_err *err)
{
    if (!confirmed(command))
        return cn_err_set(err, CN_EDENIED, "nothing was deleted; --force does it unasked");
    object_target(command, "");
    int rc = call(command, "DELETE", err);
    if (rc == 0 && command->options->json)
        cn_print_line(command->answer);
    else if (rc == 0)
        printf("deleted; this bookmark undoes it: %s\n", cn_json_text(command->answer, "undo"));
    return rc;
}

/* --- the command ----------------------------------------------------------------------------- */

static const struct verb {
    const char *name;
    size_t rest_min, rest_max;
    bool writes;
    int (*run)(struct command *command, struct cn_err *err);
} verbs[] = {{"list", 1, 2, false, run_list},      {"inspect", 3, 3, false, run_inspect},
             {"sql", 4, 4, true, run_sql},         {"export", 4, 4, false, run_export},
             {"restore", 3, 3, true, run_restore}, {"delete", 3, 3, true, run_delete}};

static int usage(void)
{
    fprintf(stderr, "cairn: objects needs one of: list [NAMESPACE] | inspect NAMESPACE OBJECT | "
                    "sql NAMESPACE OBJECT SQL | export NAMESPACE OBJECT FILE | restore NAMESPACE "
                    "OBJECT | delete NAMESPACE OBJECT; `cairn help objects` explains them\n");
    return 2;
}

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    const struct verb *verb = NULL;
    for (size_t i = 0; args->rest_count > 0 && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(args->rest[0], verbs[i].name) == 0)
            verb = &verbs[i];
    }
    if (!verb || args->rest_count < verb->rest_min || args->rest_count > verb->rest_max)
        return usage();
    struct cn_err err = {0};
    struct command command = {.args = args, .options = options};
    int rc = cn_api_open(&command.api, options->data, !verb->writes, &err);
    if (rc == 0)
        rc = verb->run(&command, &err);
    cn_json_free(command.answer);
    cn_buf_fini(&command.target);
    cn_buf_fini(&command.body);
    cn_api_close(&command.api);
    return cn_print_outcome(rc, &err);
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA_FOUND(AT(data)),
    {"bookmark", 0, "B", NULL, "the moment: a bookmark of the object", AT(bookmark), 0},
    {"time", 0, "T", NULL, "the moment: " CN_WHEN_HELP, AT(time), 0},
    {"empty", 0, NULL, NULL, "restore: to a time at which the object had no data", AT(empty), 0},
    CN_OPTION_PREFIX(AT(prefix)),
    CN_OPTION_FORCE(AT(force)),
    CN_OPTION_JSON(AT(json)),
};

const struct cn_command cn_cmd_objects = {
    .name = "objects",
    .usage = "list|inspect|sql|export|restore|delete ... [OPTIONS]",
    .summary = "list objects; look into one, export, restore or delete it",
    .text =
        "Works on a data directory, also while a server uses it.\n\n"
        "  cairn objects list [NAMESPACE]              what there is\n"
        "  cairn objects inspect NAMESPACE OBJECT      its tables, alarm, bookmark\n"
        "  cairn objects sql NAMESPACE OBJECT SQL      runs statements on its database\n"
        "  cairn objects export NAMESPACE OBJECT FILE  a plain SQLite file, of now or of a moment\n"
        "  cairn objects restore NAMESPACE OBJECT      makes it what it was at a moment; prints "
        "the\n"
        "                                              bookmark that undoes this\n"
        "  cairn objects delete NAMESPACE OBJECT       database, alarm and name go; prints the\n"
        "                                              bookmark that undoes this\n\n"
        "OBJECT is an id (64 hexadecimal digits) or a name. A moment is --bookmark or --time.",
    .rest_max = 4,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
