/* SPDX-License-Identifier: Apache-2.0 */
/* cli/remote.h - a server elsewhere, by the API that wrangler uses (v4/v4.h).
 *
 *     --server URL, CAIRN_SERVER    its admin listener, with the token of CAIRN_API_TOKEN or of
 *                                   `cairn login`
 *     --data DIR, CAIRN_DATA        the server on this data directory, by its control socket, which
 *                                   asks nobody
 *     neither                       the server that was logged in to last
 *
 *   R1  A token goes to the server it was given or kept for, and to no other (logins.h, caller.h).
 *
 * Ownership: the struct owns what it points to but the options. */
#ifndef CN_CLI_REMOTE_H
#define CN_CLI_REMOTE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct cn_args;
struct cn_config;

/* What the commands on a server elsewhere all take: the first member of their struct of options. */
struct cn_remote_options {
    const char *server, *data;
    const char *name, *config, *env; /* the worker: its name, or where its project is */
    const char *message, *tag;       /* of a version */
    bool json, yes;
};

#define CN_OPTION_SERVER(at)                                                                    \
    {                                                                                           \
        "server", 0, "URL", "CAIRN_SERVER",                                                     \
            "a server's admin listener; its token comes from CAIRN_API_TOKEN or `cairn login`", \
            at, 0                                                                               \
    }
#define CN_OPTION_SERVER_DATA(at)                                                                 \
    {                                                                                             \
        "data", 0, "DIR", "CAIRN_DATA", "the server on this data directory, without a token", at, \
            0                                                                                     \
    }
#define CN_OPTION_WORKER(at)                                                    \
    {                                                                           \
        "name", 0, "WORKER", NULL, "the worker (default: the project's)", at, 0 \
    }
#define CN_OPTION_MESSAGE(at)                                                                \
    {                                                                                        \
        "message", 'm', "TEXT", NULL, "what the version or deployment says of itself", at, 0 \
    }

/* How the server and the worker are said, in the table of any command on one: five options. */
#define CN_OPTIONS_REMOTE                                                \
    CN_OPTION_SERVER(offsetof(struct cn_remote_options, server)),        \
        CN_OPTION_SERVER_DATA(offsetof(struct cn_remote_options, data)), \
        CN_OPTION_WORKER(offsetof(struct cn_remote_options, name)),      \
        CN_OPTION_CONFIG(offsetof(struct cn_remote_options, config)),    \
        CN_OPTION_ENV(offsetof(struct cn_remote_options, env))
/* "yes", told by `text`. */
#define CN_OPTION_REMOTE_YES(text)                                               \
    {                                                                            \
        "yes", 'y', NULL, NULL, text, offsetof(struct cn_remote_options, yes), 0 \
    }

struct cn_remote {
    char *url;    /* without /client/v4 */
    char *token;  /* NULL: by the control socket */
    char *socket; /* NULL: by TCP */
    int socket_dir;
    char account[64];
    char who[100];        /* the token's name */
    struct cn_json *last; /* the last answer */
};

/* Finds the server and asks who we are. */
int cn_remote_open(struct cn_remote *remote, const struct cn_remote_options *options,
                   struct cn_err *err);
/* The same with a token that is tried and not kept. */
int cn_remote_try(struct cn_remote *remote, const char *url, const char *token, struct cn_err *err);
void cn_remote_close(struct cn_remote *remote);

/* Whether the options say that a server is meant. */
bool cn_remote_is_meant(const struct cn_remote_options *options);

/* Asks; `target` is below the account unless it begins with a slash. The result (NULL: none), which
 * is good until the next call; on failure the API's own sentence with its code. */
int cn_remote_ask(struct cn_remote *remote, const char *method, const char *target,
                  const struct cn_json **result, struct cn_err *err);
/* With a body of JSON. */
int cn_remote_send(struct cn_remote *remote, const char *method, const char *target,
                   struct cn_buf *body, const struct cn_json **result, struct cn_err *err);
/* A body of any kind; `token` in the place of the remote's own, or NULL. */
struct cn_remote_body {
    const char *type;
    const struct cn_buf *bytes;
    const char *token;
};
int cn_remote_post(struct cn_remote *remote, const char *method, const char *target,
                   const struct cn_remote_body *body, const struct cn_json **result,
                   struct cn_err *err);

/* "workers/scripts/NAME/REST" with the name encoded. Owned. */
char *cn_remote_script(const char *name, const char *rest);
/* The worker that is meant: --name, or the project's. Owned; NULL with an error. */
char *cn_remote_worker(const struct cn_remote_options *options, struct cn_err *err);

/* Says of which worker an error is; its name is shown without control characters. The error. */
int cn_remote_context(struct cn_err *err, const char *worker);

/* A verb of a command that has several. */
struct cn_remote_verb {
    const char *name;
    size_t rest_min, rest_max; /* of what follows */
    int (*run)(struct cn_remote *remote, const struct cn_args *args, const char *const *rest,
               struct cn_err *err);
};
/* The exit code; `usage` names the verbs. `args->options` begin with a struct cn_remote_options. */
int cn_remote_main(const struct cn_args *args, const struct cn_remote_verb *verbs, size_t count,
                   const char *usage);

/* Asks whether to go on, unless --yes was given; CN_EDENIED if not. */
int cn_remote_confirm(const struct cn_remote_options *options, const char *question,
                      struct cn_err *err);

#endif
