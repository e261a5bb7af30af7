/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_import.c - `cairn import`: what another system has stored moves in. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/disk.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/import.h"
#include "cli/print.h"
#include "config/config.h"
#include "object/secret.h"
#include "project/deploy_classes.h"
#include "server/data.h"
#include "store/plain.h"

#define TOLD_MAX 1000 /* lines; what is beyond is counted */

struct options {
    struct cn_project_options project;
    const char *folder;
    struct cn_import_hosted hosted;
    const char *endpoint;
    bool verify, json;
};

/* --- the report ------------------------------------------------------------------------------ */

static const char *const kinds[CN_IMPORT_KINDS] = {"objects", "kv", "d1", "r2", "queues"};
static const char *const outcomes[CN_IMPORT_OUTCOMES] = {"came", "there", "conflict", "left",
                                                         "failed"};

static void print_json(const struct cn_import *import, enum cn_import_kind kind,
                       enum cn_import_outcome outcome, const char *what, const char *why)
{
    struct cn_buf line = {0};
    (void)import;
    cn_buf_printf(&line, "{\"kind\":\"%s\",\"outcome\":\"%s\",\"what\":", kinds[kind],
                  outcomes[outcome]);
    cn_buf_append_json(&line, what, strlen(what));
    if (why) {
        cn_buf_append_str(&line, ",\"why\":");
        cn_buf_append_json(&line, why, strlen(why));
    }
    cn_buf_append_byte(&line, '}');
    puts(cn_buf_text(&line));
    cn_buf_fini(&line);
}

void cn_import_tell(struct cn_import *import, enum cn_import_kind kind,
                    enum cn_import_outcome outcome, const char *what, const char *why)
{
    import->counts[kind][outcome]++;
    if (!why && outcome == CN_IMPORT_CONFLICT)
        why = import->verify ? "it differs from its source, or is not here"
                             : "something else is here and stays";
    if (outcome < CN_IMPORT_CONFLICT || ++import->told > TOLD_MAX)
        return;
    if (import->json) {
        print_json(import, kind, outcome, what, why);
        return;
    }
    printf("%-8s  %-7s  ", outcomes[outcome], kinds[kind]);
    cn_print_shown(what);
    printf(": ");
    cn_print_shown(why ? why : "");
    putchar('\n');
}

static bool has_counts(const struct cn_import *import)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < CN_IMPORT_KINDS; kind++)
        for (int i = 0; i < CN_IMPORT_OUTCOMES; i++)
            sum += import->counts[kind][i];
    return sum > 0;
}

static void print_report(const struct cn_import *import)
{
    struct cn_table table;
    if (!has_counts(import)) {
        puts("there is nothing in it that could come");
        return;
    }
    if (import->told > TOLD_MAX)
        fprintf(stderr, "cairn: %llu more did not come\n",
                (unsigned long long)(import->told - TOLD_MAX));
    cn_table_init(&table, 1 + CN_IMPORT_OUTCOMES);
    cn_table_add(&table, "", 0);
    for (int i = 0; i < CN_IMPORT_OUTCOMES; i++)
        cn_table_add(&table, outcomes[i], strlen(outcomes[i]));
    for (int kind = 0; kind < CN_IMPORT_KINDS; kind++) {
        uint64_t sum = 0;
        for (int i = 0; i < CN_IMPORT_OUTCOMES; i++)
            sum += import->counts[kind][i];
        if (!sum)
            continue;
        cn_table_add(&table, kinds[kind], strlen(kinds[kind]));
        for (int i = 0; i < CN_IMPORT_OUTCOMES; i++) {
            char text[24];
            int size =
                snprintf(text, sizeof(text), "%llu", (unsigned long long)import->counts[kind][i]);
            cn_table_add(&table, text, (size_t)size);
        }
    }
    cn_table_print(&table);
}

