/* SPDX-License-Identifier: Apache-2.0 */
#include "config/adminconf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/guard.h"
#include "base/crc32c.h"
#include "base/mem.h"
#include "base/rand.h"
#include "config/address.h"
#include "config/config.h"
#include "text/hex.h"

#define ADDRESS_DEFAULT "127.0.0.1:8788"
#define ADDRESS_ANY "127.0.0.1:0" /* of `cairn dev`, of which there may be several */
#define TOKEN_SIZE_MIN 16
#define TOKEN_SIZE_MAX 512

/* A token of ours: the prefix, 40 random digits and 8 of their CRC, so that damage is told from a
 * wrong token. In the file a line feed follows. Somebody's own may be anything of another length.
 */
#define TOKEN_PREFIX "cairn-"
#define TOKEN_RANDOM 20
#define TOKEN_DIGITS (2 * TOKEN_RANDOM)
#define TOKEN_FILE_SIZE (sizeof(TOKEN_PREFIX) - 1 + TOKEN_DIGITS + 8 + 1)

static void token_make(char text[TOKEN_FILE_SIZE + 1])
{
    uint8_t random[TOKEN_RANDOM];
    cn_rand_secure(random, sizeof(random));
    int at = snprintf(text, TOKEN_FILE_SIZE + 1, TOKEN_PREFIX);
    const char *digits = text + at;
    cn_hex_encode(random, sizeof(random), text + at);
    at += TOKEN_DIGITS;
    snprintf(text + at, 10, "%08x\n", cn_crc32c(0, digits, TOKEN_DIGITS));
}

/* `text` is what the file holds. */
static int token_check(const char *text, struct cn_err *err)
{
    char crc[10];
    size_t prefix = strlen(TOKEN_PREFIX), size = strlen(text);
    if (size == TOKEN_FILE_SIZE) {
        snprintf(crc, sizeof(crc), "%08x\n", cn_crc32c(0, text + prefix, TOKEN_DIGITS));
        if (strncmp(text, TOKEN_PREFIX, prefix) != 0 ||
            strcmp(text + prefix + TOKEN_DIGITS, crc) != 0)
            return cn_err_set(err, CN_ECORRUPT,
                              "admin.token is damaged: remove it, and a new one is made");
    } else if (strcspn(text, "\r\n") < TOKEN_SIZE_MIN || strcspn(text, "\r\n") > TOKEN_SIZE_MAX) {
        return cn_err_set(err, CN_EINVALID, "admin.token holds no token of %d to %d characters",
                          TOKEN_SIZE_MIN, TOKEN_SIZE_MAX);
    }
    return 0;
}

/* DATA/admin.token, made at the first start; only the server's user can read it. 1: it is there. */
static int read_token(const char *path, char text[TOKEN_SIZE_MAX + 2], struct cn_err *err)
{
    int rc = 1, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t size = fd < 0 ? -1 : read(fd, text, TOKEN_SIZE_MAX + 1);
    if (size < 0)
        rc = cn_err_errno(err, errno, "cannot read %s", path);
    else
        text[size] = 0;
    if (fd >= 0)
        close(fd);
    int checked = rc == 1 ? token_check(text, err) : 0;
    return checked < 0 ? checked : rc;
}

static int load_token(const char *data, char **token, struct cn_err *err)
{
    char *path = cn_sprintf("%s/admin.token", data);
    char text[TOKEN_SIZE_MAX + 2] = "";
    int rc = read_token(path, text, err);
    if (rc == 0) {
        token_make(text);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));
        if (written != (ssize_t)strlen(text))
            rc = cn_err_errno(err, written < 0 ? errno : ENOSPC, "cannot write %s", path);
        if (fd >= 0 && rc < 0)
            unlink(path); /* half a token would keep every later start from making a whole one */
        if (fd >= 0)
            close(fd);
    }
    text[strcspn(text, "\r\n")] = 0;
    if (rc >= 0)
        *token = cn_strdup(text);
    cn_free(path);
    return rc < 0 ? rc : 0;
}

int cn_adminconf_check(const char *data, struct cn_err *err)
{
    char *path = cn_sprintf("%s/admin.token", data);
    char text[TOKEN_SIZE_MAX + 2];
    int rc = read_token(path, text, err);
    cn_free(path);
    return rc < 0 ? rc : 0;
}

static int choose_token(struct cn_adminconf *conf, const char *given, const char *data,
                        struct cn_err *err)
{
    if (given) {
        size_t size = strlen(given);
        if (size < TOKEN_SIZE_MIN || size > TOKEN_SIZE_MAX)
            return cn_err_set(err, CN_EINVALID, "the admin token must have %d to %d characters",
                              TOKEN_SIZE_MIN, TOKEN_SIZE_MAX);
        conf->token = cn_strdup(given);
        return 0;
    }
    if (!cn_guard_is_loopback(conf->host))
        return cn_err_set(err, CN_EDENIED,
                          "an admin listener on %s needs a token: set CAIRN_ADMIN_TOKEN",
                          conf->host);
    return load_token(data, &conf->token, err);
}

int cn_adminconf_choose(struct cn_adminconf *conf, const struct cn_adminconf_wishes *wishes,
                        struct cn_admin_options *options, struct cn_err *err)
{
    const char *data = wishes->data;
    const char *text = wishes->address ? wishes->address : wishes->config->server.admin;
    *conf = (struct cn_adminconf){.data = cn_strdup(data)};
    if (mkdir(data, 0700) < 0 && errno != EEXIST)
        return cn_err_errno(err, errno, "cannot make %s", data);
    options->socket_dir = conf->data;
    const char *health = wishes->health ? wishes->health : wishes->config->server.health;
    if (health && cn_address_parse(health, &conf->health_host, &options->health_port, err) < 0)
        return cn_err_context(err, "--health");
    options->health_host = conf->health_host;
    options->port_optional = !text;
    if (!text)
        text = wishes->development ? ADDRESS_ANY : ADDRESS_DEFAULT;
    if (strcmp(text, "off") == 0)
        return 0;
    if (strncmp(text, "https://", 8) == 0) {
        if (!wishes->tls)
            return cn_err_set(err, CN_EINVALID,
                              "--admin %s needs a certificate: --tls-cert and --tls-key", text);
        options->tls = wishes->tls;
        text += 8;
    } else if (strncmp(text, "http://", 7) == 0) {
        text += 7;
    }
    int rc = cn_address_parse(text, &conf->host, &options->port, err);
    if (rc == 0)
        rc = choose_token(conf, wishes->token, data, err);
    if (rc < 0)
        return cn_err_context(err, "--admin");
    options->host = conf->host;
    options->token = conf->token;
    return 0;
}

void cn_adminconf_fini(struct cn_adminconf *conf)
{
    cn_free(conf->host);
    cn_free(conf->health_host);
    cn_free(conf->token);
    cn_free(conf->data);
    *conf = (struct cn_adminconf){0};
}
