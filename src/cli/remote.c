/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/assert.h"
#include "base/mem.h"
#include "cli/api.h"
#include "cli/args.h"
#include "cli/logins.h"
#include "cli/print.h"
#include "config/config.h"
#include "net/caller.h"

#define ANSWER_MAX ((size_t)64 << 20)

/* --- which server ---------------------------------------------------------------------------- */

static int open_socket(struct cn_remote *remote, const char *data, struct cn_err *err)
{
    int fd = cn_admin_socket(data, "control.sock", false);
    if (fd < 0)
        return cn_err_set(err, CN_ENOTFOUND, "no server runs on the data directory %s", data);
    close(fd);
    remote->socket_dir = open(data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (remote->socket_dir < 0)
        return cn_err_errno(err, errno, "%s: cannot be opened", data);
    remote->socket = cn_sprintf("/proc/self/fd/%d/control.sock", remote->socket_dir);
    remote->url = cn_strdup("http://localhost");
    return 0;
}

static int open_url(struct cn_remote *remote, const char *url, struct cn_err *err)
{
    const char *token = getenv("CAIRN_API_TOKEN");
    remote->url = cn_logins_normal(url, err);
    if (!remote->url)
        return err->code;
    remote->token = token && *token ? cn_strdup(token) : cn_logins_token(remote->url, err);
    if (remote->token)
        return 0;
    return err->code ? err->code
                     : cn_err_set(err, CN_EDENIED,
                                  "there is no token for %s: run `cairn login %s`, or set "
                                  "CAIRN_API_TOKEN",
                                  remote->url, remote->url);
}

bool cn_remote_is_meant(const struct cn_remote_options *options)
{
    return options->server != NULL;
}

static int find_server(struct cn_remote *remote, const struct cn_remote_options *options,
                       struct cn_err *err)
{
    *remote = (struct cn_remote){.socket_dir = -1};
    if (options->server)
        return open_url(remote, options->server, err);
    if (options->data)
        return open_socket(remote, options->data, err);
    char *last = cn_logins_last(err);
    int rc = last        ? open_url(remote, last, err)
             : err->code ? err->code
                         : cn_err_set(err, CN_ENOTFOUND,
                                      "which server? --server URL, --data DIR, or `cairn login`");
    cn_free(last);
    return rc;
}

/* As it can be shown. */
static void take_name(struct cn_remote *remote, const char *name)
{
    struct cn_buf shown = {0};
    cn_print_escape(&shown, name, strlen(name));
    snprintf(remote->who, sizeof(remote->who), "%s", cn_buf_text(&shown));
    cn_buf_fini(&shown);
}

/* It becomes a part of addresses. */
static bool is_account(const char *text)
{
    return *text && strspn(text, "0123456789abcdefABCDEF-") == strlen(text);
}

/* Who we are, and the account. */
static int introduce(struct cn_remote *remote, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    int rc = cn_remote_ask(remote, "GET", "/user", &result, err);
    const char *who = cn_json_text(result, "email");
    if (rc == 0)
        take_name(remote, who ? who : "");
    if (rc == 0)
        rc = cn_remote_ask(remote, "GET", "/accounts", &result, err);
    const char *account = rc == 0 && result ? cn_json_text(result->first, "id") : NULL;
    if (rc == 0 && (!account || !is_account(account)))
        rc = cn_err_set(err, CN_EPROTOCOL, "%s does not name its account", remote->url);
    if (rc == 0)
        snprintf(remote->account, sizeof(remote->account), "%s", account);
    return rc;
}

int cn_remote_open(struct cn_remote *remote, const struct cn_remote_options *options,
                   struct cn_err *err)
{
    int rc = find_server(remote, options, err);
    if (rc == 0)
        rc = introduce(remote, err);
    if (rc < 0)
        cn_remote_close(remote);
    return rc;
}

int cn_remote_try(struct cn_remote *remote, const char *url, const char *token, struct cn_err *err)
{
    *remote = (struct cn_remote){.socket_dir = -1, .token = cn_strdup(token)};
    remote->url = cn_logins_normal(url, err);
    int rc = remote->url ? introduce(remote, err) : err->code;
    if (rc < 0)
        cn_remote_close(remote);
    return rc;
}

void cn_remote_close(struct cn_remote *remote)
{
    cn_json_free(remote->last);
    cn_free(remote->url);
    cn_free(remote->token);
    cn_free(remote->socket);
    if (remote->socket_dir >= 0)
        close(remote->socket_dir);
    *remote = (struct cn_remote){.socket_dir = -1};
}

/* --- calls ----------------------------------------------------------------------------------- */

/* The API's sentence, or that of the control API, which refuses what never reached it. */
static int fail(const struct cn_remote *remote, int status, struct cn_err *err)
{
    const struct cn_json *errors = cn_json_find(remote->last, "errors");
    const struct cn_json *first = errors ? errors->first : NULL;
    const char *message = cn_json_text(first, "message");
    int64_t code = cn_json_int(first, "code");
    if (!message)
        message = cn_json_text(cn_json_find(remote->last, "error"), "message");
    struct cn_buf shown = {0};
    if (message)
        cn_print_escape(&shown, message, strlen(message));
    message = message ? cn_buf_text(&shown) : NULL;
    int rc = status == 404                    ? CN_ENOTFOUND
             : status == 401 || status == 403 ? CN_EDENIED
                                              : CN_EINVALID;
    if (status == 401)
        cn_err_set(err, rc, "%s does not know this token: `cairn login %s` with another",
                   remote->url, remote->url);
    else if (code && message)
        cn_err_set(err, rc, "%s [code: %" PRId64 "]", message, code);
    else
        cn_err_set(err, rc, "%s", message ? message : "the server refused, and does not say why");
    cn_buf_fini(&shown);
    return rc;
}

static int take_answer(struct cn_remote *remote, int status, struct cn_buf *answer,
                       const struct cn_json **result, struct cn_err *err)
{
    const struct cn_json *success;
    remote->last = cn_json_parse(answer->data ? (char *)answer->data : "", answer->size, NULL);
    if (!remote->last)
        return cn_err_set(err, CN_EPROTOCOL,
                          "%s answers with status %d and no JSON: is it the admin listener of a "
                          "cairn server?",
                          remote->url, status);
    success = cn_json_find(remote->last, "success");
    if (status >= 300 || !success || !success->boolean)
        return fail(remote, status, err);
    *result = cn_json_find(remote->last, "result");
    return 0;
}

int cn_remote_post(struct cn_remote *remote, const char *method, const char *target,
                   const struct cn_remote_body *body, const struct cn_json **result,
                   struct cn_err *err)
{
    const char *ca = getenv("CAIRN_CA");
    struct cn_buf answer = {0};
    char *url = *target == '/' ? cn_sprintf("%s/client/v4%s", remote->url, target)
                               : cn_sprintf("%s/client/v4/accounts/%s/%s", remote->url,
                                            remote->account, target);
    struct cn_caller_request request = {
        .method = method,
        .url = url,
        .socket = remote->socket,
        .token = body->token ? body->token : remote->token,
        .content_type = body->type,
        .body = body->bytes ? body->bytes->data : NULL,
        .body_size = body->bytes ? body->bytes->size : 0,
        .ca_file = ca && *ca ? ca : NULL,
        .answer_max = ANSWER_MAX,
    };
    cn_json_free(remote->last);
    remote->last = NULL;
    *result = NULL;
    int rc = cn_caller_ask(&request, &answer, err);
    if (rc >= 0)
        rc = take_answer(remote, rc, &answer, result, err);
    cn_buf_fini(&answer);
    cn_free(url);
    return rc;
}

int cn_remote_ask(struct cn_remote *remote, const char *method, const char *target,
                  const struct cn_json **result, struct cn_err *err)
{
    struct cn_remote_body none = {0};
    return cn_remote_post(remote, method, target, &none, result, err);
}

int cn_remote_send(struct cn_remote *remote, const char *method, const char *target,
                   struct cn_buf *body, const struct cn_json **result, struct cn_err *err)
{
    struct cn_remote_body json = {"application/json", body, NULL};
    return cn_remote_post(remote, method, target, &json, result, err);
}

/* --- the worker ------------------------------------------------------------------------------ */

char *cn_remote_script(const char *name, const char *rest)
{
    struct cn_buf text = {0};
    cn_buf_append_str(&text, "workers/scripts/");
    cn_api_append_param(&text, NULL, name);
    cn_buf_append_str(&text, rest);
    cn_buf_text(&text);
    return (char *)cn_buf_take(&text);
}

char *cn_remote_worker(const struct cn_remote_options *options, struct cn_err *err)
{
    if (options->name)
        return cn_strdup(options->name);
    struct cn_config *config = NULL;
    struct cn_config_options how = {.env = options->env};
    if (cn_config_load(options->config ? options->config : ".", &how, &config, err) < 0) {
        cn_err_context(err, "which worker? --name WORKER, or a project in this folder");
        return NULL;
    }
    char *name = cn_strdup(config->name);
    cn_config_free(config);
    return name;
}

int cn_remote_context(struct cn_err *err, const char *worker)
{
    struct cn_buf shown = {0};
    cn_print_escape(&shown, worker, strlen(worker));
    int rc = cn_err_context(err, "%s", cn_buf_text(&shown));
    cn_buf_fini(&shown);
    return rc;
}

/* --- commands -------------------------------------------------------------------------------- */

int cn_remote_main(const struct cn_args *args, const struct cn_remote_verb *verbs, size_t count,
                   const char *usage)
{
    const struct cn_remote_verb *verb = NULL;
    for (size_t i = 0; args->rest_count && i < count; i++) {
        size_t rest = args->rest_count - 1;
        if (strcmp(verbs[i].name, args->rest[0]) == 0 && rest >= verbs[i].rest_min &&
            rest <= verbs[i].rest_max)
            verb = &verbs[i];
    }
    if (!verb) {
        fprintf(stderr, "cairn: %s\n", usage);
        return 2;
    }
    struct cn_err err = {0};
    struct cn_remote remote;
    const char **rest = cn_alloc_zero((args->rest_count + verb->rest_max + 1) * sizeof(char *));
    memcpy(rest, args->rest + 1, (args->rest_count - 1) * sizeof(char *));
    int rc = cn_remote_open(&remote, args->options, &err);
    if (rc == 0) {
        rc = verb->run(&remote, args, rest, &err);
        cn_remote_close(&remote);
    }
    cn_free(rest);
    return cn_print_outcome(rc, &err);
}

int cn_remote_confirm(const struct cn_remote_options *options, const char *question,
                      struct cn_err *err)
{
    char answer[16];
    if (options->yes)
        return 0;
    if (isatty(STDIN_FILENO)) {
        fprintf(stderr, "%s [y/N] ", question);
        if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
            return 0;
    }
    return cn_err_set(err, CN_EDENIED, "nothing was done; --yes does it unasked");
}
