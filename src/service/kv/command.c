/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/command.c - cairn kv ...: KV namespaces, whether a server runs or not (cli/api.h).
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
#include "config/config.h"
#include "config/files.h"
#include "service/kv/config.h"
#include "service/kv/kv.h"
#include "text/base64.h"

struct options {
    struct cn_verb_options common; /* first: verb.c reads it */
    const char *namespace_id, *path, *prefix, *ttl, *expiration, *metadata;
    bool ignored; /* wrangler's, without meaning here */
};

static const struct options *given(const struct cn_verb_run *cli)
{
    return cli->args->options;
}

#define BULK_FILE_MAX ((size_t)1 << 30)

/* --- the namespace --------------------------------------------------------------------------- */

/* The id that --binding or --namespace-id means; owned. NULL with an error. */
static char *namespace_id(struct cn_verb_run *cli, struct cn_err *err)
{
    const struct options *options = given(cli);
    const struct cn_config *config = cli->project.config;
    if (!options->common.binding == !options->namespace_id) {
        cn_err_set(err, CN_EINVALID, "which namespace? --binding NAME or --namespace-id ID");
        return NULL;
    }
    if (options->namespace_id)
        return cn_strdup(options->namespace_id);
    const struct cn_kv_entries *entries = cn_kv_entries(config);
    for (size_t i = 0; i < entries->count; i++) {
        const struct cn_config_kv *kv = &entries->items[i];
        if (strcmp(kv->binding, options->common.binding) == 0)
            return cn_config_kv_id(config, kv);
    }
    cn_err_set(err, CN_ENOTFOUND, "%s has no KV namespace with the binding %s", config->path,
               options->common.binding);
    return NULL;
}

/* A namespace of the project that was never served comes into being when it is written to. */
static int make_namespace(struct cn_verb_run *cli, const char *id, struct cn_err *err)
{
    if (!cli->common->binding)
        return 0;
    cn_verb_target(cli, "/api/kv", id, NULL);
    return cn_verb_call(cli, "PUT", err);
}

static int add_namespace(void *data, const struct cn_json *entry, struct cn_err *err)
{
    (void)err;
    struct cn_table *table = data;
    cn_verb_cell(table, cn_json_text(entry, "id"));
    cn_verb_cell(table, cn_json_text(entry, "title"));
    cn_verb_size_cell(table, cn_json_int(entry, "bytes"));
    return 0;
}

static int run_namespaces(struct cn_verb_run *cli, struct cn_err *err)
{
    struct cn_table table;
    cn_verb_target(cli, "/api/kv", NULL);
    if (cli->common->json)
        return cn_verb_list(cli, "namespaces", cn_verb_print, NULL, err);
    cn_table_init(&table, 3);
    cn_verb_cell(&table, "ID");
    cn_verb_cell(&table, "TITLE");
    cn_verb_cell(&table, "ON DISK");
    int rc = cn_verb_list(cli, "namespaces", add_namespace, &table, err);
    cn_table_print(&table);
    return rc;
}

static int run_create(struct cn_verb_run *cli, struct cn_err *err)
{
    cn_verb_target(cli, "/api/kv", cli->rest[0], NULL);
    int rc = cn_verb_call(cli, "PUT", err);
    if (rc == 0 && cli->common->json)
        cn_print_line(cli->answer);
    else if (rc == 0)
        printf("created the namespace with the id %s\n", cli->rest[0]);
    return rc;
}

/* --- keys ------------------------------------------------------------------------------------ */

static int print_key(void *data, const struct cn_json *entry, struct cn_err *err)
{
    (void)data, (void)err;
    const struct cn_json *name = cn_json_find(entry, "name");
    const struct cn_json *expiration = cn_json_find(entry, "expiration");
    const struct cn_json *metadata = cn_json_find(entry, "metadata");
    struct cn_buf line = {0};
    cn_print_escape(&line, name->text, name->size);
    if (expiration) {
        char text[32];
        cn_print_time(expiration->integer * 1000, text);
        cn_buf_printf(&line, "  expires %s", text);
    }
    if (metadata) {
        cn_buf_append_str(&line, "  ");
        cn_json_write(&line, metadata);
    }
    puts(cn_buf_text(&line));
    cn_buf_fini(&line);
    return 0;
}

