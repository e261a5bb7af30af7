/* SPDX-License-Identifier: Apache-2.0 */
#include "assets/rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "net/http.h"

void cn_asset_rules_init(struct cn_asset_rules *rules)
{
    *rules = (struct cn_asset_rules){0};
    cn_map_init(&rules->static_redirects);
}

static void pattern_fini(struct cn_asset_pattern *pattern)
{
    cn_free(pattern->host);
    cn_free(pattern->path);
}

void cn_asset_rules_fini(struct cn_asset_rules *rules)
{
    for (size_t i = 0; i < rules->header_count; i++) {
        struct cn_asset_header_rule *rule = &rules->headers[i];
        pattern_fini(&rule->pattern);
        for (size_t k = 0; k < rule->field_count; k++) {
            cn_free(rule->fields[k].name);
            cn_free(rule->fields[k].value);
        }
        cn_free(rule->fields);
    }
    for (size_t i = 0; i < rules->redirect_count; i++) {
        pattern_fini(&rules->redirects[i].from);
        cn_free(rules->redirects[i].to);
    }
    for (size_t i = 0; i < rules->ignore_count; i++)
        cn_free(rules->ignores[i].pattern);
    cn_free(rules->headers);
    cn_free(rules->redirects);
    cn_free(rules->ignores);
    cn_map_fini(&rules->static_redirects);
}

/* ---- patterns ----------------------------------------------------------------------- */

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The size of ":name" at `text`, or 0. A name begins with a letter, so that ":8080" is none. */
static size_t placeholder_size(const char *text)
{
    if (text[0] != ':' || !isalpha((unsigned char)text[1]))
        return 0;
    size_t size = 2;
    while (is_name(text[size]))
        size++;
    return size;
}

static unsigned wildcard_count(const char *text, unsigned *splats)
{
    unsigned count = 0;
    *splats = 0;
    for (; *text; text++) {
        if (*text == '*')
            ++*splats, count++;
        else if (placeholder_size(text))
            count++;
    }
    return count;
}

/* A placeholder and the text behind it, up to the next one. */
struct piece {
    bool splat;
    const char *name, *literal; /* in the pattern */
    size_t name_size, literal_size;
};

static size_t literal_size(const char *pattern)
{
    size_t size = 0;
    while (pattern[size] && pattern[size] != '*' && !placeholder_size(pattern + size))
        size++;
    return size;
}

static size_t split_pieces(const char *pattern, struct piece pieces[CN_ASSET_CAPTURES_MAX])
{
    size_t count = 0;
    while (*pattern) {
        CN_ASSERT(count < CN_ASSET_CAPTURES_MAX);
        struct piece *piece = &pieces[count++];
        piece->splat = *pattern == '*';
        size_t size = piece->splat ? 1 : placeholder_size(pattern);
        piece->name = piece->splat ? "splat" : pattern + 1;
        piece->name_size = piece->splat ? 5 : size - 1;
        piece->literal = pattern + size;
        piece->literal_size = literal_size(piece->literal);
        pattern = piece->literal + piece->literal_size;
    }
    return count;
}

static bool has_bit(const uint64_t *set, size_t bit)
{
    return set[bit / 64] >> (bit % 64) & 1;
}

/* Sets `fits` to the places where the text behind `piece` may begin, so that `next` stands for
 * something from its end up to one of `next_fits`. */
static void find_places(const struct piece *piece, const struct piece *next,
                        const uint64_t *next_fits, const char *text, size_t size, char stop,
                        uint64_t *fits)
{
    size_t nearest = SIZE_MAX, stopped = SIZE_MAX; /* the first that fits and the first `stop` */
    size_t least = next->splat ? 0 : 1;
    for (size_t from = size + 1; from-- > piece->literal_size;) {
        if (from + least <= size && has_bit(next_fits, from + least))
            nearest = from + least;
        if (from < size && text[from] == stop && !next->splat)
            stopped = from;
        size_t at = from - piece->literal_size;
        if (nearest <= size && nearest <= stopped &&
            memcmp(text + at, piece->literal, piece->literal_size) == 0)
            fits[at / 64] |= 1ull << (at % 64);
    }
}

/* `stop` ends what a placeholder may stand for: '/' in paths, '.' in hosts. Each stands for as
 * much as it can, the first before the others.
 *
 * P1  Time grows with the text times the pattern: for each piece the places where what follows
 *     fits are found once, from the last to the first, and no way is tried twice. */
