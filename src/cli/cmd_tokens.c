/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_tokens.c - `cairn tokens`: who may deploy to this server (v4/tokens.h). */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/verb.h"

struct options {
    struct cn_verb_options common;
    const char *scope;
    const char *expires_in;
};

/* "90", "90s", "15m", "12h", "30d" as seconds; -1: it is none. */
static int64_t read_seconds(const char *text)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;
    errno = 0;
    long long count = strtoll(text, &end, 10);
    int64_t seconds = *end ? 0 : 1;
    for (size_t i = 0; i < CN_ARRAY_COUNT(units); i++) {
        if (end[0] == units[i].unit && !end[1])
            seconds = units[i].seconds;
    }
    return end == text || errno || !seconds || count < 1 || count > INT32_MAX ? -1
                                                                              : count * seconds;
}

static int run_create(struct cn_verb_run *cli, struct cn_err *err)
{
    const struct options *given = cli->args->options;
    const char *scope = given->scope ? given->scope : "read,deploy,data";
    cn_verb_target(cli, "/api/tokens", NULL);
    cn_buf_append_str(&cli->body, "{\"name\":");
    cn_buf_append_json(&cli->body, cli->rest[0], strlen(cli->rest[0]));
    cn_buf_append_str(&cli->body, ",\"scopes\":");
    cn_buf_append_json(&cli->body, scope, strlen(scope));
    if (given->expires_in) {
        int64_t seconds = read_seconds(given->expires_in);
        if (seconds < 0)
            return cn_err_set(err, CN_EINVALID, "--expires-in is a time such as 12h or 30d");
        cn_buf_printf(&cli->body, ",\"expires_in\":%" PRId64, seconds);
    }
    cn_buf_append_byte(&cli->body, '}');
    int rc = cn_verb_call(cli, "POST", err);
    if (rc < 0)
        return rc;
    if (cli->common->json)
        return cn_verb_print(cli, cli->answer, err);
    const char *account = cn_json_text(cli->answer, "account");
    printf("CLOUDFLARE_API_TOKEN=%s\n", cn_json_text(cli->answer, "token"));
    if (account)
        printf("CLOUDFLARE_ACCOUNT_ID=%s\n", account);
    fprintf(stderr, "the token is shown this once\n");
    return 0;
}

static void print_expiry(int64_t expires_ms)
{
    time_t seconds = (time_t)(expires_ms / 1000);
    struct tm parts;
    char text[32];
    if (expires_ms && gmtime_r(&seconds, &parts) &&
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts))
        printf("  until %s", text);
}

static int run_list(struct cn_verb_run *cli, struct cn_err *err)
{
    cn_verb_target(cli, "/api/tokens", NULL);
    int rc = cn_verb_call(cli, "GET", err);
    if (rc < 0)
        return rc;
    const struct cn_json *list = cn_json_find(cli->answer, "tokens");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        if (cli->common->json) {
            cn_verb_print(cli, item, err);
            continue;
        }
        const struct cn_json *scopes = cn_json_find(item, "scopes");
        printf("%s  %-24s ", cn_json_text(item, "id"), cn_json_text(item, "name"));
        for (const struct cn_json *scope = scopes ? scopes->first : NULL; scope;
             scope = scope->next)
            printf("%s%s", scope->text, scope->next ? "," : "");
        print_expiry(cn_json_int(item, "expires"));
        printf("\n");
    }
    return 0;
}

static int run_revoke(struct cn_verb_run *cli, struct cn_err *err)
{
    cn_verb_target(cli, "/api/tokens", cli->rest[0], NULL);
    int rc = cn_verb_call(cli, "DELETE", err);
    if (rc == 0 && !cli->common->json)
        printf("revoked\n");
    return rc;
}

static int run(const struct cn_args *args)
{
    static const struct cn_verb verbs[] = {
        {NULL, "create", 1, 1, true, run_create},
        {NULL, "list", 0, 0, false, run_list},
        {NULL, "revoke", 1, 1, true, run_revoke},
    };
    return cn_verb_main(args, verbs, CN_ARRAY_COUNT(verbs),
                        "tokens needs one of: create NAME | list | revoke ID; `cairn help tokens` "
                        "explains them");
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    CN_OPTION_DATA_FOUND(AT(common.project.data)),
    {"scope", 0, "A,B", NULL, "create: read, deploy, data (all three)", AT(scope), 0},
    {"expires-in", 0, "TIME", NULL, "create: after which it is refused, 12h or 30d (never)",
     AT(expires_in), 0},
    CN_OPTION_JSON(AT(common.json)),
};

const struct cn_command cn_cmd_tokens = {
    .name = "tokens",
    .usage = "create NAME | list | revoke ID [OPTIONS]",
    .summary = "who may deploy to this server with wrangler",
    .text = "Works on a data directory, also while a server uses it.\n\n"
            "  cairn tokens create NAME [--scope read,deploy,data] [--expires-in 30d]   prints it, "
            "this once\n"
            "  cairn tokens list                                                        names and "
            "scopes\n"
            "  cairn tokens revoke ID                                                   by id or "
            "name, at once\n\n"
            "read looks at what is deployed and at data; deploy changes what is served; data "
            "writes to\n"
            "KV, D1, R2 and queues. With\n\n"
            "  CLOUDFLARE_API_BASE_URL=http://HOST:8788/client/v4\n\n"
            "and the two lines that create prints in its environment, wrangler deploys here.",
    .rest_max = 2,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
