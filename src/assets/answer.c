/* SPDX-License-Identifier: Apache-2.0 */
/* assets/answer.c - from a request to the file that answers it.
 *
 * Every HTML file has one address, its canonical one, which depends on html_handling:
 *
 *     file              auto      force     drop
 *     /index.html       /         /         /
 *     /a/index.html     /a/       /a/       /a
 *     /a.html           /a        /a/       /a
 *
 * All spellings of an address have the same stem (/a, /a/, /a.html, /a/index, /a/index.html: "/a"),
 * and a stem has two candidates, "/a/index.html" and "/a.html". A request for the canonical address
 * of a candidate gets the file; any other spelling gets a redirect to it, unless that would lead
 * to another file. A file that is there under the very path asked for comes first, but for HTML.
 *
 * A4  A file goes out only for the one spelling of its address that percent-encoding and slashes
 *     allow; others are redirected. Rules that look at the path as it was sent (run_worker_first)
 *     therefore cannot be passed by spelling it differently. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "assets/assets_private.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "text/percent.h"

#define CACHE_CONTROL "public, max-age=0, must-revalidate"

/* ---- paths -------------------------------------------------------------------------- */

/* The path with its escapes resolved and runs of slashes made one. */
static void decode_path(const char *path, size_t size, struct cn_buf *out)
{
    cn_buf_reserve(out, size);
    char *text = (char *)out->data;
    size_t decoded = (size_t)cn_percent_decode(path, size, 0, text);
    for (size_t i = 0; i < decoded; i++) { /* in place */
        if (text[i] != '/' || !out->size || text[out->size - 1] != '/')
            text[out->size++] = text[i];
    }
    cn_buf_text(out);
}

/* The one way to write a path in a URL. */
static void encode_path(const char *path, size_t size, struct cn_buf *out)
{
    cn_percent_encode(out, path, size, "/-_.!~*'()");
    cn_buf_text(out);
}

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t end_size = strlen(end);
    return size >= end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

/* The stem's size: what all spellings of an address have in common. */
static size_t stem_size(const char *path, size_t size)
{
    static const char *const ends[] = {"/index.html", "/index", "/", ".html"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(ends); i++) {
        if (ends_with(path, size, ends[i]))
            return size - strlen(ends[i]);
    }
    return size;
}

/* ---- the base path ------------------------------------------------------------------ */

char *cn_asset_base(const char *path)
{
    if (*path != '/' && strcspn(path, ":") < strcspn(path, "/"))
        return NULL; /* an address */
    if (!*path || (path[0] == '/' && path[1] == '/') || strpbrk(path, "\\?#%\177"))
        return NULL;
    struct cn_buf base = {0};
    cn_buf_reserve(&base, strlen(path) + 2);
    for (const char *at = path; *at;) {
        size_t size = strcspn(at, "/");
        for (size_t i = 0; i < size; i++) {
            if ((unsigned char)at[i] < ' ') {
                cn_buf_fini(&base);
                return NULL;
            }
        }
        if (size == 2 && memcmp(at, "..", 2) == 0) {
            while (base.size && base.data[--base.size] != '/')
                ;
        } else if (size && !(size == 1 && *at == '.')) {
            cn_buf_append_byte(&base, '/');
            cn_buf_append(&base, at, size);
        }
        at += size + (at[size] == '/');
    }
    cn_buf_text(&base);
    return (char *)cn_buf_take(&base);
}

static bool is_below_base(const struct cn_assets *assets, const struct cn_buf *path)
{
    size_t size = strlen(assets->base);
    return !size || (path->size >= size && memcmp(path->data, assets->base, size) == 0 &&
                     (path->size == size || path->data[size] == '/'));
}

/* Takes the base from a decoded path: "/docs/a" becomes "/a", "/docs" and "/docs/" become "/".
 * False: the path is not below it. */
static bool strip_base(const struct cn_assets *assets, struct cn_buf *path)
{
    size_t size = strlen(assets->base);
    if (!is_below_base(assets, path))
        return false;
    if (!size)
        return true;
    memmove(path->data, path->data + size, path->size - size);
    path->size -= size;
    if (!path->size)
        cn_buf_append_byte(path, '/');
    cn_buf_text(path);
    return true;
}