static bool match(const char *pattern, const char *text, const char *end, char stop,
                  struct cn_asset_captures *captures)
{
    size_t head = literal_size(pattern), size = (size_t)(end - text);
    if (size < head || memcmp(text, pattern, head) != 0)
        return false;
    struct piece pieces[CN_ASSET_CAPTURES_MAX];
    size_t count = split_pieces(pattern + head, pieces);
    if (count == 0)
        return size == head;
    const struct piece *last = &pieces[count - 1];
    if (size - head < last->literal_size ||
        memcmp(end - last->literal_size, last->literal, last->literal_size) != 0)
        return false;
    size_t words = size / 64 + 1;
    uint64_t *fits = cn_alloc_zero(count * words * sizeof(*fits));
    size_t tail = size - last->literal_size;
    fits[(count - 1) * words + tail / 64] |= 1ull << (tail % 64);
    for (size_t i = count - 1; i-- > 0;)
        find_places(&pieces[i], &pieces[i + 1], fits + (i + 1) * words, text, size, stop,
                    fits + i * words);
    size_t at = head, index = 0;
    for (; index < count; index++) {
        const struct piece *piece = &pieces[index];
        size_t limit = at, least = at + (piece->splat ? 0 : 1);
        while (limit < size && (piece->splat || text[limit] != stop))
            limit++;
        while (limit >= least && !has_bit(fits + index * words, limit))
            limit--;
        if (limit < least)
            break;
        captures->items[captures->count++] =
            (struct cn_asset_capture){piece->name, piece->name_size, text + at, limit - at};
        at = limit + piece->literal_size;
    }
    cn_free(fits);
    return index == count;
}

bool cn_asset_pattern_match(const struct cn_asset_pattern *pattern, const char *host,
                            size_t host_size, const char *path, size_t path_size,
                            struct cn_asset_captures *captures)
{
    captures->count = 0;
    if (pattern->host && !match(pattern->host, host, host + host_size, '.', captures))
        return false;
    return match(pattern->path, path, path + path_size, '/', captures);
}

void cn_asset_fill(const char *text, const struct cn_asset_captures *captures, struct cn_buf *out)
{
    while (*text) {
        size_t size = placeholder_size(text);
        const struct cn_asset_capture *found = NULL;
        for (size_t i = 0; size && i < captures->count && !found; i++) {
            const struct cn_asset_capture *each = &captures->items[i];
            if (each->name_size == size - 1 && memcmp(each->name, text + 1, size - 1) == 0)
                found = each;
        }
        if (found) {
            cn_buf_append(out, found->value, found->value_size);
            text += size;
        } else {
            cn_buf_append_byte(out, (uint8_t)*text++);
        }
    }
}

bool cn_asset_glob(const char *pattern, const char *text, size_t text_size)
{
    const char *end = text + text_size, *star = strchr(pattern, '*');
    size_t size = star ? (size_t)(star - pattern) : strlen(pattern);
    if (text_size < size || memcmp(text, pattern, size) != 0)
        return false;
    text += size;
    if (!star)
        return text == end;
    /* P1: what stands between two stars is taken where it comes first, and never again. */
    for (;;) {
        pattern = star + 1;
        star = strchr(pattern, '*');
        size = star ? (size_t)(star - pattern) : strlen(pattern);
        if ((size_t)(end - text) < size)
            return false;
        if (!star)
            return memcmp(end - size, pattern, size) == 0;
        text = memmem(text, (size_t)(end - text), pattern, size);
        if (!text)
            return false;
        text += size;
    }
}

/* ---- lines -------------------------------------------------------------------------- */

struct lines {
    const char *at, *end;
    unsigned number;
    char text[CN_ASSET_LINE_SIZE_MAX + 1]; /* the current one, without blanks at either end */
    bool too_long;
    bool indented;
};

static bool next_line(struct lines *lines)
{
    if (lines->at >= lines->end)
        return false;
    const char *start = lines->at;
    const char *newline = memchr(start, '\n', (size_t)(lines->end - start));
    const char *stop = newline ? newline : lines->end;
    lines->at = newline ? newline + 1 : lines->end;
    lines->number++;
    lines->indented = start < stop && isspace((unsigned char)*start);
    while (start < stop && isspace((unsigned char)*start))
        start++;
    while (stop > start && isspace((unsigned char)stop[-1]))
        stop--;
    size_t size = (size_t)(stop - start);
    lines->too_long = size > CN_ASSET_LINE_SIZE_MAX || memchr(start, 0, size) != NULL;
    if (lines->too_long)
        size = 0;
    memcpy(lines->text, start, size);
    lines->text[size] = 0;
    return true;
}

