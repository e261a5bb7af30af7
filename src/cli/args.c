/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/mem.h"
#include "server/schema.h"

#define SERVE CN_COMMAND_SERVE
#define DEV CN_COMMAND_DEV
#define BUILD CN_COMMAND_BUILD
#define DEPLOY CN_COMMAND_DEPLOY
#define NEW CN_COMMAND_NEW
#define OBJECTS CN_COMMAND_OBJECTS
#define D1 CN_COMMAND_D1
#define TAIL CN_COMMAND_TAIL
#define CRONS CN_COMMAND_CRONS
#define KV CN_COMMAND_KV
#define R2 CN_COMMAND_R2
#define QUEUES CN_COMMAND_QUEUES
#define REPLAY CN_COMMAND_REPLAY
#define VERSION CN_COMMAND_VERSION
#define SERVICES (KV | R2 | QUEUES)
#define OFFLINE                                                          \
    (OBJECTS | TAIL | CRONS | CN_COMMAND_DASHBOARD | CN_COMMAND_BACKUP | \
     CN_COMMAND_CHECK) /* on a data directory */
#define ALL (SERVE | DEV | BUILD | DEPLOY | NEW | D1 | SERVICES | REPLAY | VERSION | OFFLINE)

struct option {
    const char *name;
    char letter; /* 0: none */
    unsigned commands;
    const char *value;    /* what stands for its value in the help; NULL: it takes none */
    const char *variable; /* NULL: none */
    const char *help;
    size_t offset; /* in struct cn_args; VAR_OFFSET: repeated */
};

#define VAR_OFFSET ((size_t)-1)
#define AT(member) offsetof(struct cn_args, member)

