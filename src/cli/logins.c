/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/logins.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/guard.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "config/files.h"

#define FILE_SIZE_MAX (1u << 20)

char *cn_logins_path(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    return config && *config == '/'
               ? cn_sprintf("%s/cairn/servers.json", config)
               : cn_sprintf("%s/.config/cairn/servers.json", home && *home ? home : ".");
}

/* --- addresses ------------------------------------------------------------------------------- */

static char *refuse(const char *url, const char *why, struct cn_err *err)
{
    cn_err_set(err, CN_EINVALID, "the address of a server is like https://host:8788, not %.200s%s",
               url, why);
    return NULL;
}

/* A token in the clear is for whoever listens on the way: only where there is no way. */
static bool may_be_plain(const char *host, size_t size)
{
    const char *allowed = getenv("CAIRN_PLAIN_HTTP");
    char *name = cn_strndup(host, size);
    char *colon = *name == '[' ? strchr(name, ']') : strrchr(name, ':');
    if (colon && *name != '[')
        *colon = 0;
    else if (colon)
        *colon = 0;
    bool local = cn_guard_is_loopback(*name == '[' ? name + 1 : name);
    cn_free(name);
    return local || (allowed && strcmp(allowed, "1") == 0);
}

char *cn_logins_normal(const char *url, struct cn_err *err)
{
    static const char plain[] = "http://", secure[] = "https://", api[] = "/client/v4";
    bool is_secure = strncasecmp(url, secure, sizeof(secure) - 1) == 0;
    if (!is_secure && strncasecmp(url, plain, sizeof(plain) - 1) != 0)
        return refuse(url, "", err);
    const char *host = url + (is_secure ? sizeof(secure) : sizeof(plain)) - 1;
    size_t size = strcspn(host, "/?#");
    const char *rest = host + size;
    if (strncmp(rest, api, sizeof(api) - 1) == 0)
        rest += sizeof(api) - 1;
    rest += strspn(rest, "/");
    if (size == 0 || *rest || memchr(host, '@', size) ||
        strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]") < size)
        return refuse(url, *rest ? ", without a path" : "", err);
    if (!is_secure && !may_be_plain(host, size)) {
        cn_err_set(err, CN_EDENIED,
                   "%.200s: a token is not sent over plain HTTP to another machine; use https://, "
                   "or a tunnel (ssh -L), or CAIRN_PLAIN_HTTP=1 in a network that you trust",
                   url);
        return NULL;
    }
    char *text = cn_sprintf("%s%.*s", is_secure ? secure : plain, (int)size, host);
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return text;
}

/* --- the file -------------------------------------------------------------------------------- */

/* 0 with *json NULL: there is none. */
static int load(struct cn_json **json, struct cn_err *err)
{
    char *path = cn_logins_path();
    struct cn_buf text = {0};
    struct stat info;
    int rc = 0;
    *json = NULL;
    if (stat(path, &info) < 0) {
        rc = errno == ENOENT || errno == ENOTDIR
                 ? 0
                 : cn_err_errno(err, errno, "%s: cannot be read", path);
    } else if (info.st_mode & 077) { /* N1 */
        rc = cn_err_set(err, CN_EDENIED,
                        "%s: others may read it, so its tokens are not used; chmod 600 it, and "
                        "think of revoking them",
                        path);
    } else {
        rc = cn_files_read(path, FILE_SIZE_MAX, &text, err);
        if (rc == 0) {
            *json = cn_json_parse((char *)text.data, text.size, err);
            rc = *json ? 0 : cn_err_context(err, "%s", path);
        }
    }
    cn_buf_fini(&text);
    cn_free(path);
    return rc;
}

static const struct cn_json *find_server(const struct cn_json *json, const char *url)
{
    const struct cn_json *list = cn_json_find(json, "servers");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const char *own = cn_json_text(item, "url");
        if (own && strcmp(own, url) == 0)
            return item;
    }
    return NULL;
}

char *cn_logins_token(const char *url, struct cn_err *err)
{
    struct cn_json *json;
    if (load(&json, err) < 0)
        return NULL;
    const char *token = cn_json_text(find_server(json, url), "token");
    char *copy = token ? cn_strdup(token) : NULL;
    cn_json_free(json);
    return copy;
}

/* The newest stands last. */
char *cn_logins_last(struct cn_err *err)
{
    struct cn_json *json;
    if (load(&json, err) < 0)
        return NULL;
    const struct cn_json *list = cn_json_find(json, "servers");
    const char *url = NULL;
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next)
        url = cn_json_text(item, "url") ? cn_json_text(item, "url") : url;
    char *copy = url ? cn_strdup(url) : NULL;
    cn_json_free(json);
    return copy;
}

static void put_server(struct cn_buf *text, const char *url, const char *token)
{
    cn_buf_append_str(text, text->data[text->size - 1] == '[' ? "{\"url\":" : ",\n{\"url\":");
    cn_buf_append_json(text, url, strlen(url));
    cn_buf_append_str(text, ",\"token\":");
    cn_buf_append_json(text, token, strlen(token));
    cn_buf_append_byte(text, '}');
}

/* N1, N2: cn_files_write() would make it readable first. */
static int store(const char *path, const struct cn_buf *text, struct cn_err *err)
{
    char *dir = cn_strndup(path, (size_t)(strrchr(path, '/') - path));
    char *fresh = cn_sprintf("%s.%ld", path, (long)getpid());
    int rc = cn_files_make_dirs(dir, err);
    if (rc == 0) {
        (void)unlink(fresh); /* of a process with this number that was killed */
        int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            rc = cn_err_errno(err, errno, "%s: cannot be written", fresh);
        else
            rc = cn_files_write_all(fd, fresh, text->data, text->size, err);
        if (fd >= 0)
            close(fd);
        if (rc == 0 && rename(fresh, path) < 0)
            rc = cn_err_errno(err, errno, "%s: cannot be written", path);
        if (rc < 0)
            (void)unlink(fresh);
    }
    cn_free(fresh);
    cn_free(dir);
    return rc;
}

int cn_logins_set(const char *url, const char *token, struct cn_err *err)
{
    struct cn_json *json;
    int rc = load(&json, err);
    if (rc < 0)
        return rc;
    const struct cn_json *list = cn_json_find(json, "servers");
    struct cn_buf text = {0};
    size_t count = 0;
    bool known = find_server(json, url) != NULL;
    cn_buf_append_str(&text, "{\"servers\":[");
    for (const struct cn_json *item = list ? list->first : NULL; item; item = item->next) {
        const char *own = cn_json_text(item, "url"), *kept = cn_json_text(item, "token");
        if (own && kept && strcmp(own, url) != 0 && ++count < CN_LOGINS_MAX)
            put_server(&text, own, kept);
    }
    if (token)
        put_server(&text, url, token);
    cn_buf_append_str(&text, "]}\n");
    char *path = cn_logins_path();
    rc = token || known ? store(path, &text, err)
                        : cn_err_set(err, CN_ENOTFOUND, "there is no login for %s", url);
    cn_free(path);
    cn_buf_fini(&text);
    cn_json_free(json);
    return rc;
}
