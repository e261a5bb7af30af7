/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_secret.c - `cairn secret`: secrets of a worker on a server. A value is typed or comes on
 * standard input, never on the command line. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/api.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/prompt.h"
#include "cli/remote.h"
#include "config/config.h"
#include "config/confnode.h"
#include "config/files.h"

#define SECRET_MAX ((size_t)64 << 10)
#define FILE_MAX ((size_t)4 << 20)

static int send_secrets(struct cn_remote *remote, const char *worker, const char *method,
                        const char *rest, struct cn_buf *body, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    char *target = cn_remote_script(worker, rest);
    int rc = body ? cn_remote_send(remote, method, target, body, &result, err)
                  : cn_remote_ask(remote, method, target, &result, err);
    cn_free(target);
    return rc;
}

static void put_secret(struct cn_buf *body, const char *name, const char *text, size_t size)
{
    cn_buf_append_str(body, "{\"type\":\"secret_text\",\"name\":");
    cn_buf_append_json(body, name, strlen(name));
    cn_buf_append_str(body, ",\"text\":");
    cn_buf_append_json(body, text, size);
    cn_buf_append_byte(body, '}');
}

static int run_put(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
                   struct cn_err *err)
{
    char *worker = cn_remote_worker(args->options, err);
    if (!worker)
        return err->code;
    char *question = cn_sprintf("Value of %s: ", rest[0]);
    char *text = cn_prompt_secret(question, SECRET_MAX, err);
    struct cn_buf body = {0};
    int rc = text ? 0 : err->code;
    if (rc == 0) {
        put_secret(&body, rest[0], text, strlen(text));
        rc = send_secrets(remote, worker, "PUT", "/secrets", &body, err);
    }
    if (rc == 0)
        printf("%s has the secret %s now\n", worker, rest[0]);
    cn_buf_fini(&body);
    cn_free(text);
    cn_free(question);
    cn_free(worker);
    return rc;
}

static int run_list(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
                    struct cn_err *err)
{
    (void)rest;
    const struct cn_remote_options *options = args->options;
    const struct cn_json *result = NULL;
    char *worker = cn_remote_worker(options, err);
    char *target = worker ? cn_remote_script(worker, "/secrets") : NULL;
    int rc = target ? cn_remote_ask(remote, "GET", target, &result, err) : err->code;
    for (const struct cn_json *item = rc == 0 && result ? result->first : NULL; item;
         item = item->next) {
        const char *name = cn_json_text(item, "name");
        if (options->json) {
            cn_print_line(item);
            continue;
        }
        cn_print_shown(name ? name : "");
        printf("\n");
    }
    if (rc == 0 && !options->json && (!result || !result->first))
        printf("%s has no secrets\n", worker);
    if (rc < 0 && worker)
        cn_remote_context(err, worker);
    cn_free(target);
    cn_free(worker);
    return rc;
}

static int run_delete(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
                      struct cn_err *err)
{
    const struct cn_remote_options *options = args->options;
    char *worker = cn_remote_worker(options, err);
    if (!worker)
        return err->code;
    char *question = cn_sprintf("Delete the secret %s of %s?", rest[0], worker);
    struct cn_buf target = {0};
    cn_buf_append_str(&target, "/secrets/");
    cn_api_append_param(&target, NULL, rest[0]);
    int rc = cn_remote_confirm(options, question, err);
    if (rc == 0)
        rc = send_secrets(remote, worker, "DELETE", cn_buf_text(&target), NULL, err);
    if (rc == 0)
        printf("%s has no secret %s any more\n", worker, rest[0]);
    cn_buf_fini(&target);
    cn_free(question);
    cn_free(worker);
    return rc;
}

/* --- many at once ---------------------------------------------------------------------------- */

static int read_source(const char *path, struct cn_buf *text, struct cn_err *err)
{
    if (path && strcmp(path, "-") != 0)
        return cn_files_read(path, FILE_MAX, text, err);
    char *all = cn_prompt_secret("", FILE_MAX, err);
    if (!all)
        return err->code;
    cn_buf_append_str(text, all);
    cn_free(all);
    return 0;
}