static const struct option options[] = {
    {"listen", 'l', SERVE | DEV, "HOST:PORT", "CAIRN_LISTEN",
     "address to listen on (127.0.0.1:8787; port 0: any free one)", AT(listen)},
    {"ip", 0, DEV, "HOST", NULL, "the host alone", AT(ip)},
    {"port", 0, DEV, "PORT", NULL, "the port alone", AT(port)},
    {"data", 0, SERVE | DEV | BUILD | DEPLOY | D1 | SERVICES | OFFLINE, "DIR", "CAIRN_DATA",
     "data directory (PROJECT/.cairn)", AT(data)},
    {"lanes", 0, SERVE | DEV, "N", "CAIRN_LANES", "threads that run workers (one per core; dev: 1)",
     AT(lanes)},
    {"env", 'e', SERVE | DEV | BUILD | DEPLOY | D1 | SERVICES, "NAME", "CAIRN_ENV",
     "environment of the configuration: [env.NAME]", AT(env)},
    {"var", 0, SERVE | DEV | BUILD | DEPLOY, "K=V", "CAIRN_VAR",
     "sets a variable; may be repeated (in CAIRN_VAR: one per line)", VAR_OFFSET},
    {"tls-cert", 0, SERVE | DEV, "FILE", "CAIRN_TLS_CERT", "certificate chain (PEM): serves https",
     AT(tls_cert)},
    {"tls-key", 0, SERVE | DEV, "FILE", "CAIRN_TLS_KEY", "its private key (PEM)", AT(tls_key)},
    {"log", 0, SERVE | DEV | BUILD | DEPLOY, "json|pretty", "CAIRN_LOG",
     "form of messages (pretty)", AT(log)},
    {"dry-run", 0, DEPLOY | REPLAY, NULL, NULL, "only say what would be done", AT(dry_run)},
    {"allow-delete", 0, SERVE | DEV | DEPLOY, "CLASS", NULL,
     "Durable Object classes that may be deleted: A,B or WORKER/A", AT(allow_delete)},
    {"recover", 0, SERVE | DEV | DEPLOY, "CLASS", NULL,
     "deleted classes to take back instead of creating them anew", AT(recover)},
    {"allow-missing", 0, SERVE | DEV | BUILD | DEPLOY | D1 | SERVICES, "KEY", "CAIRN_ALLOW_MISSING",
     "keys of the configuration that cairn does not run: A,B", AT(allow_missing)},
    {"admin", 0, SERVE | DEV, "HOST:PORT", "CAIRN_ADMIN",
     "address of the admin listener, or off (127.0.0.1:8788; dev: off)", AT(admin)},
    {"admin-token", 0, SERVE | DEV, "TOKEN", "CAIRN_ADMIN_TOKEN",
     "its token; the variable keeps it out of the list of processes", AT(admin_token)},
    {"sandbox", 0, SERVE, NULL, "CAIRN_SANDBOX",
     "give up other files, programs and most of the kernel after start", AT(sandbox)},
    {"sandbox-write", 0, SERVE, "DIR[:DIR]", "CAIRN_SANDBOX_WRITE",
     "folders that it may still write to, for backups", AT(sandbox_write)},
    {"outdir", 0, BUILD, "DIR", NULL, "where the bundle goes (DATA/bundle/NAME)", AT(outdir)},
    {"bookmark", 0, OBJECTS | D1, "B", NULL, "the moment: a bookmark of the object", AT(bookmark)},
    {"time", 0, OBJECTS, "T", NULL, "the moment: 2026-01-31T12:00:00Z, or milliseconds since 1970",
     AT(time)},
    {"format", 0, TAIL, "json|pretty", NULL, "form of what is printed (pretty)", AT(format)},
    {"status", 0, TAIL, "ok|error|canceled", NULL, "only requests that ended so", AT(status)},
    {"method", 0, TAIL, "METHOD", NULL, "only requests with this method", AT(method)},
    {"search", 0, TAIL, "TEXT", NULL, "only lines that hold this text", AT(search)},
    {"binding", 0, KV, "NAME", NULL, "the namespace: a binding of the project", AT(binding)},
    {"namespace-id", 0, KV, "ID", NULL, "the namespace: its id", AT(namespace_id)},
    {"path", 0, KV, "FILE", NULL, "put: the value is in a file", AT(path)},
    {"ttl", 0, KV, "S", NULL, "put: seconds until it expires, at least 60", AT(ttl)},
    {"expiration", 0, KV, "T", NULL, "put: when it expires, in seconds since 1970", AT(expiration)},
    {"metadata", 0, KV, "JSON", NULL, "put: what list shows with the key", AT(metadata)},
    {"text", 0, KV, NULL, NULL, "accepted: values are printed as they are", AT(text)},
    {"preview", 0, KV, NULL, NULL, "accepted: there are no other namespaces", AT(preview)},
    {"file", 'f', R2, "FILE", NULL, "get: where to; put: what", AT(file)},
    {"pipe", 'p', R2, NULL, NULL, "get: to standard output; put: from standard input", AT(pipe)},
    {"content-type", 0, R2, "TYPE", NULL, "put: HTTP metadata", AT(content_type)},
    {"content-disposition", 0, R2, "TEXT", NULL, "put: HTTP metadata", AT(content_disposition)},
    {"content-encoding", 0, R2, "TEXT", NULL, "put: HTTP metadata", AT(content_encoding)},
    {"content-language", 0, R2, "TEXT", NULL, "put: HTTP metadata", AT(content_language)},
    {"cache-control", 0, R2, "TEXT", NULL, "put: HTTP metadata", AT(cache_control)},
    {"expires", 0, R2, "T", NULL, "put: 2026-01-31T12:00:00Z, or milliseconds since 1970",
     AT(expires)},
    {"storage-class", 's', R2, "CLASS", NULL, "put: Standard or InfrequentAccess",
     AT(storage_class)},
    {"delimiter", 0, R2, "D", NULL, "list: keys that share what comes before it are one line",
     AT(delimiter)},
    {"limit", 0, QUEUES, "N", NULL, "peek, redrive: how many messages (10; all)", AT(limit)},
    {"to", 0, QUEUES, "QUEUE", NULL, "redrive: where to, if not where they came from", AT(to)},
    {"content-type", 0, QUEUES, "json|text", NULL, "send: what the body is", AT(content_type)},
    {"delay", 0, QUEUES, "S", NULL, "send: seconds before it is delivered", AT(delay)},
    {"to", 0, REPLAY, "URL", NULL, "the server (http://127.0.0.1:8787)", AT(to)},
    {"rate", 0, REPLAY, "N", NULL, "requests per second", AT(rate)},
    {"speed", 0, REPLAY, "X", NULL, "as far apart as recorded, X times as fast", AT(speed)},
    {"concurrency", 0, REPLAY, "N", NULL, "under way at once (10)", AT(concurrency)},
    {"verify", 0, REPLAY, NULL, NULL, "exit code 1 if a status differs from the recorded one",
     AT(verify)},
    {"keep-host", 0, REPLAY, NULL, NULL, "send the recorded Host, not that of the server",
     AT(keep_host)},
    {"without-bodies", 0, REPLAY, NULL, NULL, "send requests whose body was not recorded, too",
     AT(without_bodies)},
    {"prefix", 0, OBJECTS | KV | R2, "P", NULL, "list: names that begin so", AT(prefix)},
    {"force", 'f', OBJECTS | KV | QUEUES, NULL, NULL, "delete, purge: without asking", AT(force)},
    {"json", 0, OBJECTS | D1 | CRONS | SERVICES | REPLAY, NULL, NULL, "one JSON object per line",
     AT(json)},
    {"config", 'c', D1 | SERVICES, "FILE", NULL, "the project's folder or configuration (.)",
     AT(config)},
    {"command", 0, D1, "SQL", NULL, "execute: these statements", AT(command)},
    {"file", 0, D1, "FILE", NULL, "execute: the statements of a file", AT(file)},
    {"output", 0, D1, "FILE", NULL, "export: where to (-: standard output)", AT(output)},
    {"table", 0, D1, "NAME", NULL, "export: only this table", AT(table)},
    {"no-schema", 0, D1, NULL, NULL, "export: only rows", AT(no_schema)},
    {"no-data", 0, D1, NULL, NULL, "export: only the schema", AT(no_data)},
    {"timestamp", 0, D1, "T", NULL, "time-travel: 2026-01-31T12:00:00Z, or milliseconds since 1970",
     AT(timestamp)},
    {"yes", 'y', D1 | R2, NULL, NULL, "accepted: nothing is asked", AT(yes)},
    {"local", 0, D1 | SERVICES, NULL, NULL, "accepted: the data is always this machine's",
     AT(local)},
    {"remote", 0, D1 | SERVICES, NULL, NULL, "accepted, with the same meaning", AT(remote)},
    {"engine", 0, VERSION, NULL, NULL, "what is replaced inside the JavaScript engine, and whether",
     AT(engine)},
    {"help", 'h', ALL, NULL, NULL, "this text", AT(help)},
};