static int run_list(struct cn_verb_run *cli, struct cn_err *err)
{
    char *id = namespace_id(cli, err);
    if (!id)
        return err->code;
    cn_verb_target(cli, "/api/kv", id, "keys", NULL);
    cn_verb_param(cli, "limit", "1000");
    cn_verb_param(cli, "prefix", given(cli)->prefix);
    cn_free(id);
    return cn_verb_list(cli, "keys", cli->common->json ? cn_verb_print : print_key, NULL, err);
}

static int run_get(struct cn_verb_run *cli, struct cn_err *err)
{
    char *id = namespace_id(cli, err);
    if (!id)
        return err->code;
    struct cn_verb_file out = {STDOUT_FILENO, "standard output", NULL};
    cn_verb_target(cli, "/api/kv", id, "values", cli->rest[0], NULL);
    cn_free(id);
    return cn_api_fetch(&cli->api, cn_buf_text(&cli->target), cn_verb_write_file, &out, err);
}

static int put_file(struct cn_verb_run *cli, const char *path, struct cn_err *err)
{
    struct cn_progress progress;
    struct cn_verb_file file = {open(path, O_RDONLY | O_CLOEXEC), path, &progress};
    struct stat info;
    if (file.fd < 0 || fstat(file.fd, &info) < 0) {
        int rc = cn_err_errno(err, errno, "cannot read %s", path);
        if (file.fd >= 0)
            close(file.fd);
        return rc;
    }
    struct cn_api_body body = {S_ISREG(info.st_mode) ? info.st_size : -1, cn_verb_read_file, &file};
    cn_progress_begin(&progress, "writing", body.size > 0 ? (uint64_t)body.size : 0, true);
    int rc = cn_api_put(&cli->api, cn_buf_text(&cli->target), &body, &cli->answer, err);
    cn_progress_end(&progress);
    close(file.fd);
    return rc;
}

static int put_text(struct cn_verb_run *cli, const char *value, size_t size, struct cn_err *err)
{
    struct cn_api_bytes text = {value, size};
    struct cn_api_body body = {(int64_t)size, cn_api_read_bytes, &text};
    cn_json_free(cli->answer);
    cli->answer = NULL;
    return cn_api_put(&cli->api, cn_buf_text(&cli->target), &body, &cli->answer, err);
}

static int run_put(struct cn_verb_run *cli, struct cn_err *err)
{
    const struct options *options = given(cli);
    const char *value = cli->rest_count > 1 ? cli->rest[1] : NULL;
    if (!value == !options->path)
        return cn_err_set(err, CN_EINVALID, "which value? VALUE or --path FILE");
    char *id = namespace_id(cli, err);
    if (!id)
        return err->code;
    int rc = make_namespace(cli, id, err);
    cn_verb_target(cli, "/api/kv", id, "values", cli->rest[0], NULL);
    cn_free(id);
    cn_verb_param(cli, "expiration", options->expiration);
    cn_verb_param(cli, "expiration_ttl", options->ttl);
    cn_verb_param(cli, "metadata", options->metadata);
    if (rc == 0) {
        cn_json_free(cli->answer);
        cli->answer = NULL;
        rc = value ? put_text(cli, value, strlen(value), err) : put_file(cli, options->path, err);
    }
    if (rc == 0 && options->common.json)
        cn_print_line(cli->answer);
    else if (rc == 0)
        printf("wrote %" PRId64 " bytes\n", cn_json_int(cli->answer, "bytes"));
    return rc;
}