/* {"NAME":"VALUE" or null}, or lines NAME=VALUE. */
static struct cn_confnode *parse_source(const char *path, const struct cn_buf *text,
                                        struct cn_err *err)
{
    const char *bytes = text->data ? (const char *)text->data : "";
    size_t blank = strspn(bytes, " \t\r\n");
    const char *name = path ? path : "standard input";
    return bytes[blank] == '{' ? cn_jsonc_parse(name, bytes, text->size, err)
                               : cn_dotenv_parse(name, bytes, text->size, err);
}

static int write_bulk(const struct cn_confnode *table, struct cn_buf *body, struct cn_err *err)
{
    if (table->kind != CN_CONF_TABLE || !table->count)
        return cn_err_set(err, CN_EINVALID, "there is no secret in it");
    cn_buf_append_str(body, "{\"secrets\":{");
    for (size_t i = 0; i < table->count; i++) {
        const struct cn_confnode *item = table->items[i];
        cn_buf_append_str(body, i ? "," : "");
        cn_buf_append_json(body, item->key, strlen(item->key));
        cn_buf_append_byte(body, ':');
        if (item->kind == CN_CONF_STRING)
            put_secret(body, item->key, item->text, item->length);
        else if (item->kind == CN_CONF_NULL)
            cn_buf_append_str(body, "null");
        else
            return cn_err_set(err, CN_EINVALID, "%s: a secret is a text, or null to delete it",
                              item->key);
    }
    cn_buf_append_str(body, "}}");
    return 0;
}

static int run_bulk(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
                    struct cn_err *err)
{
    char *worker = cn_remote_worker(args->options, err);
    if (!worker)
        return err->code;
    struct cn_buf text = {0}, body = {0};
    struct cn_confnode *table = NULL;
    int rc = read_source(rest[0], &text, err);
    if (rc == 0)
        cn_buf_text(&text);
    if (rc == 0 && !(table = parse_source(rest[0], &text, err)))
        rc = err->code;
    if (rc == 0)
        rc = write_bulk(table, &body, err);
    if (rc == 0)
        rc = send_secrets(remote, worker, "PATCH", "/secrets-bulk", &body, err);
    if (rc == 0)
        printf("%zu secrets of %s were changed together\n", table->count, worker);
    cn_confnode_free(table);
    cn_buf_fini(&text);
    cn_buf_fini(&body);
    cn_free(worker);
    return rc;
}

static int run(const struct cn_args *args)
{
    static const struct cn_remote_verb verbs[] = {
        {"put", 1, 1, run_put},
        {"list", 0, 0, run_list},
        {"delete", 1, 1, run_delete},
        {"bulk", 0, 1, run_bulk},
    };
    return cn_remote_main(args, verbs, CN_ARRAY_COUNT(verbs),
                          "secret needs one of: put NAME | list | delete NAME | bulk [FILE]; "
                          "`cairn help secret` explains them");
}

#define AT(member) offsetof(struct cn_remote_options, member)

static const struct cn_option flags[] = {
    CN_OPTIONS_REMOTE,
    CN_OPTION_JSON(AT(json)),
    CN_OPTION_REMOTE_YES("delete: without asking"),
};

const struct cn_command cn_cmd_secret = {
    .name = "secret",
    .usage = "put NAME | list | delete NAME | bulk [FILE] [OPTIONS]",
    .summary = "secrets of a worker on a server",
    .text = "  cairn secret put NAME       asks for the value, or reads standard input\n"
            "  cairn secret list           their names\n"
            "  cairn secret delete NAME\n"
            "  cairn secret bulk [FILE]    {\"NAME\": \"value\", \"OLD\": null} or NAME=value "
            "lines\n\n"
            "Each change is a version, which is deployed. Of a project that a server has on its "
            "disk, secrets\n"
            "are in .dev.vars or .env beside its configuration.",
    .rest_max = 2,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct cn_remote_options),
    .run = run,
};
