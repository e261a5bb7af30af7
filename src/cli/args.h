/* SPDX-License-Identifier: Apache-2.0 */
/* cli/args.h - the command line: commands, flags, and the CAIRN_* variables
 * that mirror the flags. A flag wins over its variable. */
#ifndef CN_CLI_ARGS_H
#define CN_CLI_ARGS_H
#include <stdbool.h>
#include <stddef.h>

struct cn_err;

/* Commands, as bits, so that an option can say which ones it belongs to. */
enum cn_command_bit {
    CN_COMMAND_SERVE = 1,
    CN_COMMAND_DEV = 2,
    CN_COMMAND_BUILD = 4,
    CN_COMMAND_NEW = 8,
    CN_COMMAND_OBJECTS = 16,
    CN_COMMAND_BACKUP = 32,
    CN_COMMAND_CHECK = 64,
    CN_COMMAND_TAIL = 1 << 14,
    CN_COMMAND_DEPLOY = 128,
    CN_COMMAND_D1 = 256,
    CN_COMMAND_CRONS = 512,
    CN_COMMAND_DASHBOARD = 1 << 15,
    CN_COMMAND_KV = 1 << 17,
    CN_COMMAND_R2 = 1 << 18,
    CN_COMMAND_QUEUES = 1 << 19,
    CN_COMMAND_REPLAY = 1 << 20,
    CN_COMMAND_VERSION = 1 << 21,
};

/* Everything that can be said on the command line. Texts are borrowed from
 * argv and the environment; NULL means not given. */
struct cn_args {
    const char *listen; /* HOST:PORT */
    const char *ip;     /* dev: the two parts of it, as wrangler has them */
    const char *port;
    const char *data;
    const char *lanes;
    const char *env;
    const char *log;
    const char *tls_cert;
    const char *tls_key;
    const char *outdir;
    const char *allow_delete; /* names of classes, with commas between them */
    const char *recover;
    const char *allow_missing; /* keys of the configuration, with commas between them */
    const char *admin; /* HOST:PORT, or off */
    const char *admin_token;
    const char *sandbox_write; /* DIR[:DIR...] */
    const char *prefix;
    const char *format; /* of tail, and its filters: */
    const char *status;
    const char *method;
    const char *search;
    const char *bookmark;
    const char *time;
    const char *config; /* d1: the project */
    const char *command;
    const char *file;
    const char *output;
    const char *table;
    const char *timestamp;
    const char *binding; /* kv */
    const char *namespace_id;
    const char *path;
    const char *ttl;
    const char *expiration;
    const char *metadata;
    const char *content_type; /* r2 */
    const char *content_disposition;
    const char *content_encoding;
    const char *content_language;
    const char *cache_control;
    const char *expires;
    const char *storage_class;
    const char *delimiter;
    const char *limit; /* queues */
    const char *to;
    const char *delay;
    const char *rate; /* replay */
    const char *speed;
    const char *concurrency;
    bool verify, keep_host, without_bodies;
    bool text, preview; /* wrangler's, without meaning here */
    bool pipe;
    bool no_schema, no_data;
    bool yes, local, remote; /* wrangler's, without meaning here */
    bool dry_run;
    bool sandbox;
    bool json;
    bool engine;
    bool force;
    bool help;
    const char **vars; /* owned */
    size_t var_count;
    const char **rest; /* owned: PROJECT... or DIR */
    size_t rest_count;
    char *var_copy; /* owned: backs what came from CAIRN_VAR */
};

struct cn_command {
    const char *name;
    unsigned bit;        /* 0: takes no options */
    const char *usage;   /* "[PROJECT...]" */
    const char *summary; /* for the list */
    const char *text;    /* for its own help; may be NULL */
    size_t rest_max;
    int (*run)(const struct cn_args *args); /* the process's exit code */
};

/* Parses what follows the command's name. */
int cn_args_parse(struct cn_args *args, const struct cn_command *command, int argc, char **argv,
                  struct cn_err *err);
void cn_args_fini(struct cn_args *args);
/* Prints usage, text and options of a command on standard output. */
void cn_args_print_help(const struct cn_command *command);

/* The commands (cmd_NAME.c). */
int cn_cmd_serve(const struct cn_args *args);
int cn_cmd_version(const struct cn_args *args);
int cn_cmd_dev(const struct cn_args *args);
int cn_cmd_build(const struct cn_args *args);
int cn_cmd_deploy(const struct cn_args *args);
int cn_cmd_new(const struct cn_args *args);
int cn_cmd_objects(const struct cn_args *args);
int cn_cmd_backup(const struct cn_args *args);
int cn_cmd_tail(const struct cn_args *args);
int cn_cmd_dashboard(const struct cn_args *args);
int cn_cmd_check(const struct cn_args *args);
int cn_cmd_d1(const struct cn_args *args);
int cn_cmd_kv(const struct cn_args *args);
int cn_cmd_r2(const struct cn_args *args);
int cn_cmd_queues(const struct cn_args *args);
int cn_cmd_replay(const struct cn_args *args);
int cn_cmd_crons(const struct cn_args *args);

#endif