static const char *option_name_at(const void *data, size_t index)
{
    const struct cn_command *command = data;
    for (size_t i = 0; i < CN_ARRAY_COUNT(options); i++)
        if ((options[i].commands & command->bit) && index-- == 0)
            return options[i].name;
    return NULL;
}

static const struct option *find_option(const struct cn_command *command, const char *word,
                                        size_t size)
{
    bool is_letter = word[0] == '-' && word[1] != '-' && size == 2;
    for (size_t i = 0; i < CN_ARRAY_COUNT(options); i++) {
        const struct option *option = &options[i];
        if (!(option->commands & command->bit))
            continue;
        if (is_letter
                ? word[1] == option->letter
                : size > 2 && strncmp(word, "--", 2) == 0 && strlen(option->name) == size - 2 &&
                      memcmp(word + 2, option->name, size - 2) == 0)
            return option;
    }
    return NULL;
}

static void push(const char ***list, size_t *count, const char *text)
{
    *list = cn_realloc(*list, (*count + 1) * sizeof(char *));
    (*list)[(*count)++] = text;
}

static void set_value(struct cn_args *args, const struct option *option, const char *value)
{
    if (option->offset == VAR_OFFSET)
        push(&args->vars, &args->var_count, value);
    else
        *(const char **)((char *)args + option->offset) = value;
}