/* NULL, or why `text` is no pattern. */
static const char *parse_pattern(const char *text, struct cn_asset_pattern *pattern)
{
    const char *path = text, *host = NULL;
    if (strncasecmp(text, "https://", 8) == 0) {
        host = text + 8;
        path = strchr(host, '/');
        if (!path)
            path = "/";
    } else if (strncasecmp(text, "http://", 7) == 0) {
        return "a URL must begin with https://";
    } else if (*text != '/') {
        return "the path must begin with \"/\"";
    }
    unsigned splats, host_splats = 0;
    unsigned count = wildcard_count(path, &splats);
    size_t host_size = host ? strcspn(host, "/") : 0;
    char *host_text = host ? cn_strndup(host, host_size) : NULL;
    if (host_text) {
        for (char *c = host_text; *c; c++)
            *c = (char)tolower((unsigned char)*c);
        count += wildcard_count(host_text, &host_splats);
    }
    if (splats + host_splats > 1 || count > CN_ASSET_CAPTURES_MAX || (host && !host_size)) {
        cn_free(host_text);
        return host && !host_size         ? "the URL has no host"
               : splats + host_splats > 1 ? "only one \"*\" is allowed"
                                          : "more than 8 placeholders";
    }
    *pattern = (struct cn_asset_pattern){host_text, cn_strdup(path)};
    return NULL;
}

/* ---- _headers ----------------------------------------------------------------------- */

/* NULL, or why the line is no field. */
static const char *parse_field(struct cn_asset_header_rule *rule, char *text)
{
    bool removal = *text == '!';
    char *name = removal ? text + 1 + strspn(text + 1, " \t") : text;
    char *colon = strchr(name, ':');
    if (!removal && !colon)
        return "a line \"Name: value\" was expected";
    if (removal && colon)
        return "\"! Name\" takes a field away and has no value";
    char *value = NULL;
    if (colon) {
        *colon = 0;
        value = colon + 1 + strspn(colon + 1, " \t");
        if (!*value)
            return "the value is missing";
    }
    size_t size = strlen(name);
    while (size && isspace((unsigned char)name[size - 1]))
        name[--size] = 0;
    if (!cn_http_token_valid(name, size))
        return "this is no name of a header field";
    if (value && !cn_http_value_valid(value, strlen(value)))
        return "this is no value of a header field";
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    rule->fields = cn_realloc(rule->fields, (rule->field_count + 1) * sizeof(*rule->fields));
    rule->fields[rule->field_count++] =
        (struct cn_asset_field){cn_strdup(name), value ? cn_strdup(value) : NULL};
    return NULL;
}

void cn_asset_parse_headers(struct cn_asset_rules *rules, const char *text, size_t size,
                            cn_asset_warn warn, void *data)
{
    struct lines lines = {.at = text, .end = text + size};
    struct cn_asset_header_rule *rule = NULL;
    while (next_line(&lines)) {
        const char *why = NULL;
        char *line = lines.text;
        bool pattern = *line == '/' || strncasecmp(line, "http", 4) == 0;
        if (lines.too_long) {
            why = "the line is longer than 2000 characters";
        } else if (!*line || *line == '#') {
            continue;
        } else if (pattern && !(lines.indented && strchr(line, ':') && *line != '/')) {
            rule = NULL;
            struct cn_asset_pattern parsed;
            why = rules->header_count >= CN_ASSET_HEADER_RULES_MAX ? "more than 100 rules"
                                                                   : parse_pattern(line, &parsed);
            if (!why) {
                rules->headers =
                    cn_realloc(rules->headers, (rules->header_count + 1) * sizeof(*rules->headers));
                rule = &rules->headers[rules->header_count++];
                *rule = (struct cn_asset_header_rule){.pattern = parsed};
            }
        } else if (rule) {
            why = parse_field(rule, line);
        } else {
            why = "a path should come before its header fields";
        }
        if (why)
            warn(data, "_headers", lines.number, why);
    }
}

/* ---- _redirects --------------------------------------------------------------------- */

static char *static_key(const char *host, size_t host_size, const char *path, size_t path_size)
{
    char *key = cn_alloc(host_size + path_size + 1);
    memcpy(key, host, host_size);
    memcpy(key + host_size, path, path_size);
    key[host_size + path_size] = 0;
    return key;
}

static const char *parse_status(const char *text, const char *to, int *status)
{
    static const int allowed[] = {200, 301, 302, 303, 307, 308};
    char *end;
    long value = text ? strtol(text, &end, 10) : 302;
    if (text && *end)
        return "the status is not a number";
    for (size_t i = 0; i < CN_ARRAY_COUNT(allowed); i++) {
        if (allowed[i] != value)
            continue;
        if (value == 200 && *to != '/')
            return "status 200 needs a path of this site, beginning with \"/\"";
        *status = (int)value;
        return NULL;
    }
    return "the status must be 200, 301, 302, 303, 307 or 308";
}