static void print_json_report(const struct cn_import *import)
{
    printf("{\"report\":{");
    for (int kind = 0; kind < CN_IMPORT_KINDS; kind++) {
        printf("%s\"%s\":{", kind ? "," : "", kinds[kind]);
        for (int i = 0; i < CN_IMPORT_OUTCOMES; i++)
            printf("%s\"%s\":%llu", i ? "," : "", outcomes[i],
                   (unsigned long long)import->counts[kind][i]);
        putchar('}');
    }
    puts("}}");
}

static uint64_t missing(const struct cn_import *import)
{
    uint64_t count = 0;
    for (int kind = 0; kind < CN_IMPORT_KINDS; kind++)
        count += import->counts[kind][CN_IMPORT_CONFLICT] + import->counts[kind][CN_IMPORT_FAILED];
    return count;
}

/* --- the source ------------------------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int cn_import_list(struct cn_import *import, const char *folder, struct cn_strings_owned *names,
                   struct cn_err *err)
{
    char *path = cn_sprintf("%s/%s", import->source, folder);
    DIR *dir = opendir(path);
    int rc = 0;
    if (!dir && errno != ENOENT && errno != ENOTDIR)
        rc = cn_err_errno(err, errno, "cannot read %s", path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || entry->d_type == DT_LNK)
            continue;
        names->items = cn_realloc(names->items, (names->count + 1) * sizeof(*names->items));
        names->items[names->count++] = cn_strdup(entry->d_name);
    }
    if (dir)
        closedir(dir);
    if (names->count)
        qsort(names->items, names->count, sizeof(*names->items), compare_names);
    cn_free(path);
    return rc;
}

void cn_import_list_free(struct cn_strings_owned *names)
{
    for (size_t i = 0; i < names->count; i++)
        cn_free(names->items[i]);
    cn_free(names->items);
}

int cn_import_check_path(struct cn_import *import, const char *path, struct cn_err *err)
{
    size_t size = strlen(import->source);
    char *real = realpath(path, NULL);
    int rc = 0;
    if (!real)
        rc = cn_err_errno(err, errno, "cannot read %s", path);
    else if (strncmp(real, import->source, size) != 0 || real[size] != '/')
        rc = cn_err_set(err, CN_EDENIED, "%s leads out of the source", path);
    free(real);
    return rc;
}

int cn_import_open(struct cn_import *import, const char *path, struct cn_plain **plain,
                   struct cn_err *err)
{
    int rc = cn_import_check_path(import, path, err);
    if (rc == 0)
        rc = cn_plain_copy(path, import->scratch, err);
    return rc < 0 ? rc : cn_plain_open(import->scratch, plain, err);
}

void cn_import_own_id(const char *class_name, const char *name, char hex[CN_OBJECT_HEX_SIZE + 1])
{
    uint8_t key[CN_MOVED_KEY_SIZE], id[CN_OBJECT_ID_SIZE];
    cn_moved_key(class_name, strlen(class_name), key);
    cn_moved_from_name(key, name, strlen(name), id);
    cn_id_to_hex(id, hex);
}

static bool is_state(const char *path)
{
    static const char *const folders[] = {"do", "kv", "d1", "r2"};
    bool found = false;
    for (size_t i = 0; i < CN_ARRAY_COUNT(folders); i++) {
        struct stat info;
        char *below = cn_sprintf("%s/%s", path, folders[i]);
        found |= lstat(below, &info) == 0 && S_ISDIR(info.st_mode);
        cn_free(below);
    }
    return found;
}

/* The folder v3 that is meant. Owned. */
static char *find_state(const char *given, struct cn_err *err)
{
    static const char *const below[] = {"", "/v3", "/state/v3", "/.wrangler/state/v3"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(below); i++) {
        char *path = cn_sprintf("%s%s", given, below[i]);
        if (is_state(path)) {
            char *real = realpath(path, NULL);
            cn_free(path);
            char *result = real ? cn_strdup(real) : NULL;
            free(real);
            return result;
        }
        cn_free(path);
    }
    cn_err_set(err, CN_ENOTFOUND, "%s has nothing that wrangler dev has stored: no folder v3",
               given);
    return NULL;
}

/* --- the target ------------------------------------------------------------------------------ */

