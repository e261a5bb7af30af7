/* SPDX-License-Identifier: Apache-2.0 */
/* service/email/config.c - `send_email`: what a binding may send, and the mail server that
 * [cairn.email] names. The way there is told to the prelude alone; without one `cairn dev` keeps
 * messages in a folder, and elsewhere the binding says so. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/keys.h"
#include "config/service_config.h"
#include "service/def.h"
#include "worker/script.h"

#define TIMEOUT_MS_DEFAULT 60000

struct entry {
    const char *name, *destination_address;
    struct cn_strings allowed_destination_addresses, allowed_sender_addresses;
};
struct entries {
    struct entry *items;
    size_t count;
};

/* clang-format off */
SCHEMA(schema, struct entry,
    STRING(entry, name, .flags = REQUIRED),
    STRING(entry, destination_address),
    STRINGS(entry, allowed_destination_addresses),
    STRINGS(entry, allowed_sender_addresses),
    SUB_HOSTED("remote"));
/* clang-format on */

struct place {
    bool secure; /* TLS from the first byte */
    const char *host;
    size_t host_size;
    long port;
};

static int refuse(const char *url, struct cn_err *err)
{
    return cn_err_set(err, CN_EINVALID,
                      "[cairn.email]: url must be smtp://HOST, smtp://HOST:PORT or smtps:// with "
                      "the same, without a user (there is a key for that), not \"%.100s\"",
                      url);
}

/* "smtp://host", "smtps://host:465", "smtp://[::1]:25/" */
static int parse_url(const char *url, struct place *place, struct cn_err *err)
{
    static const char plain[] = "smtp://", secure[] = "smtps://";
    place->secure = strncmp(url, secure, sizeof(secure) - 1) == 0;
    if (!place->secure && strncmp(url, plain, sizeof(plain) - 1) != 0)
        return refuse(url, err);
    const char *host = url + (place->secure ? sizeof(secure) : sizeof(plain)) - 1;
    size_t size = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#@ ");
    const char *rest = host + size;
    if (size == 0 || size > strlen(host) || (*host == '[' && size < 4))
        return refuse(url, err);
    place->host = host;
    place->host_size = size;
    place->port = place->secure ? 465 : 25;
    if (*rest == ':') {
        char *end;
        if (rest[1] < '0' || rest[1] > '9')
            return refuse(url, err);
        place->port = strtol(rest + 1, &end, 10);
        rest = end;
    }
    if (place->port < 1 || place->port > 65535 || (*rest && strcmp(rest, "/") != 0))
        return refuse(url, err);
    return 0;
}

static const char *find_var(const struct cn_config *config, const char *name)
{
    for (size_t i = 0; i < config->vars.count; i++) {
        if (strcmp(config->vars.items[i].name, name) == 0 &&
            config->vars.items[i].kind != CN_VAR_JSON)
            return config->vars.items[i].text;
    }
    return NULL;
}

static void put(struct cn_buf *json, const char *key, const char *text, size_t size)
{
    cn_buf_printf(json, ",\"%s\":", key);
    cn_buf_append_json(json, text, size);
}

/* By the process's variable, or by the variable or secret of the project that is named. */
static int put_password(const struct cn_config *config, struct cn_buf *json, struct cn_err *err)
{
    const char *password = cn_config_process_variable(config, "CAIRN_EMAIL_PASSWORD");
    const char *name = config->server.email.password;
    if (!password && name)
        password = find_var(config, name);
    if (!password)
        return cn_err_set(err, CN_ENOTFOUND,
                          name ? "[cairn.email]: the project has no variable or secret named %s"
                               : "[cairn.email]: a user needs a password: the name of a variable "
                                 "or secret of the project, or CAIRN_EMAIL_PASSWORD%s",
                          name ? name : "");
    put(json, "password", password, strlen(password));
    return 0;
}

/* What the server is told in EHLO: the machine's name if it looks like one. */
static void put_hello(struct cn_buf *json)
{
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) < 0)
        name[0] = '\0';
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
    bool good = size > 0 && !name[size];
    put(json, "hello", good ? name : "localhost", good ? size : strlen("localhost"));
}

/* Appends ,"server":{...} as prelude/workers/service/email-smtp.js takes it. */
static int put_server(const struct cn_config *config, struct cn_buf *json, struct cn_err *err)
{
    const char *url = config->server.email.url, *user = config->server.email.user;
    const char *starttls = config->server.email.starttls;
    struct place place = {0};
    int rc = parse_url(url, &place, err);
    if (rc < 0)
        return rc;
    if (user && !place.secure && starttls && strcmp(starttls, "required") != 0)
        return cn_err_set(err, CN_EINVALID,
                          "[cairn.email]: a password is not sent without TLS: leave starttls out, "
                          "or take smtps://");
    cn_buf_printf(json, ",\"server\":{\"port\":%ld,\"secure\":%s", place.port,
                  place.secure ? "true" : "false");
    put(json, "host", place.host, place.host_size);
    if (!starttls)
        starttls = user ? "required" : "offered";
    put(json, "starttls", starttls, strlen(starttls));
    int64_t timeout = config->server.email.timeout_ms;
    cn_buf_printf(json, ",\"timeout\":%lld", (long long)(timeout ? timeout : TIMEOUT_MS_DEFAULT));
    put_hello(json);
    if (user) {
        put(json, "user", user, strlen(user));
        rc = put_password(config, json, err);
    }
    cn_buf_append_byte(json, '}');
    return rc;
}

static void put_allowed(struct cn_buf *json, const char *key, const struct cn_strings *addresses)
{
    for (size_t i = 0; i < addresses->count; i++) {
        if (i == 0)
            cn_buf_printf(json, ",\"%s\":[", key);
        else
            cn_buf_append_byte(json, ',');
        cn_buf_append_json(json, addresses->items[i], strlen(addresses->items[i]));
    }
    if (addresses->count)
        cn_buf_append_byte(json, ']');
}

static int bind_one(struct cn_bindings *list, const struct entry *entry, struct cn_err *err)
{
    int rc = 0;
    if (entry->destination_address && entry->allowed_destination_addresses.count)
        return cn_err_set(err, CN_EINVALID,
                          "send_email: %s has destination_address and "
                          "allowed_destination_addresses; it is one or the other",
                          entry->name);
    cn_binding_begin(list, entry->name, "send_email");
    if (entry->destination_address)
        cn_binding_member(list, "destination", entry->destination_address);
    put_allowed(list->json, "destinations", &entry->allowed_destination_addresses);
    put_allowed(list->json, "senders", &entry->allowed_sender_addresses);
    if (list->config->server.email.url)
        rc = put_server(list->config, list->json, err);
    else if (list->script->email_dir)
        cn_buf_append_str(list->json, ",\"kept\":true");
    cn_binding_end(list);
    return rc;
}

static int bind_all(struct cn_bindings *list, const void *entries, struct cn_err *err)
{
    const struct entries *all = entries;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < all->count; i++)
        rc = bind_one(list, &all->items[i], err);
    return rc;
}

static const struct cn_service_config config = {
    .key = {.name = "send_email", .kind = CN_FIELD_LIST, .sub = &schema, .flags = OWN},
    .name = "name",
    .bind = bind_all,
};

extern const struct cn_js_natives cn_email_natives;

const struct cn_service_def cn_service_email = {
    .name = "email",
    .title = "Email",
    .about = "messages to a mail server that `[cairn.email]` names",
    .page = "reference/email.md",
    .config = &config,
    .natives = &cn_email_natives,
};