static const char *parse_redirect(struct cn_asset_rules *rules, char *line, unsigned *dynamics)
{
    char *words[4] = {0}, *save = NULL;
    size_t count = 0;
    for (char *word = strtok_r(line, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
        if (*word == '#')
            break;
        if (count == 4)
            return "a redirect is \"from to [status]\"";
        words[count++] = word;
    }
    if (count < 2 || count > 3)
        return "a redirect is \"from to [status]\"";
    struct cn_asset_redirect redirect = {.status = 302};
    const char *to = words[1];
    if (*to != '/' && strncasecmp(to, "https://", 8) != 0 && strncasecmp(to, "http://", 7) != 0)
        return "the target must begin with \"/\", https:// or http://";
    const char *why = parse_status(count == 3 ? words[2] : NULL, to, &redirect.status);
    if (!why)
        why = parse_pattern(words[0], &redirect.from);
    if (why)
        return why;
    unsigned splats;
    redirect.dynamic = wildcard_count(redirect.from.path, &splats) ||
                       (redirect.from.host && wildcard_count(redirect.from.host, &splats));
    size_t statics = rules->redirect_count - *dynamics;
    char *key = static_key(redirect.from.host ? redirect.from.host : "",
                           redirect.from.host ? strlen(redirect.from.host) : 0, redirect.from.path,
                           strlen(redirect.from.path));
    if (redirect.dynamic ? *dynamics >= CN_ASSET_DYNAMIC_REDIRECTS_MAX
                         : statics >= CN_ASSET_STATIC_REDIRECTS_MAX)
        why = redirect.dynamic ? "more than 100 redirects with placeholders"
                               : "more than 2000 redirects without placeholders";
    else if (!redirect.dynamic && cn_map_find(&rules->static_redirects, key, strlen(key)))
        why = "there is a redirect for this path already";
    if (why) {
        pattern_fini(&redirect.from);
        cn_free(key);
        return why;
    }
    redirect.to = cn_strdup(to);
    rules->redirects =
        cn_realloc(rules->redirects, (rules->redirect_count + 1) * sizeof(*rules->redirects));
    rules->redirects[rules->redirect_count++] = redirect;
    if (redirect.dynamic)
        ++*dynamics;
    else
        cn_map_set(&rules->static_redirects, key, strlen(key),
                   (void *)(uintptr_t)rules->redirect_count);
    cn_free(key);
    return NULL;
}

void cn_asset_parse_redirects(struct cn_asset_rules *rules, const char *text, size_t size,
                              cn_asset_warn warn, void *data)
{
    struct lines lines = {.at = text, .end = text + size};
    unsigned dynamics = 0;
    while (next_line(&lines)) {
        const char *why = NULL;
        if (lines.too_long)
            why = "the line is longer than 2000 characters";
        else if (*lines.text && *lines.text != '#')
            why = parse_redirect(rules, lines.text, &dynamics);
        if (why)
            warn(data, "_redirects", lines.number, why);
    }
}

static size_t find_static(const struct cn_asset_rules *rules, const char *host, size_t host_size,
                          const char *path, size_t path_size)
{
    char *key = static_key(host, host_size, path, path_size);
    size_t found =
        (size_t)(uintptr_t)cn_map_find(&rules->static_redirects, key, host_size + path_size);
    cn_free(key);
    return found;
}

const struct cn_asset_redirect *cn_asset_redirect_find(const struct cn_asset_rules *rules,
                                                       const char *host, size_t host_size,
                                                       const char *path, size_t path_size,
                                                       struct cn_asset_captures *captures)
{
    captures->count = 0;
    if (!rules->redirect_count)
        return NULL;
    size_t limit = rules->redirect_count;
    const struct cn_asset_redirect *found = NULL;
    if (rules->static_redirects.count) {
        size_t plain = find_static(rules, "", 0, path, path_size);
        size_t whole = find_static(rules, host, host_size, path, path_size);
        size_t first = !plain || (whole && whole < plain) ? whole : plain;
        if (first) {
            limit = first - 1;
            found = &rules->redirects[limit];
        }
    }
    /* A rule with placeholders that stands before it comes first. */
    for (size_t i = 0; i < limit; i++) {
        const struct cn_asset_redirect *each = &rules->redirects[i];
        if (each->dynamic &&
            cn_asset_pattern_match(&each->from, host, host_size, path, path_size, captures))
            return each;
    }
    captures->count = 0;
    return found;
}

/* ---- .assetsignore ------------------------------------------------------------------ */

void cn_asset_parse_ignore(struct cn_asset_rules *rules, const char *text, size_t size)
{
    struct lines lines = {.at = text, .end = text + size};
    while (next_line(&lines)) {
        char *line = lines.text;
        if (!*line || *line == '#')
            continue;
        struct cn_asset_ignore ignore = {.negated = *line == '!'};
        line += ignore.negated;
        size_t length = strlen(line);
        if (length && line[length - 1] == '/') {
            ignore.folder_only = true;
            line[--length] = 0;
        }
        if (!length)
            continue;
        ignore.anchored = strchr(line, '/') != NULL;
        ignore.pattern = cn_strdup(*line == '/' ? line + 1 : line);
        rules->ignores =
            cn_realloc(rules->ignores, (rules->ignore_count + 1) * sizeof(*rules->ignores));
        rules->ignores[rules->ignore_count++] = ignore;
    }
}

/* "[a-z]", "[!a]" at `pattern`: whether `c` is among them; *size is that of the class, 0 if it does
 * not end. */
static bool match_class(const char *pattern, char c, size_t *size)
{
    size_t i = 1;
    bool negated = pattern[i] == '!' || pattern[i] == '^', found = false;
    i += negated;
    size_t first = i;
    for (; pattern[i] && (pattern[i] != ']' || i == first); i++) {
        char low = pattern[i], high = low;
        if (pattern[i + 1] == '-' && pattern[i + 2] && pattern[i + 2] != ']') {
            high = pattern[i + 2];
            i += 2;
        }
        found |= c >= low && c <= high;
    }
    *size = pattern[i] ? i + 1 : 0;
    return found != negated;
}

/* The places in a pattern of .assetsignore that what was read may have led to. */
enum { THERE = 1, REACHED = 2 }; /* behind a "**", which stands for folders, only when reached */
struct places {
    uint8_t at[CN_ASSET_LINE_SIZE_MAX + 1];
};

static bool is_double_star(const char *pattern)
{
    return pattern[0] == '*' && pattern[1] == '*';
}

/* Behind the "**" at `at`, and the '/' that belongs to it. */
static size_t behind_double_star(const char *pattern, size_t at)
{
    return at + 2 + (pattern[at + 2] == '/');
}

/* A star may stand for nothing. */
static void reach(struct places *places, const char *pattern, size_t at)
{
    while (!(places->at[at] & REACHED)) {
        places->at[at] = THERE | REACHED;
        if (pattern[at] != '*')
            return;
        at = is_double_star(pattern + at) ? behind_double_star(pattern, at) : at + 1;
    }
}

/* What follows `at` when `c` is read. */
static void step(struct places *next, const char *pattern, size_t at, char c)
{
    size_t class_size;
    if (is_double_star(pattern + at)) {
        size_t behind = behind_double_star(pattern, at);
        next->at[at] |= THERE;
        if (c == '/' || behind == at + 2)
            reach(next, pattern, behind);
    } else if (pattern[at] == '*') {
        if (c != '/')
            reach(next, pattern, at);
    } else if (pattern[at] == '?' && c != '/') {
        reach(next, pattern, at + 1);
    } else {
        if (pattern[at] == '[' && c != '/') {
            bool fits = match_class(pattern + at, c, &class_size);
            if (class_size) {
                if (fits)
                    reach(next, pattern, at + class_size);
                return;
            }
        }
        if (pattern[at] == '\\' && pattern[at + 1])
            at++;
        if (pattern[at] == c)
            reach(next, pattern, at + 1);
    }
}

/* As gitignore has it: '*' and '?' do not stand for '/', "**" does. P1 */
static bool match_ignore(const char *pattern, const char *path)
{
    size_t size = strlen(pattern);
    struct places now = {0};
    reach(&now, pattern, 0);
    for (; *path; path++) {
        struct places next = {0};
        bool any = false;
        for (size_t at = 0; at < size; at++) {
            if (now.at[at]) {
                step(&next, pattern, at, *path);
                any = true;
            }
        }
        if (!any)
            return false;
        now = next;
    }
    return now.at[size];
}

bool cn_asset_ignored(const struct cn_asset_rules *rules, const char *path, bool is_folder)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = rules->ignore_count; i-- > 0;) { /* the last that fits decides */
        const struct cn_asset_ignore *ignore = &rules->ignores[i];
        if (ignore->folder_only && !is_folder)
            continue;
        if (match_ignore(ignore->pattern, ignore->anchored ? path : name))
            return !ignore->negated;
    }
    return false;
}
