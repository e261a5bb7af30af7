/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_login.c - `cairn login`, `logout`, `whoami`: tokens of servers elsewhere (cli/logins.h).
 * A token is asked for on the terminal, or read from standard input or CAIRN_API_TOKEN: never from
 * the command line, which every process of the machine can read. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/logins.h"
#include "cli/print.h"
#include "cli/prompt.h"
#include "cli/remote.h"

#define TOKEN_MAX 1000

static char *get_token(const char *url, struct cn_err *err)
{
    const char *given = getenv("CAIRN_API_TOKEN");
    if (given && *given)
        return cn_strdup(given);
    char *question = cn_sprintf("Token for %s: ", url);
    char *token = cn_prompt_secret(question, TOKEN_MAX, err);
    cn_free(question);
    size_t size = token ? strlen(token) : 0;
    while (size && strchr(" \t\r\n", token[size - 1]))
        token[--size] = 0;
    /* The line that `cairn tokens create` prints may come as it is. */
    static const char name[] = "CLOUDFLARE_API_TOKEN=";
    if (token && strncmp(token, name, sizeof(name) - 1) == 0) {
        char *rest =
            cn_strndup(token + sizeof(name) - 1, strcspn(token + sizeof(name) - 1, "\r\n"));
        cn_free(token);
        token = rest;
    }
    if (token && (!*token || strpbrk(token, " \t\r\n"))) {
        cn_free(token);
        cn_err_set(err, CN_EINVALID,
                   "that is no token; `cairn tokens create NAME` on the server "
                   "makes one");
        return NULL;
    }
    return token;
}

static int login(const char *given, struct cn_err *err)
{
    struct cn_remote remote = {.socket_dir = -1};
    char *url = cn_logins_normal(given, err);
    if (!url)
        return err->code;
    char *token = get_token(url, err);
    int rc = token ? cn_remote_try(&remote, url, token, err) : err->code;
    if (rc == 0)
        rc = cn_logins_set(url, token, err);
    if (rc == 0) {
        char *path = cn_logins_path();
        printf("Logged in to %s as %s; the token is in %s\n", url, remote.who, path);
        cn_free(path);
    }
    cn_remote_close(&remote);
    cn_free(token);
    cn_free(url);
    return rc;
}

/* The server that is meant: the argument, --server, or the last one. */
static char *meant(const struct cn_args *args, struct cn_err *err)
{
    const struct cn_remote_options *options = args->options;
    const char *given = args->rest_count ? args->rest[0] : options->server;
    if (given)
        return cn_logins_normal(given, err);
    char *last = cn_logins_last(err);
    if (!last && !err->code)
        cn_err_set(err, CN_ENOTFOUND, "which server? usage: cairn %s URL", args->command->name);
    return last;
}

static int run_login(const struct cn_args *args)
{
    const struct cn_remote_options *options = args->options;
    struct cn_err err = {0};
    const char *given = args->rest_count ? args->rest[0] : options->server;
    if (!given) {
        fprintf(stderr, "cairn: which server? usage: cairn login URL\n");
        return 2;
    }
    return cn_print_outcome(login(given, &err), &err);
}

static int run_logout(const struct cn_args *args)
{
    struct cn_err err = {0};
    char *url = meant(args, &err);
    int rc = url ? cn_logins_set(url, NULL, &err) : err.code;
    if (rc == 0)
        printf("The token for %s is forgotten here; `cairn tokens revoke` on the server ends it\n",
               url);
    cn_free(url);
    return cn_print_outcome(rc, &err);
}

static int run_whoami(const struct cn_args *args)
{
    struct cn_remote_options options = *(const struct cn_remote_options *)args->options;
    struct cn_err err = {0};
    struct cn_remote remote;
    if (args->rest_count)
        options.server = args->rest[0];
    int rc = cn_remote_open(&remote, &options, &err);
    if (rc == 0) {
        if (options.json) {
            struct cn_buf json = {0};
            cn_buf_append_str(&json, "{\"server\":");
            cn_buf_append_json(&json, remote.url, strlen(remote.url));
            cn_buf_append_str(&json, ",\"token\":");
            cn_buf_append_json(&json, remote.who, strlen(remote.who));
            cn_buf_append_str(&json, ",\"account\":");
            cn_buf_append_json(&json, remote.account, strlen(remote.account));
            cn_buf_append_str(&json, "}\n");
            printf("%s", cn_buf_text(&json));
            cn_buf_fini(&json);
        } else {
            printf("You are %s on %s (account %s)\n", remote.who, remote.url, remote.account);
        }
        cn_remote_close(&remote);
    }
    return cn_print_outcome(rc, &err);
}

#define AT(member) offsetof(struct cn_remote_options, member)

static const struct cn_option server_flag[] = {CN_OPTION_SERVER(AT(server))};
static const struct cn_option whoami_flags[] = {
    CN_OPTION_SERVER(AT(server)),
    CN_OPTION_SERVER_DATA(AT(data)),
    CN_OPTION_JSON(AT(json)),
};

const struct cn_command cn_cmd_login = {
    .name = "login",
    .usage = "URL",
    .summary = "keep the token of a server, for commands with --server",
    .text = "Asks for a token (made by `cairn tokens create NAME` on the server), tries it, and "
            "keeps it for\n"
            "this user: `cairn deploy --server URL` and the other commands on a server find it "
            "there. The\n"
            "token can also come on standard input, or in CAIRN_API_TOKEN.",
    .rest_max = 1,
    .options = server_flag,
    .option_count = CN_ARRAY_COUNT(server_flag),
    .options_size = sizeof(struct cn_remote_options),
    .run = run_login,
};

const struct cn_command cn_cmd_logout = {
    .name = "logout",
    .usage = "[URL]",
    .summary = "forget the token of a server",
    .text = "Forgets the token of a server (default: the one that was logged in to last). It stays "
            "good until\n"
            "it is revoked on the server: `cairn tokens revoke`.",
    .rest_max = 1,
    .options = server_flag,
    .option_count = CN_ARRAY_COUNT(server_flag),
    .options_size = sizeof(struct cn_remote_options),
    .run = run_logout,
};

const struct cn_command cn_cmd_whoami = {
    .name = "whoami",
    .usage = "[URL] [OPTIONS]",
    .summary = "which server and which token are used",
    .rest_max = 1,
    .options = whoami_flags,
    .option_count = CN_ARRAY_COUNT(whoami_flags),
    .options_size = sizeof(struct cn_remote_options),
    .run = run_whoami,
};