static int run_delete(struct cn_verb_run *cli, struct cn_err *err)
{
    char *id = namespace_id(cli, err);
    if (!id)
        return err->code;
    cn_verb_target(cli, "/api/kv", id, "values", cli->rest[0], NULL);
    cn_free(id);
    int rc = cn_verb_call(cli, "DELETE", err);
    if (rc == 0 && cli->common->json)
        cn_print_line(cli->answer);
    else if (rc == 0)
        printf("deleted %s\n", cli->rest[0]);
    return rc;
}

/* --- many at once ---------------------------------------------------------------------------- */

/* Reads the array of the file rest[0] and calls `each` with its entries. */
static int each_of_file(struct cn_verb_run *cli, const char *label,
                        int (*each)(struct cn_verb_run *cli, const char *id,
                                    const struct cn_json *entry, struct cn_err *err),
                        const char *id, uint64_t *count, struct cn_err *err)
{
    struct cn_buf text = {0};
    struct cn_progress progress;
    uint64_t total = 0;
    int rc = cn_files_read(cli->rest[0], BULK_FILE_MAX, &text, err);
    struct cn_json *list = rc == 0 ? cn_json_parse((const char *)text.data, text.size, err) : NULL;
    if (rc == 0 && (!list || list->kind != CN_JSON_ARRAY))
        rc = list ? cn_err_set(err, CN_EINVALID, "%s must be a JSON array", cli->rest[0])
                  : cn_err_context(err, "%s", cli->rest[0]);
    for (const struct cn_json *entry = rc == 0 ? list->first : NULL; entry; entry = entry->next)
        total++;
    cn_progress_begin(&progress, label, total, false);
    *count = 0;
    for (const struct cn_json *entry = rc == 0 ? list->first : NULL; entry && rc == 0;
         entry = entry->next) {
        rc = each(cli, id, entry, err);
        if (rc < 0)
            cn_err_context(err, "entry %" PRIu64 " of %s", *count + 1, cli->rest[0]);
        ++*count;
        cn_progress_add(&progress, 1);
    }
    cn_progress_end(&progress);
    cn_json_free(list);
    cn_buf_fini(&text);
    return rc;
}

/* The key of an entry: a text, or an object with a key or a name. */
static const struct cn_json *key_of(const struct cn_json *entry, struct cn_err *err)
{
    const struct cn_json *key = entry;
    if (entry->kind == CN_JSON_OBJECT)
        key = cn_json_find(entry, "key") ? cn_json_find(entry, "key") : cn_json_find(entry, "name");
    if (key && key->kind == CN_JSON_STRING)
        return key;
    cn_err_set(err, CN_EINVALID, "a key is missing");
    return NULL;
}

static int value_target(struct cn_verb_run *cli, const char *id, const struct cn_json *entry,
                        struct cn_err *err)
{
    const struct cn_json *key = key_of(entry, err);
    if (!key)
        return err->code;
    cn_verb_target(cli, "/api/kv", id, "values", NULL);
    cn_buf_append_byte(&cli->target, '/');
    cn_api_append_bytes(&cli->target, key->text, key->size);
    return 0;
}

/* A number or JSON of an entry as a parameter. */
static void entry_param(struct cn_verb_run *cli, const struct cn_json *entry, const char *member,
                        const char *otherwise)
{
    const struct cn_json *value = cn_json_find(entry, member);
    struct cn_buf text = {0};
    if (value && value->kind != CN_JSON_NULL)
        cn_json_write(&text, value);
    else if (otherwise)
        cn_buf_append_str(&text, otherwise);
    if (text.size)
        cn_verb_param(cli, member, cn_buf_text(&text));
    cn_buf_fini(&text);
}