/* ---- which file --------------------------------------------------------------------- */

struct found {
    const struct cn_asset *asset; /* NULL: nothing */
    char *redirect;               /* owned: the address to go to instead */
};

static const struct cn_asset *candidate(const struct cn_assets *assets, const char *path,
                                        size_t stem, bool index)
{
    struct cn_buf name = {0};
    if (!index && (!stem || ends_with(path, stem, "/index")))
        return NULL; /* "/a/index.html" is the index of "/a" only */
    cn_buf_append(&name, path, stem);
    cn_buf_append_str(&name, index ? "/index.html" : ".html");
    const struct cn_asset *asset = cn_assets_find(assets, (char *)name.data, name.size);
    cn_buf_fini(&name);
    return asset;
}

/* The canonical address of a candidate. Owned. */
static char *canonical(const struct cn_assets *assets, const char *path, size_t stem, bool index)
{
    enum cn_asset_html html = assets->options.html;
    bool slash = !stem || html == CN_ASSET_HTML_FORCE || (html == CN_ASSET_HTML_AUTO && index);
    char *address = cn_alloc(stem + 2);
    memcpy(address, path, stem);
    memcpy(address + stem, slash ? "/" : "", slash ? 2 : 1);
    return address;
}

/* The file whose address is exactly `path`. */
static const struct cn_asset *find_at(const struct cn_assets *assets, const char *path, size_t size)
{
    const struct cn_asset *exact = cn_assets_find(assets, path, size);
    enum cn_asset_html html = assets->options.html;
    if (html == CN_ASSET_HTML_NONE || (exact && !ends_with(path, size, ".html")))
        return exact;
    if (ends_with(path, size, ".html"))
        return NULL;
    size_t stem = size && path[size - 1] == '/' ? size - 1 : size;
    for (int i = 0; i < 2; i++) {
        bool index = (i == 0) == (html != CN_ASSET_HTML_DROP);
        const struct cn_asset *asset = candidate(assets, path, stem, index);
        if (!asset)
            continue;
        char *address = canonical(assets, path, stem, index);
        bool here = strlen(address) == size && memcmp(address, path, size) == 0;
        cn_free(address);
        if (here)
            return asset;
    }
    return NULL;
}

static struct found find(const struct cn_assets *assets, const char *path, size_t size)
{
    const struct cn_asset *here = find_at(assets, path, size);
    if (here || assets->options.html == CN_ASSET_HTML_NONE)
        return (struct found){here, NULL};
    const struct cn_asset *exact = cn_assets_find(assets, path, size); /* HTML by its own name */
    size_t stem = stem_size(path, size);
    bool index_first = ends_with(path, size, "/index") || ends_with(path, size, "/index.html");
    for (int i = 0; i < 2; i++) {
        bool index = (i == 0) == index_first;
        const struct cn_asset *asset = candidate(assets, path, stem, index);
        if (!asset || (exact && asset != exact))
            continue;
        char *address = canonical(assets, path, stem, index);
        if (find_at(assets, address, strlen(address)) == asset)
            return (struct found){NULL, address};
        cn_free(address);
    }
    /* HTML whose canonical address is taken by another file is served where it lies. */
    return (struct found){exact, NULL};
}

/* What not_found_handling has for the path, or NULL. */
static const struct cn_asset *find_missing(const struct cn_assets *assets, const char *path,
                                           size_t size, int *status)
{
    if (assets->options.missing == CN_ASSET_MISSING_SPA) {
        *status = 200;
        return cn_assets_find(assets, "/index.html", 11);
    }
    if (assets->options.missing == CN_ASSET_MISSING_NONE)
        return NULL;
    *status = 404;
    struct cn_buf name = {0};
    const struct cn_asset *page = NULL;
    while (size && !page) {
        while (size && path[size - 1] != '/')
            size--;
        if (!size)
            break;
        cn_buf_clear(&name);
        cn_buf_append(&name, path, size--);
        cn_buf_append_str(&name, "404.html");
        page = cn_assets_find(assets, (char *)name.data, name.size);
    }
    cn_buf_fini(&name);
    return page;
}

/* ---- the answer --------------------------------------------------------------------- */