static int open_classes(struct cn_import *import, struct cn_err *err)
{
    struct cn_disk *disk = cn_offline_disk(&import->api.dir);
    struct cn_deploy_wishes wishes = {0};
    struct cn_deploy_input input = {&import->project, 1, &wishes, disk, NULL};
    struct cn_buf pending = {0};
    int rc = cn_secret_load(disk, import->secret, err);
    if (rc == 0)
        rc = cn_moved_load(disk, &import->moved, err);
    if (rc == 0 && import->verify)
        return cn_classes_load(&import->classes, disk, err);
    if (rc == 0)
        rc = cn_deploy_classes(&input, false, import->api.dir.shards, &import->classes, &pending,
                               err);
    if (rc == 0)
        rc = cn_deploy_classes_commit(disk, NULL, &pending, err);
    cn_buf_fini(&pending);
    return rc;
}

static int open_target(struct cn_import *import, struct cn_err *err)
{
    const char *data = import->project.data;
    int rc = import->verify ? 0 : cn_data_make(data, err);
    if (rc == 0)
        rc = cn_api_open(&import->api, data, import->verify, err);
    if (rc == 0 && import->api.online)
        return cn_err_set(err, CN_ELOCKED,
                          "a server uses %s: stop it while you import (what it makes meanwhile and "
                          "what comes could not be told apart)",
                          data);
    import->scratch = cn_sprintf("%s/import.tmp", data);
    return rc < 0 ? rc : open_classes(import, err);
}

static void remove_scratch(const struct cn_import *import)
{
    static const char *const ends[] = {"",        "-wal",        "-journal",
                                       ".alarms", ".alarms-wal", ".alarms-journal"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(ends) && import->scratch; i++) {
        char *path = cn_sprintf("%s%s", import->scratch, ends[i]);
        (void)unlink(path); /* most are not there */
        cn_free(path);
    }
}

static int import_state(struct cn_import *import, struct cn_err *err)
{
    int rc = open_target(import, err);
    if (rc == 0)
        rc = cn_import_objects(import, err);
    if (rc == 0)
        rc = cn_import_services(import, err);
    return rc;
}

static int import_folder(const struct options *options, const char *given, struct cn_import *import,
                         struct cn_err *err)
{
    char *state = find_state(given, err);
    if (!state)
        return err->code;
    import->source = state;
    /* The project of PROJECT/.wrangler/state/v3. */
    char *project = options->folder ? cn_strdup(options->folder) : cn_sprintf("%s/../../..", state);
    int rc = cn_project_open(&import->project, project, &options->project, err);
    if (rc == 0)
        rc = import_state(import, err);
    remove_scratch(import);
    cn_free(project);
    cn_free(state);
    return rc;
}

static int import_file(const struct options *options, const char *given, struct cn_import *import,
                       struct cn_err *err)
{
    import->source = given;
    int rc = cn_project_open(&import->project, options->folder ? options->folder : ".",
                             &options->project, err);
    if (rc == 0)
        rc = open_target(import, err);
    if (rc == 0)
        rc = cn_import_stream(import, err);
    remove_scratch(import);
    return rc;
}

/* Whether a server uses the data directory or not: by the control API alone. */
static int import_hosted(const struct options *options, const char *given, struct cn_import *import,
                         struct cn_err *err)
{
    struct cn_import_hosted hosted = options->hosted;
    import->source = given;
    hosted.token = getenv("CLOUDFLARE_API_TOKEN"); /* no option: others would see it */
    hosted.api = hosted.api ? hosted.api : "https://api.cloudflare.com/client/v4";
    int rc = cn_project_open(&import->project, options->folder ? options->folder : ".",
                             &options->project, err);
    if (rc == 0 && !import->verify)
        rc = cn_data_make(import->project.data, err);
    if (rc == 0)
        rc = cn_api_open(&import->api, import->project.data, import->verify, err);
    if (rc < 0)
        return rc;
    import->scratch = cn_sprintf("%s/import.tmp", import->project.data);
    const char *id = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
    char *keys = id && secret ? cn_sprintf("%s:%s", id, secret) : NULL;
    rc = strncmp(given, "s3:", 3) == 0 ? cn_import_s3(import, options->endpoint, keys, err)
                                       : cn_import_hosted(import, &hosted, err);
    cn_free(keys);
    remove_scratch(import);
    return rc;
}