/* {"key","value","expiration"?,"expiration_ttl"?,"metadata"?,"base64"?} */
static int put_entry(struct cn_verb_run *cli, const char *id, const struct cn_json *entry,
                     struct cn_err *err)
{
    const struct cn_json *value = cn_json_find(entry, "value");
    const struct cn_json *base64 = cn_json_find(entry, "base64");
    if (!value || value->kind != CN_JSON_STRING)
        return cn_err_set(err, CN_EINVALID, "\"value\" must be a text");
    int rc = value_target(cli, id, entry, err);
    if (rc < 0)
        return rc;
    entry_param(cli, entry, "expiration", given(cli)->expiration);
    entry_param(cli, entry, "expiration_ttl", given(cli)->ttl);
    entry_param(cli, entry, "metadata", given(cli)->metadata);
    if (!base64 || base64->kind != CN_JSON_BOOL || !base64->boolean)
        return put_text(cli, value->text, value->size, err);
    struct cn_buf bytes = {0};
    rc = cn_base64_decode(&bytes, value->text, value->size)
             ? put_text(cli, (char *)bytes.data, bytes.size, err)
             : cn_err_set(err, CN_EINVALID, "\"value\" is not base64");
    cn_buf_fini(&bytes);
    return rc;
}

static int append_piece(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    (void)err;
    cn_buf_append(data, bytes, size);
    return 0;
}

static int get_entry(struct cn_verb_run *cli, const char *id, const struct cn_json *entry,
                     struct cn_err *err)
{
    struct cn_buf value = {0}, line = {0};
    int rc = value_target(cli, id, entry, err);
    if (rc < 0)
        return rc;
    rc = cn_api_fetch(&cli->api, cn_buf_text(&cli->target), append_piece, &value, err);
    if (rc == 0 || rc == CN_ENOTFOUND) {
        const struct cn_json *key = key_of(entry, err);
        cn_buf_append_json(&line, key->text, key->size);
        cn_buf_append_byte(&line, ':');
        if (rc == 0)
            cn_buf_append_json(&line, value.data ? (char *)value.data : "", value.size);
        else
            cn_buf_append_str(&line, "null");
        printf("%s%s", cli->printed++ ? ",\n" : "", cn_buf_text(&line));
        rc = 0;
    }
    cn_buf_fini(&value);
    cn_buf_fini(&line);
    return rc;
}

static int delete_entry(struct cn_verb_run *cli, const char *id, const struct cn_json *entry,
                        struct cn_err *err)
{
    int rc = value_target(cli, id, entry, err);
    return rc < 0 ? rc : cn_verb_call(cli, "DELETE", err);
}

static int run_bulk_get(struct cn_verb_run *cli, struct cn_err *err)
{
    uint64_t count;
    char *id = namespace_id(cli, err);
    if (!id)
        return err->code;
    putchar('{');
    int rc = each_of_file(cli, "reading", get_entry, id, &count, err);
    puts("}");
    cn_free(id);
    return rc;
}

static int run_bulk_put(struct cn_verb_run *cli, struct cn_err *err)
{
    uint64_t count;
    char *id = namespace_id(cli, err);
    if (!id)
        return err->code;
    int rc = make_namespace(cli, id, err);
    if (rc == 0)
        rc = each_of_file(cli, "writing", put_entry, id, &count, err);
    if (rc == 0)
        printf(cli->common->json ? "{\"written\":%" PRIu64 "}\n" : "wrote %" PRIu64 " keys\n",
               count);
    cn_free(id);
    return rc;
}

static int run_bulk_delete(struct cn_verb_run *cli, struct cn_err *err)
{
    uint64_t count;
    char *id = namespace_id(cli, err);
    if (!id)
        return err->code;
    char *question = cn_sprintf("Delete the keys of %s from %s?", cli->rest[0], id);
    int rc = cn_verb_confirm(cli, question, err);
    if (rc == 0)
        rc = each_of_file(cli, "deleting", delete_entry, id, &count, err);
    if (rc == 0)
        printf(cli->common->json ? "{\"deleted\":%" PRIu64 "}\n" : "deleted %" PRIu64 " keys\n",
               count);
    cn_free(question);
    cn_free(id);
    return rc;
}