void cn_asset_answer_fini(struct cn_asset_answer *answer)
{
    for (size_t i = 0; i < answer->text_count; i++)
        cn_free(answer->texts[i]);
    cn_free(answer->texts);
    cn_free(answer->headers);
    *answer = (struct cn_asset_answer){0};
}

static const char *keep(struct cn_asset_answer *answer, char *text)
{
    answer->texts = cn_realloc(answer->texts, (answer->text_count + 1) * sizeof(*answer->texts));
    answer->texts[answer->text_count++] = text;
    return text;
}

/* Texts that outlive the answer; keep() others. */
static void add(struct cn_asset_answer *answer, const char *name, const char *value)
{
    answer->headers =
        cn_realloc(answer->headers, (answer->header_count + 1) * sizeof(*answer->headers));
    answer->headers[answer->header_count++] =
        (struct cn_http_header){name, value, (uint32_t)strlen(name), (uint32_t)strlen(value)};
}

static struct cn_http_header *find_header(struct cn_asset_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++) {
        if (strcmp(answer->headers[i].name, name) == 0)
            return &answer->headers[i];
    }
    return NULL;
}

/* _headers: the first rule that names a field replaces it, later ones add to it. */
static void apply_rules(const struct cn_assets *assets, const struct cn_asset_request *request,
                        const char *path, size_t path_size, struct cn_asset_answer *answer)
{
    const struct cn_asset_rules *rules = &assets->rules;
    size_t named_from = answer->header_count; /* fields before this are the asset's own */
    for (size_t i = 0; i < rules->header_count; i++) {
        const struct cn_asset_header_rule *rule = &rules->headers[i];
        struct cn_asset_captures captures;
        if (!cn_asset_pattern_match(&rule->pattern, request->host.data, request->host.size, path,
                                    path_size, &captures))
            continue;
        for (size_t k = 0; k < rule->field_count; k++) {
            const struct cn_asset_field *field = &rule->fields[k];
            struct cn_http_header *there = find_header(answer, field->name);
            if (!field->value) {
                if (there) {
                    size_t index = (size_t)(there - answer->headers);
                    named_from -= index < named_from;
                    memmove(there, there + 1,
                            (--answer->header_count - index) * sizeof(*answer->headers));
                }
                continue;
            }
            struct cn_buf value = {0};
            bool own = there && (size_t)(there - answer->headers) < named_from;
            if (there && !own) {
                cn_buf_append(&value, there->value, there->value_size);
                cn_buf_append_str(&value, ", ");
            }
            cn_asset_fill(field->value, &captures, &value);
            cn_buf_text(&value);
            if (!cn_http_value_valid((char *)value.data, value.size)) {
                cn_buf_fini(&value); /* a placeholder stood for what no field may hold */
                continue;
            }
            const char *text = keep(answer, (char *)cn_buf_take(&value));
            if (there) {
                size_t index = (size_t)(there - answer->headers);
                named_from -= own;
                memmove(there, there + 1,
                        (--answer->header_count - index) * sizeof(*answer->headers));
            }
            add(answer, field->name, text);
        }
    }
}

/* A single "bytes=" range of a body; false if there is none to be honoured. *status is 416 if it
 * lies outside. */
static bool parse_range(struct cn_http_text value, uint64_t size, uint64_t *offset,
                        uint64_t *length, int *status)
{
    char text[64], *end;
    if (value.size < 7 || value.size >= sizeof(text) || memcmp(value.data, "bytes=", 6) != 0)
        return false;
    memcpy(text, value.data + 6, value.size - 6);
    text[value.size - 6] = 0;
    char *dash = strchr(text, '-');
    if (!dash || (dash > text && !isdigit((unsigned char)*text)))
        return false;
    uint64_t first = strtoull(text, &end, 10), last = size - 1;
    if (dash > text && end != dash)
        return false;
    if (dash[1]) {
        if (!isdigit((unsigned char)dash[1]))
            return false;
        last = strtoull(dash + 1, &end, 10);
        if (*end)
            return false;
    } else if (dash == text) {
        return false;
    }
    if (dash == text) { /* the last so many */
        if (!last)
            return *status = 416, true;
        first = last < size ? size - last : 0;
        last = size - 1;
    }
    if (dash != text && dash[1] && last < first)
        return false;
    if (!size || first >= size)
        return *status = 416, true;
    *offset = first;
    *length = (last < size ? last : size - 1) - first + 1;
    *status = 206;
    return true;
}

