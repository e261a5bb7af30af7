/* SPDX-License-Identifier: Apache-2.0 */
/* assets/rules.h - the files `_headers`, `_redirects` and `.assetsignore` of a folder of
 * static assets, and the patterns in them.
 *
 * A pattern is a path or a whole URL; '*' (once) stands for anything and ":name" for a run
 * without '/'. What they stood for can be used in the values: ":splat" and ":name".
 *
 *     /blog/:year/post*   /archive/:year/:splat   301    _redirects
 *     https://a.example/docs*                            _headers
 *       X-Frame-Options: DENY
 *       ! Set-Cookie
 *
 * A line that cannot be understood is reported and left out, as on the platform: one mistake
 * does not take the site down.
 *
 * Threads: immutable once parsed. Ownership: the struct's. */
#ifndef CN_ASSETS_RULES_H
#define CN_ASSETS_RULES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

#define CN_ASSET_HEADER_RULES_MAX 100
#define CN_ASSET_STATIC_REDIRECTS_MAX 2000
#define CN_ASSET_DYNAMIC_REDIRECTS_MAX 100
#define CN_ASSET_LINE_SIZE_MAX 2000
#define CN_ASSET_CAPTURES_MAX 8

struct cn_buf;

struct cn_asset_pattern {
    char *host; /* owned; NULL: any */
    char *path; /* owned */
};

/* A piece of the URL that a placeholder stood for. */
struct cn_asset_capture {
    const char *name; /* borrowed from the pattern; "splat" for '*' */
    size_t name_size;
    const char *value; /* borrowed from the URL */
    size_t value_size;
};
struct cn_asset_captures {
    struct cn_asset_capture items[CN_ASSET_CAPTURES_MAX];
    size_t count;
};

struct cn_asset_field {
    char *name;  /* owned, lower-case */
    char *value; /* owned; NULL: the field is taken away */
};
struct cn_asset_header_rule {
    struct cn_asset_pattern pattern;
    struct cn_asset_field *fields;
    size_t field_count;
};

struct cn_asset_redirect {
    struct cn_asset_pattern from;
    char *to; /* owned */
    int status;
    bool dynamic; /* the pattern has placeholders */
};

struct cn_asset_rules {
    struct cn_asset_header_rule *headers;
    size_t header_count;
    struct cn_asset_redirect *redirects; /* in the order of the file */
    size_t redirect_count;
    struct cn_map static_redirects; /* path or host + path -> index + 1 */
    struct cn_asset_ignore {
        char *pattern; /* owned; without '!' and the slashes at either end */
        bool negated, anchored, folder_only;
    } * ignores;
    size_t ignore_count;
};

/* `warn` is called with a sentence for each line that is left out. */
typedef void (*cn_asset_warn)(void *data, const char *file, unsigned line, const char *why);

void cn_asset_rules_init(struct cn_asset_rules *rules);
void cn_asset_rules_fini(struct cn_asset_rules *rules);
void cn_asset_parse_headers(struct cn_asset_rules *rules, const char *text, size_t size,
                            cn_asset_warn warn, void *data);
void cn_asset_parse_redirects(struct cn_asset_rules *rules, const char *text, size_t size,
                              cn_asset_warn warn, void *data);
void cn_asset_parse_ignore(struct cn_asset_rules *rules, const char *text, size_t size);

/* Whether the pattern fits; then `captures` says what its placeholders stood for. */
bool cn_asset_pattern_match(const struct cn_asset_pattern *pattern, const char *host,
                            size_t host_size, const char *path, size_t path_size,
                            struct cn_asset_captures *captures);
/* Appends `text` with its placeholders filled in. */
void cn_asset_fill(const char *text, const struct cn_asset_captures *captures, struct cn_buf *out);
/* The first redirect that fits, or NULL. */
const struct cn_asset_redirect *cn_asset_redirect_find(const struct cn_asset_rules *rules,
                                                       const char *host, size_t host_size,
                                                       const char *path, size_t path_size,
                                                       struct cn_asset_captures *captures);
/* Whether .assetsignore keeps the file or folder `path` ("a/b") out. */
bool cn_asset_ignored(const struct cn_asset_rules *rules, const char *path, bool is_folder);

/* '*' stands for anything, '/' included; nothing else is special. */
bool cn_asset_glob(const char *pattern, const char *text, size_t text_size);

#endif