static int parse_option(struct cn_args *args, const struct cn_command *command, int argc,
                        char **argv, int *index, struct cn_err *err)
{
    const char *word = argv[*index], *value = NULL;
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    size_t size = equals ? (size_t)(equals - word) : strlen(word);
    const struct option *option = find_option(command, word, size);
    if (!option) {
        char *plain = cn_strndup(word + strspn(word, "-"), size - strspn(word, "-"));
        const char *meant = cn_suggest(plain, option_name_at, command);
        cn_free(plain);
        return cn_err_set(err, CN_EINVALID,
                          "unknown option %.*s%s%s%s; `cairn help %s` lists the options", (int)size,
                          word, meant ? " (did you mean --" : "", meant ? meant : "",
                          meant ? "?)" : "", command->name);
    }
    if (!option->value) {
        if (equals)
            return cn_err_set(err, CN_EINVALID, "--%s takes no value", option->name);
        *(bool *)((char *)args + option->offset) = true;
        return 0;
    }
    if (equals)
        value = equals + 1;
    else if (*index + 1 < argc)
        value = argv[++*index];
    if (!value)
        return cn_err_set(err, CN_EINVALID, "--%s needs a value: %s", option->name, option->value);
    set_value(args, option, value);
    return 0;
}

/* CAIRN_* variables for what no flag gave. */
static void read_variables(struct cn_args *args, const struct cn_command *command)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(options); i++) {
        const struct option *option = &options[i];
        const char *value = option->variable ? getenv(option->variable) : NULL;
        if (!value || !*value || !(option->commands & command->bit))
            continue;
        if (!option->value) { /* a switch */
            *(bool *)((char *)args + option->offset) = strcmp(value, "0") != 0;
            continue;
        }
        if (option->offset != VAR_OFFSET) {
            set_value(args, option, value);
            continue;
        }
        args->var_copy = cn_strdup(value);
        char *state = NULL;
        for (char *line = strtok_r(args->var_copy, "\n", &state); line;
             line = strtok_r(NULL, "\n", &state))
            set_value(args, option, line);
    }
}

int cn_args_parse(struct cn_args *args, const struct cn_command *command, int argc, char **argv,
                  struct cn_err *err)
{
    bool only_rest = false;
    *args = (struct cn_args){0};
    read_variables(args, command);
    for (int i = 0; i < argc; i++) {
        if (!only_rest && strcmp(argv[i], "--") == 0) {
            only_rest = true;
        } else if (!only_rest && argv[i][0] == '-' && argv[i][1]) {
            int rc = parse_option(args, command, argc, argv, &i, err);
            if (rc < 0)
                return rc;
        } else {
            push(&args->rest, &args->rest_count, argv[i]);
        }
    }
    if (args->rest_count > command->rest_max && !args->help)
        return cn_err_set(err, CN_EINVALID, "unexpected \"%s\"; usage: cairn %s %s",
                          args->rest[command->rest_max], command->name, command->usage);
    return 0;
}

void cn_args_fini(struct cn_args *args)
{
    cn_free(args->vars);
    cn_free(args->rest);
    cn_free(args->var_copy);
    *args = (struct cn_args){0};
}

void cn_args_print_help(const struct cn_command *command)
{
    printf("usage: cairn %s%s%s\n\n%s\n", command->name, *command->usage ? " " : "", command->usage,
           command->text ? command->text : command->summary);
    if (!command->bit)
        return;
    printf("\nOptions:\n");
    for (size_t i = 0; i < CN_ARRAY_COUNT(options); i++) {
        const struct option *option = &options[i];
        if (!(option->commands & command->bit))
            continue;
        char name[60];
        snprintf(name, sizeof(name), "%c%c%s --%s%s%s", option->letter ? '-' : ' ',
                 option->letter ? option->letter : ' ', option->letter ? "," : " ", option->name,
                 option->value ? " " : "", option->value ? option->value : "");
        printf("  %-26s %s%s%s%s\n", name, option->help, option->variable ? " [" : "",
               option->variable ? option->variable : "", option->variable ? "]" : "");
    }
}