static bool etag_matches(struct cn_http_text list, const char *etag)
{
    size_t etag_size = strlen(etag);
    const char *at = list.data, *end = list.data + list.size;
    while (at < end) {
        while (at < end && (*at == ' ' || *at == '\t' || *at == ','))
            at++; /* no further: what comes behind the value is not the value's */
        if (end - at >= 2 && at[0] == 'W' && at[1] == '/')
            at += 2;
        if (end - at >= 1 && *at == '*')
            return true;
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        while (stop > at && (stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        if ((size_t)(stop - at) == etag_size && memcmp(at, etag, etag_size) == 0)
            return true;
        at = comma ? comma + 1 : end;
    }
    return false;
}

static void answer_file(const struct cn_asset_request *request, const struct cn_asset *asset,
                        int status, struct cn_asset_answer *answer)
{
    struct cn_http_text range = request->header(request->data, "range");
    struct cn_http_text none_match = request->header(request->data, "if-none-match");
    struct cn_http_text if_range = request->header(request->data, "if-range");
    answer->status = status;
    if (asset->type)
        add(answer, "content-type", asset->type);
    if (!range.data && !request->header(request->data, "authorization").data)
        add(answer, "cache-control", CACHE_CONTROL);
    add(answer, "etag", asset->etag);
    if (status == 200 && none_match.data && etag_matches(none_match, asset->etag)) {
        answer->status = 304;
        return;
    }
    answer->asset = asset;
    answer->size = asset->size;
    if (status != 200)
        return;
    add(answer, "accept-ranges", "bytes");
    bool applies = !if_range.data || (if_range.size == strlen(asset->etag) &&
                                      memcmp(if_range.data, asset->etag, if_range.size) == 0);
    if (!range.data || !applies ||
        !parse_range(range, asset->size, &answer->offset, &answer->size, &answer->status))
        return;
    if (answer->status == 416) {
        answer->asset = NULL;
        answer->size = 0;
        add(answer, "content-range",
            keep(answer, cn_sprintf("bytes */%llu", (unsigned long long)asset->size)));
    } else {
        add(answer, "content-range",
            keep(answer, cn_sprintf("bytes %llu-%llu/%llu", (unsigned long long)answer->offset,
                                    (unsigned long long)(answer->offset + answer->size - 1),
                                    (unsigned long long)asset->size)));
    }
}

/* A redirect of the file _redirects; its query is that of the target, or else the request's. */
static void answer_redirect(const struct cn_asset_redirect *redirect,
                            const struct cn_asset_captures *captures, struct cn_http_text query,
                            struct cn_asset_answer *answer)
{
    struct cn_buf filled = {0}, location = {0};
    cn_asset_fill(redirect->to, captures, &filled);
    char *text = cn_buf_text(&filled);
    size_t before_hash = strcspn(text, "#");
    cn_buf_append(&location, text, before_hash);
    if (!memchr(text, '?', before_hash))
        cn_buf_append(&location, query.data, query.size);
    cn_buf_append_str(&location, text + before_hash);
    cn_buf_text(&location);
    cn_buf_fini(&filled);
    answer->status = redirect->status;
    if (cn_http_value_valid((char *)location.data, location.size))
        add(answer, "location", keep(answer, (char *)cn_buf_take(&location)));
    else
        answer->status = 400;
    cn_buf_fini(&location);
}

bool cn_assets_prefer_worker(const struct cn_assets *assets, const char *path, size_t path_size)
{
    bool first = assets->options.worker_first;
    for (size_t i = 0; i < assets->options.first_count; i++) {
        const char *rule = assets->first[i];
        if (*rule == '!' && cn_asset_glob(rule + 1, path, path_size))
            return false;
        if (*rule != '!' && cn_asset_glob(rule, path, path_size))
            first = true;
    }
    return first && assets->options.has_worker;
}

/* Whether the script would be asked for a path that no file has. */
static bool leaves_missing_to_worker(const struct cn_assets *assets,
                                     const struct cn_asset_request *request)
{
    if (request->from_worker || !assets->options.has_worker || assets->options.first_count)
        return false;
    struct cn_http_text mode = request->header(request->data, "sec-fetch-mode");
    return !(assets->options.navigation && mode.size == 8 && !memcmp(mode.data, "navigate", 8));
}

static bool is_read(struct cn_http_text method)
{
    return (method.size == 3 && !memcmp(method.data, "GET", 3)) ||
           (method.size == 4 && !memcmp(method.data, "HEAD", 4));
}

/* The file for a decoded path; `encoded` is the path as it was sent. */
static bool answer_path(const struct cn_assets *assets, const struct cn_asset_request *request,
                        struct cn_buf *decoded, struct cn_http_text encoded,
                        struct cn_http_text query, bool proxied, struct cn_asset_answer *answer)
{
    int status = 200;
    size_t base_size = strlen(assets->base);
    bool bare = base_size && decoded->size == base_size; /* "/docs", not "/docs/" */
    if (!strip_base(assets, decoded)) {
        answer->status = 404;
        return proxied;
    }
    const char *path = cn_buf_text(decoded);
    struct found found = find(assets, path, decoded->size);
    enum cn_asset_html html = assets->options.html;
    if (base_size && decoded->size == 1 && found.asset && !proxied && html != CN_ASSET_HTML_NONE &&
        bare != (html == CN_ASSET_HTML_DROP))
        found = (struct found){NULL, cn_strdup(bare ? "/" : "")}; /* its other spelling */
    bool present = found.asset || found.redirect;
    if (!present && !leaves_missing_to_worker(assets, request))
        found.asset = find_missing(assets, path, decoded->size, &status);
    if (!found.asset && !found.redirect) {
        answer->status = 404;
        return proxied;
    }
    if (!is_read(request->method)) {
        cn_free(found.redirect);
        answer->status = 405;
        add(answer, "allow", "GET, HEAD");
        return true;
    }
    struct cn_buf address = {0};
    encode_path(assets->base, base_size, &address);
    if (found.redirect)
        encode_path(found.redirect, strlen(found.redirect), &address);
    else if (present && !bare)
        encode_path(path, decoded->size, &address);
    cn_free(found.redirect);
    bool moves = !proxied && present &&
                 (address.size != encoded.size || memcmp(address.data, encoded.data, encoded.size));
    if (moves) { /* A4 */
        cn_buf_append(&address, query.data, query.size);
        cn_buf_text(&address);
        answer->status = 307;
        add(answer, "location", keep(answer, (char *)cn_buf_take(&address)));
    } else {
        cn_buf_fini(&address);
        if (!found.asset) { /* a proxied path that would be redirected */
            answer->status = 404;
            return true;
        }
        answer_file(request, found.asset, status, answer);
    }
    return true;
}

bool cn_assets_answer(const struct cn_assets *assets, const struct cn_asset_request *request,
                      struct cn_asset_answer *answer)
{
    *answer = (struct cn_asset_answer){0};
    const char *mark = memchr(request->target.data, '?', request->target.size);
    struct cn_http_text path = {request->target.data, mark ? (size_t)(mark - request->target.data)
                                                           : request->target.size};
    struct cn_http_text query = {path.data + path.size, request->target.size - path.size};
    struct cn_asset_captures captures;
    struct cn_buf decoded = {0};
    bool answered = true;
    decode_path(path.data, path.size, &decoded);
    if (!is_below_base(assets, &decoded)) {
        cn_buf_fini(&decoded);
        answer->status = 404;
        return false;
    }
    const struct cn_asset_redirect *redirect = cn_asset_redirect_find(
        &assets->rules, request->host.data, request->host.size, path.data, path.size, &captures);
    if (redirect && redirect->status != 200) {
        answer_redirect(redirect, &captures, query, answer);
    } else {
        struct cn_buf target = {0};
        if (redirect) {
            cn_asset_fill(redirect->to, &captures, &target);
            cn_buf_clear(&decoded);
            decode_path((char *)target.data, strcspn(cn_buf_text(&target), "?#"), &decoded);
        }
        answered = answer_path(assets, request, &decoded, path, query, redirect != NULL, answer);
        cn_buf_fini(&target);
    }
    if (answered)
        apply_rules(assets, request, path.data, path.size, answer);
    cn_buf_fini(&decoded);
    return answered;
}