/* --- the command ----------------------------------------------------------------------------- */

static int run(const struct cn_args *args)
{
    static const struct cn_verb verbs[] = {
        {"namespace", "list", 0, 0, false, run_namespaces},
        {"namespace", "create", 1, 1, true, run_create},
        {"key", "list", 0, 0, false, run_list},
        {"key", "get", 1, 1, false, run_get},
        {"key", "put", 1, 2, true, run_put},
        {"key", "delete", 1, 1, true, run_delete},
        {"bulk", "get", 1, 1, false, run_bulk_get},
        {"bulk", "put", 1, 1, true, run_bulk_put},
        {"bulk", "delete", 1, 1, true, run_bulk_delete},
    };
    return cn_verb_main(args, verbs, CN_ARRAY_COUNT(verbs),
                        "kv needs one of: namespace list | namespace create ID | key list | key "
                        "get KEY | key put KEY [VALUE] | key delete KEY | bulk get|put|delete "
                        "FILE; `cairn help kv` explains them");
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(common.project.data)),
    CN_OPTION_ENV(AT(common.project.env)),
    CN_OPTION_ALLOW_MISSING(AT(common.project.allow_missing)),
    {"binding", 0, "NAME", NULL, "the namespace: a binding of the project", AT(common.binding), 0},
    {"namespace-id", 0, "ID", NULL, "the namespace: its id", AT(namespace_id), 0},
    {"path", 0, "FILE", NULL, "put: the value is in a file", AT(path), 0},
    {"ttl", 0, "S", NULL, "put: seconds until it expires, at least 60", AT(ttl), 0},
    {"expiration", 0, "T", NULL, "put: when it expires, in seconds since 1970", AT(expiration), 0},
    {"metadata", 0, "JSON", NULL, "put: what list shows with the key", AT(metadata), 0},
    {"text", 0, NULL, NULL, "accepted: values are printed as they are", AT(ignored), 0},
    {"preview", 0, NULL, NULL, "accepted: there are no other namespaces", AT(ignored), 0},
    CN_OPTION_PREFIX(AT(prefix)),
    CN_OPTION_FORCE(AT(common.force)),
    CN_OPTION_JSON(AT(common.json)),
    CN_OPTION_CONFIG(AT(common.config)),
    CN_OPTION_LOCAL(AT(ignored)),
    CN_OPTION_REMOTE(AT(ignored)),
};

const struct cn_command cn_kv_command = {
    .name = "kv",
    .usage = "namespace|key|bulk ... [OPTIONS]",
    .summary = "list KV namespaces and keys; read, write and delete values",
    .text =
        "Works on a data directory, also while a server uses it. The namespace is --namespace-id, "
        "or "
        "a\n"
        "--binding of the project in the current folder (or --config). Verbs and options are\n"
        "wrangler's.\n\n"
        "  cairn kv namespace list           what there is\n"
        "  cairn kv namespace create ID      makes one; a binding with this id then has it\n"
        "  cairn kv key list                 keys, with their expiry and metadata\n"
        "  cairn kv key get KEY              the value, as it is, on standard output\n"
        "  cairn kv key put KEY VALUE        writes it; or --path FILE\n"
        "  cairn kv key delete KEY           deletes it\n"
        "  cairn kv bulk put FILE            "
        "[{\"key\",\"value\",\"expiration\"?,\"expiration_ttl\"?,\n"
        "                                    \"metadata\"?,\"base64\"?}, ...]\n"
        "  cairn kv bulk get FILE            of [\"key\", ...]: {\"key\":\"value\", ...}, null if "
        "absent\n"
        "  cairn kv bulk delete FILE         of [\"key\", ...] or [{\"name\"}, ...]\n\n"
        "Exit code 0: done, 1: failed (a key is not there, for example), 2: wrong command line.",
    .rest_max = 4,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
