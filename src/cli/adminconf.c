/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/adminconf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/guard.h"
#include "base/mem.h"
#include "base/rand.h"
#include "cli/address.h"
#include "cli/args.h"
#include "cli/config.h"

#define ADDRESS_DEFAULT "127.0.0.1:8788"
#define TOKEN_SIZE_MIN 16
#define TOKEN_SIZE_MAX 512

/* DATA/admin.token, made at the first start; only the server's user can read it. */
static int load_token(const char *data, char **token, struct cn_err *err)
{
    char *path = cn_sprintf("%s/admin.token", data);
    char text[TOKEN_SIZE_MAX + 2] = "";
    int rc = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        uint8_t random[24];
        cn_rand_secure(random, sizeof(random));
        for (size_t i = 0; i < sizeof(random); i++)
            snprintf(text + 2 * i, 3, "%02x", random[i]);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        size_t size = strlen(text);
        text[size] = '\n';
        if (fd < 0 || write(fd, text, size + 1) != (ssize_t)size + 1)
            rc = cn_err_errno(err, errno, "cannot write %s", path);
    } else if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0) {
        rc = cn_err_errno(err, errno, "cannot read %s", path);
    }
    if (fd >= 0)
        close(fd);
    text[strcspn(text, "\r\n")] = 0;
    if (rc == 0 && strlen(text) < TOKEN_SIZE_MIN)
        rc = cn_err_set(err, CN_EINVALID, "%s holds no token of %d characters or more", path,
                        TOKEN_SIZE_MIN);
    if (rc == 0)
        *token = cn_strdup(text);
    cn_free(path);
    return rc;
}

static int choose_token(struct cn_adminconf *conf, const struct cn_args *args, const char *data,
                        struct cn_err *err)
{
    if (args->admin_token) {
        size_t size = strlen(args->admin_token);
        if (size < TOKEN_SIZE_MIN || size > TOKEN_SIZE_MAX)
            return cn_err_set(err, CN_EINVALID, "the admin token must have %d to %d characters",
                              TOKEN_SIZE_MIN, TOKEN_SIZE_MAX);
        conf->token = cn_strdup(args->admin_token);
        return 0;
    }
    if (!cn_guard_is_loopback(conf->host))
        return cn_err_set(err, CN_EDENIED,
                          "an admin listener on %s needs a token: set CAIRN_ADMIN_TOKEN",
                          conf->host);
    return load_token(data, &conf->token, err);
}

int cn_adminconf_choose(struct cn_adminconf *conf, const struct cn_args *args,
                        const struct cn_config *config, bool development, const char *data,
                        struct cn_tls_context *tls, struct cn_admin_options *options,
                        struct cn_err *err)
{
    const char *text = args->admin ? args->admin : config->server.admin;
    *conf = (struct cn_adminconf){.data = cn_strdup(data)};
    if (mkdir(data, 0700) < 0 && errno != EEXIST)
        return cn_err_errno(err, errno, "cannot make %s", data);
    options->socket_dir = conf->data;
    options->port_optional = !text;
    if (!text)
        text = development ? "off" : ADDRESS_DEFAULT;
    if (strcmp(text, "off") == 0)
        return 0;
    if (strncmp(text, "https://", 8) == 0) {
        if (!tls)
            return cn_err_set(err, CN_EINVALID,
                              "--admin %s needs a certificate: --tls-cert and --tls-key", text);
        options->tls = tls;
        text += 8;
    } else if (strncmp(text, "http://", 7) == 0) {
        text += 7;
    }
    int rc = cn_address_parse(text, &conf->host, &options->port, err);
    if (rc == 0)
        rc = choose_token(conf, args, data, err);
    if (rc < 0)
        return cn_err_context(err, "--admin");
    options->host = conf->host;
    options->token = conf->token;
    return 0;
}

void cn_adminconf_fini(struct cn_adminconf *conf)
{
    cn_free(conf->host);
    cn_free(conf->token);
    cn_free(conf->data);
    *conf = (struct cn_adminconf){0};
}
