/* SPDX-License-Identifier: Apache-2.0 */
/* cli/main.c - the commands. Each builds its components and hands them their
 * dependencies in its own file, cmd_NAME.c. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "cli/args.h"
#include "server/schema.h"

static int run_help(const struct cn_args *args);

static const struct cn_command commands[] = {
    {"serve", CN_COMMAND_SERVE, "[PROJECT...] [OPTIONS]", "serve projects",
     "Serves Workers projects (folders, or their wrangler.toml, .json or .jsonc; default: the\n"
     "current folder). Several projects share the server; their routes and [cairn] hosts decide\n"
     "which one a request is for. SIGHUP reloads, SIGTERM and SIGINT finish what is under way.",
     64, cn_cmd_serve},
    {"dev", CN_COMMAND_DEV, "[PROJECT...] [OPTIONS]", "serve, and reload when a file changes",
     "Serves like `cairn serve`, rebuilds and reloads when a file changes, and answers errors "
     "with\n"
     "a page that shows the stack.",
     64, cn_cmd_dev},
    {"build", CN_COMMAND_BUILD, "[PROJECT] [OPTIONS]", "bundle a project",
     "Bundles the project (a folder, or its wrangler.toml, .json or .jsonc; default: the current\n"
     "folder) and writes the script, its source map and the files it imports.",
     1, cn_cmd_build},
    {"deploy", CN_COMMAND_DEPLOY, "[PROJECT...] [OPTIONS]",
     "apply changes of Durable Object classes",
     "Bundles the projects, compares their Durable Object classes (migrations, exports) with what\n"
     "the data directory has, prints what is created, renamed, transferred, deleted and what is\n"
     "refused, and applies it; with --dry-run it only prints. If a server uses the data\n"
     "directory, it reloads. Exit code 0: done, 1: refused or failed.",
     64, cn_cmd_deploy},
    {"new", CN_COMMAND_NEW, "DIR", "write a small TypeScript starter",
     "Writes a small Workers project in TypeScript into the new folder DIR.", 1, cn_cmd_new},
    {"objects", CN_COMMAND_OBJECTS, "list|inspect|sql|export|restore|delete ... [OPTIONS]",
     "list objects; look into one, export, restore or delete it",
     "Works on a data directory, also while a server uses it.\n\n"
     "  cairn objects list [NAMESPACE]              what there is\n"
     "  cairn objects inspect NAMESPACE OBJECT      its tables, alarm, bookmark\n"
     "  cairn objects sql NAMESPACE OBJECT SQL      runs statements on its database\n"
     "  cairn objects export NAMESPACE OBJECT FILE  a plain SQLite file, of now or of a moment\n"
     "  cairn objects restore NAMESPACE OBJECT      makes it what it was at a moment; prints the\n"
     "                                              bookmark that undoes this\n"
     "  cairn objects delete NAMESPACE OBJECT       database, alarm and name go; prints the\n"
     "                                              bookmark that undoes this\n\n"
     "OBJECT is an id (64 hexadecimal digits) or a name. A moment is --bookmark or --time.",
     4, cn_cmd_objects},
    {"d1", CN_COMMAND_D1, "execute|import|export|info|migrations|time-travel ... [OPTIONS]",
     "query D1 databases, apply migrations, export, go back in time",
     "Works on the D1 databases of a project (the current folder, or --config), also while a "
     "server\n"
     "serves it. NAME is a database_name, a binding or a database_id. Verbs and options are\n"
     "wrangler's.\n\n"
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
     4, cn_cmd_d1},
    {"kv", CN_COMMAND_KV, "namespace|key|bulk ... [OPTIONS]",
     "list KV namespaces and keys; read, write and delete values",
     "Works on a data directory, also while a server uses it. The namespace is --namespace-id, or "
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
     4, cn_cmd_kv},
    {"r2", CN_COMMAND_R2, "bucket|object ... [OPTIONS]",
     "list R2 buckets and objects; read, write and delete them",
     "Works on a data directory, also while a server uses it. Verbs and options are wrangler's.\n\n"
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
     3, cn_cmd_r2},
    {"queues", CN_COMMAND_QUEUES, "list|info|peek|send|purge|redrive|... [OPTIONS]",
     "list queues, look at messages, pause, purge, send dead letters back",
     "Works on a data directory, also while a server uses it.\n\n"
     "  cairn queues list                   backlog, oldest message, consumers\n"
     "  cairn queues info QUEUE             one of them\n"
     "  cairn queues peek QUEUE             the next messages, without taking them\n"
     "  cairn queues send QUEUE BODY        sends JSON, or a text if it is none\n"
     "  cairn queues pause-delivery QUEUE   consumers get nothing until resume-delivery\n"
     "  cairn queues resume-delivery QUEUE\n"
     "  cairn queues purge QUEUE            deletes every message\n"
     "  cairn queues redrive QUEUE          moves the messages of a dead letter queue back where\n"
     "                                      they came from, or --to another queue\n\n"
     "Exit code 0: done, 1: failed, 2: wrong command line.",
     3, cn_cmd_queues},
    {"crons", CN_COMMAND_CRONS, "list|runs|trigger ... [OPTIONS]",
     "list cron triggers and their runs, run one now",
     "Asks a running server about the cron triggers of its workers.\n\n"
     "  cairn crons list                    expressions with their next and last runs\n"
     "  cairn crons runs WORKER             the last 100 runs\n"
     "  cairn crons trigger WORKER [CRON]   runs scheduled() now, for its first expression or\n"
     "                                      CRON, and waits. Exit code 0: it ended well, 1: not",
     3, cn_cmd_crons},
    {"tail", CN_COMMAND_TAIL, "[WORKER] [OPTIONS]", "requests and messages while they happen",
     "Shows what a running server does: each request with its answer, what workers and objects\n"
     "write to the console, and the server's own messages. Ends with the server, or Ctrl-C.",
     1, cn_cmd_tail},
    {"replay", CN_COMMAND_REPLAY, "FILE [OPTIONS]", "send recorded requests again and compare",
     "Sends the requests of FILE (-: standard input) to a server and prints how many were "
     "answered\n"
     "how, which answers have another status than recorded, and how long they took. Each line is "
     "a\n"
     "JSON object: what `cairn tail --format json` or `wrangler tail --format json` wrote, or\n\n"
     "  {\"method\",\"url\",\"headers\"?,\"body\"?|\"bodyBase64\"?,\"status\"?,\"time\"?}\n\n"
     "A tail records no bodies: requests that had one are skipped and counted, unless\n"
     "--without-bodies. That of cairn records no headers either. As fast as --concurrency allows\n"
     "without --rate and --speed. Exit code 0: done; 1: nothing was answered, or with --verify a\n"
     "status differs or a request failed; 2: wrong command line.",
     1, cn_cmd_replay},
    {"dashboard", CN_COMMAND_DASHBOARD, "[OPTIONS]", "print the address of the dashboard",
     "Prints the address of a running server's dashboard. It holds the token: give it to nobody.",
     0, cn_cmd_dashboard},
    {"backup", CN_COMMAND_BACKUP, "DIR [OPTIONS]", "copy a data directory",
     "Copies a data directory to the new or empty folder DIR, as of one moment, also while a\n"
     "server uses it.",
     1, cn_cmd_backup},
    {"check", CN_COMMAND_CHECK, "[DATA] [OPTIONS]", "verify a data directory",
     "Reads every log record, database, archive and blob of a data directory that no server uses\n"
     "and says what is wrong. Changes nothing. Exit code 0: clean, 1: damaged, 3: cannot check.",
     1, cn_cmd_check},
    {"version", CN_COMMAND_VERSION, "[OPTIONS]", "print the version",
     "Prints the version; with --engine also what Cairn replaces inside JavaScriptCore, why, and "
     "what\n"
     "of it is on with the library of this machine. CAIRN_ENGINE_PATCHES=off serves without it.",
     0, cn_cmd_version},
    {"help", 0, "[COMMAND]", "explain a command", NULL, 1, run_help},
};

static const struct cn_command *find_command(const char *name)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static const char *command_name_at(const void *data, size_t index)
{
    return index < CN_ARRAY_COUNT(commands) ? commands[index].name : NULL;
}

static int refuse_command(const char *name)
{
    const char *meant = cn_suggest(name, command_name_at, NULL);
    fprintf(stderr, "cairn: unknown command \"%s\"%s%s%s; `cairn help` lists the commands\n", name,
            meant ? " (did you mean \"" : "", meant ? meant : "", meant ? "\"?)" : "");
    return 2;
}

static void print_commands(FILE *out)
{
    fprintf(out, "cairn runs Workers projects on your own machines.\n\n"
                 "usage: cairn COMMAND [ARGUMENTS]\n\nCommands:\n");
    for (size_t i = 0; i < CN_ARRAY_COUNT(commands); i++)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n`cairn help COMMAND` explains one.\n");
}

static int run_help(const struct cn_args *args)
{
    if (args->rest_count == 0) {
        print_commands(stdout);
        return 0;
    }
    const struct cn_command *command = find_command(args->rest[0]);
    if (!command)
        return refuse_command(args->rest[0]);
    cn_args_print_help(command);
    return 0;
}

int main(int argc, char **argv)
{
    struct cn_args args;
    struct cn_err err = {0};
    const char *name = argc > 1 ? argv[1] : "";
    if (!*name) {
        print_commands(stderr);
        return 2;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "-v") == 0)
        name = "version";
    const struct cn_command *command = find_command(name);
    if (!command)
        return refuse_command(name);
    int status = 2;
    if (cn_args_parse(&args, command, argc - 2, argv + 2, &err) < 0)
        fprintf(stderr, "cairn: %s\n", err.text);
    else if (args.help)
        status = (cn_args_print_help(command), 0);
    else
        status = command->run(&args);
    cn_args_fini(&args);
    return status;
}
