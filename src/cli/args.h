/* SPDX-License-Identifier: Apache-2.0 */
/* cli/args.h - the command line: commands, their options, and the CAIRN_* variables
 * that mirror them. A flag wins over its variable.
 *
 * A command is one file, cmd_NAME.c, that ends in its struct cn_command: help, a table of options,
 * and a function. The options are read into a struct of the command's own.
 *
 * Ownership: see struct cn_args; texts are borrowed from argv and the environment. */
#ifndef CN_CLI_ARGS_H
#define CN_CLI_ARGS_H
#include <stdbool.h>
#include <stddef.h>

struct cn_args;
struct cn_err;

struct cn_option {
    const char *name;
    char letter;          /* 0: none */
    const char *value;    /* what stands for its value in the help; NULL: it takes none */
    const char *variable; /* NULL: none */
    const char *help;
    /* In the command's struct: of a const char *, or of a bool if it takes no value. */
    size_t offset;
    /* Of an option that may be repeated: of the size_t that counts its values; `offset` is that of
     * a const char **, which struct cn_args owns. 0: it may not. */
    size_t count_offset;
};

struct cn_command {
    const char *name;
    const char *usage;   /* "[PROJECT...]" */
    const char *summary; /* for the list */
    const char *text;    /* for its own help; may be NULL */
    size_t rest_max;
    const struct cn_option *options;   /* --help is every command's and not among them */
    size_t option_count, options_size; /* of the table; of the struct that they are read into */
    bool plain;                        /* takes no option at all */
    int (*run)(const struct cn_args *args); /* the process's exit code */
};

struct cn_args {
    const struct cn_command *command;
    void *options; /* owned: the command's struct. Zeros mean not given */
    bool help;
    const char **rest; /* owned: what is no option */
    size_t rest_count;
    char *lines; /* owned: backs what came from a variable with a value per line */
};

/* Parses what follows the command's name. */
int cn_args_parse(struct cn_args *args, const struct cn_command *command, int argc, char **argv,
                  struct cn_err *err);
void cn_args_fini(struct cn_args *args);
/* Prints usage, text and options of a command on standard output. */
void cn_args_print_help(const struct cn_command *command);
/* The data directory that a command works on: what --data says, else .cairn in the current folder,
 * else, where there is none, that of the packaged service (which is said, if somebody looks). */
#define CN_ARGS_DATA_PACKAGED "/var/lib/cairn"
const char *cn_args_data(const char *given);

/* Options that several commands have; `at` is their place in the struct. */
#define CN_OPTION_DATA(at)                                                       \
    {                                                                            \
        "data", 0, "DIR", "CAIRN_DATA", "data directory (PROJECT/.cairn)", at, 0 \
    }
/* Of commands that ask cn_args_data(). */
#define CN_OPTION_DATA_FOUND(at)                                                  \
    {                                                                             \
        "data", 0, "DIR", "CAIRN_DATA",                                           \
            "data directory (.cairn here, else " CN_ARGS_DATA_PACKAGED ")", at, 0 \
    }
#define CN_OPTION_ENV(at)                                                                      \
    {                                                                                          \
        "env", 'e', "NAME", "CAIRN_ENV", "environment of the configuration: [env.NAME]", at, 0 \
    }
#define CN_OPTION_ALLOW_MISSING(at)                                         \
    {                                                                       \
        "allow-missing", 0, "KEY", "CAIRN_ALLOW_MISSING",                   \
            "keys of the configuration that cairn does not run: A,B", at, 0 \
    }
#define CN_OPTION_ALLOW_DELETE(at)                                               \
    {                                                                            \
        "allow-delete", 0, "CLASS", NULL,                                        \
            "Durable Object classes that may be deleted: A,B or WORKER/A", at, 0 \
    }
#define CN_OPTION_RECOVER(at)                                                                      \
    {                                                                                              \
        "recover", 0, "CLASS", NULL, "deleted classes to take back instead of creating them anew", \
            at, 0                                                                                  \
    }
#define CN_OPTION_VAR(at, count)                                                       \
    {                                                                                  \
        "var", 0, "K=V", "CAIRN_VAR",                                                  \
            "sets a variable; may be repeated (in CAIRN_VAR: one per line)", at, count \
    }
#define CN_OPTION_LOG(at)                                                        \
    {                                                                            \
        "log", 0, "json|pretty", "CAIRN_LOG", "form of messages (pretty)", at, 0 \
    }
#define CN_OPTION_CONFIG(at)                                                            \
    {                                                                                   \
        "config", 'c', "FILE", NULL, "the project's folder or configuration (.)", at, 0 \
    }
#define CN_OPTION_JSON(at)                                       \
    {                                                            \
        "json", 0, NULL, NULL, "one JSON object per line", at, 0 \
    }
#define CN_OPTION_PREFIX(at)                                       \
    {                                                              \
        "prefix", 0, "P", NULL, "list: names that begin so", at, 0 \
    }
#define CN_OPTION_FORCE(at)                                              \
    {                                                                    \
        "force", 'f', NULL, NULL, "delete, purge: without asking", at, 0 \
    }
#define CN_OPTION_LOCAL(at)                                                          \
    {                                                                                \
        "local", 0, NULL, NULL, "accepted: the data is always this machine's", at, 0 \
    }
#define CN_OPTION_REMOTE(at)                                              \
    {                                                                     \
        "remote", 0, NULL, NULL, "accepted, with the same meaning", at, 0 \
    }
#define CN_OPTION_YES(at)                                           \
    {                                                               \
        "yes", 'y', NULL, NULL, "accepted: nothing is asked", at, 0 \
    }

/* The commands (cmd_NAME.c); those of services are in their descriptors (service/def.h). */
extern const struct cn_command cn_cmd_serve, cn_cmd_dev, cn_cmd_build, cn_cmd_deploy, cn_cmd_new,
    cn_cmd_cluster, cn_cmd_objects, cn_cmd_tail, cn_cmd_replay, cn_cmd_dashboard, cn_cmd_backup,
    cn_cmd_restore, cn_cmd_check, cn_cmd_tokens, cn_cmd_version, cn_cmd_login, cn_cmd_logout,
    cn_cmd_whoami, cn_cmd_versions, cn_cmd_deployments, cn_cmd_rollback, cn_cmd_secret,
    cn_cmd_delete, cn_cmd_types, cn_cmd_init, cn_cmd_import, cn_cmd_health;

#endif