static int run(const struct cn_args *args)
{
    const struct options *options = args->options;
    struct cn_import import = {.verify = options->verify, .json = options->json};
    struct cn_err err = {0};
    if (args->rest_count != 1) {
        fprintf(stderr, "cairn: import from where? `cairn help import` explains it\n");
        return 2;
    }
    struct stat info;
    bool is_file = stat(args->rest[0], &info) == 0 && !S_ISDIR(info.st_mode);
    bool is_hosted = strncmp(args->rest[0], "kv:", 3) == 0 ||
                     strncmp(args->rest[0], "queue:", 6) == 0 ||
                     strncmp(args->rest[0], "s3:", 3) == 0;
    int rc = is_hosted ? import_hosted(options, args->rest[0], &import, &err)
             : is_file ? import_file(options, args->rest[0], &import, &err)
                       : import_folder(options, args->rest[0], &import, &err);
    if (import.scratch && import.json)
        print_json_report(&import);
    else if (rc == 0 || has_counts(&import))
        print_report(&import);
    if (rc == 0 && missing(&import))
        rc = cn_err_set(&err, CN_EEXISTS, "%llu did not come; what did is durable",
                        (unsigned long long)missing(&import));
    if (rc < 0 && import.verify && missing(&import))
        cn_err_set(&err, CN_EEXISTS, "%llu differ", (unsigned long long)missing(&import));
    cn_classes_fini(&import.classes);
    cn_moved_free(import.moved);
    cn_free(import.scratch);
    cn_api_close(&import.api);
    cn_project_close(&import.project);
    return cn_print_outcome(rc, &err);
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA(AT(project.data)),
    CN_OPTION_ENV(AT(project.env)),
    CN_OPTION_ALLOW_MISSING(AT(project.allow_missing)),
    {"project", 0, "DIR", NULL,
     "the project whose data it is (the folder that has .wrangler, or the current one)", AT(folder),
     0},
    {"account", 0, "ID", "CLOUDFLARE_ACCOUNT_ID",
     "kv:, queue: of this account; its token is in "
     "CLOUDFLARE_API_TOKEN",
     AT(hosted.account), 0},
    {"api", 0, "URL", "CLOUDFLARE_API_BASE_URL", "its API (https://api.cloudflare.com/client/v4)",
     AT(hosted.api), 0},
    {"endpoint", 0, "URL", "AWS_ENDPOINT_URL",
     "s3: the server; its keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", AT(endpoint),
     0},
    {"verify", 0, NULL, NULL, "compare source and target, write nothing", AT(verify), 0},
    CN_OPTION_JSON(AT(json)),
};

const struct cn_command cn_cmd_import = {
    .name = "import",
    .usage = "SOURCE [OPTIONS]",
    .summary = "move in what wrangler dev or the hosted platform has stored",
    .text =
        "  cairn import .wrangler/state/v3            what wrangler dev and miniflare have stored\n"
        "  cairn import .wrangler/state/v3 --verify   is it here, and the same?\n"
        "  cairn import objects.ndjson                Durable Objects that "
        "examples/moving/export.js\n"
        "                                             has written on the hosted platform\n"
        "  cairn import kv:NAMESPACE_ID               a KV namespace, by the platform's API\n"
        "  cairn import queue:NAME                    messages of a queue that can be pulled\n"
        "  cairn import s3:BUCKET --endpoint URL      a bucket of R2, or of any server of S3\n\n"
        "Durable Objects come with their ids, names and alarms, and KV, D1 and R2 of the\n"
        "project's bindings. The source is only read. Nothing is overwritten: what is here and\n"
        "differs is told. Run it again after an interruption. No server may use the data\n"
        "directory meanwhile. docs/do/moving.md takes you through it. Exit code 0: all came or\n"
        "was there, 1: something did not, 2: wrong command line.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
