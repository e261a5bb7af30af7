/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "config/config.h"
#include "config/files.h"
#include "server/data.h"

/* --- the command ----------------------------------------------------------------------------- */

static const struct cn_verb *find_verb(const struct cn_args *args, const struct cn_verb *verbs,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct cn_verb *verb = &verbs[i];
        size_t words = verb->group ? 2 : 1;
        if (args->rest_count < words + verb->rest_min || args->rest_count > words + verb->rest_max)
            continue;
        if ((!verb->group || strcmp(args->rest[0], verb->group) == 0) &&
            strcmp(args->rest[words - 1], verb->name) == 0)
            return verb;
    }
    return NULL;
}

static int open_cli(struct cn_verb_run *cli, bool writes, struct cn_err *err)
{
    const struct cn_verb_options *common = cli->common;
    const char *data = common->project.data;
    if (common->config || common->binding) {
        int rc = cn_project_open(&cli->project, common->config ? common->config : ".",
                                 &common->project, err);
        if (rc == 0 && writes)
            rc = cn_data_make(cli->project.data, err);
        if (rc < 0)
            return rc;
        data = cli->project.data;
    }
    return cn_api_open(&cli->api, data, !writes, err);
}

int cn_verb_main(const struct cn_args *args, const struct cn_verb *verbs, size_t count,
                 const char *usage)
{
    const struct cn_verb *verb = find_verb(args, verbs, count);
    if (!verb) {
        fprintf(stderr, "cairn: %s\n", usage);
        return 2;
    }
    struct cn_err err = {0};
    size_t words = verb->group ? 2 : 1;
    struct cn_verb_run cli = {.args = args,
                              .common = args->options,
                              .rest = args->rest + words,
                              .rest_count = args->rest_count - words};
    int rc = open_cli(&cli, verb->writes, &err);
    if (rc == 0)
        rc = verb->run(&cli, &err);
    cn_json_free(cli.answer);
    cn_buf_fini(&cli.target);
    cn_buf_fini(&cli.body);
    cn_api_close(&cli.api);
    if (cli.project.config)
        cn_project_close(&cli.project);
    return cn_print_outcome(rc, &err);
}

/* --- calls ----------------------------------------------------------------------------------- */

void cn_verb_target(struct cn_verb_run *cli, const char *path, ...)
{
    va_list parts;
    const char *part;
    cn_buf_clear(&cli->target);
    cn_buf_clear(&cli->body);
    cn_buf_append_str(&cli->target, path);
    va_start(parts, path);
    while ((part = va_arg(parts, const char *))) {
        cn_buf_append_byte(&cli->target, '/');
        cn_api_append_param(&cli->target, NULL, part);
    }
    va_end(parts);
}

void cn_verb_param(struct cn_verb_run *cli, const char *name, const char *value)
{
    if (!value)
        return;
    bool first = !memchr(cli->target.data, '?', cli->target.size);
    cn_buf_append_byte(&cli->target, first ? '?' : '&');
    cn_api_append_param(&cli->target, name, value);
}

int cn_verb_call(struct cn_verb_run *cli, const char *method, struct cn_err *err)
{
    cn_json_free(cli->answer);
    cli->answer = NULL;
    return cn_api_call(&cli->api, method, cn_buf_text(&cli->target),
                       cli->body.size ? cn_buf_text(&cli->body) : NULL, &cli->answer, err);
}

int cn_verb_list(struct cn_verb_run *cli, const char *member,
                 int (*each)(void *data, const struct cn_json *entry, struct cn_err *err),
                 void *data, struct cn_err *err)
{
    size_t size = cli->target.size;
    const char *cursor;
    int rc;
    do {
        rc = cn_verb_call(cli, "GET", err);
        const struct cn_json *list = cn_json_find(cli->answer, member);
        for (const struct cn_json *entry = list ? list->first : NULL; entry && rc == 0;
             entry = entry->next)
            rc = each(data, entry, err);
        cursor = cn_json_text(cli->answer, "cursor");
        cli->target.size = size;
        cn_verb_param(cli, "cursor", cursor);
    } while (rc == 0 && cursor);
    return rc;
}

int cn_verb_print(void *data, const struct cn_json *entry, struct cn_err *err)
{
    (void)data, (void)err;
    cn_print_line(entry);
    return 0;
}

int cn_verb_confirm(struct cn_verb_run *cli, const char *question, struct cn_err *err)
{
    char answer[16];
    if (cli->common->force)
        return 0;
    if (isatty(STDIN_FILENO)) {
        fprintf(stderr, "%s [y/N] ", question);
        if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
            return 0;
    }
    return cn_err_set(err, CN_EDENIED, "nothing was done; --force does it unasked");
}

/* --- tables ---------------------------------------------------------------------------------- */

void cn_verb_cell(struct cn_table *table, const char *text)
{
    cn_table_add(table, text ? text : "", text ? strlen(text) : 0);
}

void cn_verb_size_cell(struct cn_table *table, int64_t bytes)
{
    char text[32];
    cn_print_size((uint64_t)bytes, text);
    cn_verb_cell(table, text);
}

void cn_verb_time_cell(struct cn_table *table, const struct cn_json *object, const char *name)
{
    const struct cn_json *time = cn_json_find(object, name);
    char text[32] = "";
    if (time && time->kind == CN_JSON_INT)
        cn_print_time(time->integer, text);
    cn_verb_cell(table, text);
}

/* --- files ----------------------------------------------------------------------------------- */

int64_t cn_verb_read_file(void *data, void *bytes, size_t size, struct cn_err *err)
{
    struct cn_verb_file *file = data;
    ssize_t count;
    do
        count = read(file->fd, bytes, size);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return cn_err_errno(err, errno, "cannot read %s", file->path);
    if (file->progress)
        cn_progress_add(file->progress, (uint64_t)count);
    return count;
}

int cn_verb_write_file(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    struct cn_verb_file *file = data;
    if (file->progress)
        cn_progress_add(file->progress, size);
    return cn_files_write_all(file->fd, file->path, bytes, size, err);
}
