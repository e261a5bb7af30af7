/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/sourcemap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hexdigit.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/base64.h"

#define NONE UINT32_MAX
#define DEPTH_MAX 32
#define FRAME_LINES 2       /* shown before and after the place */
#define FRAME_WIDTH_MAX 160 /* bytes of a line that are shown */

/* A run of JSON text, still escaped: a string without its quotes. */
struct span {
    const char *data;
    size_t size;
};

struct segment {
    uint32_t column; /* in the generated line, from 0 */
    uint32_t source; /* NONE: generated code without a source */
    uint32_t source_line, source_column;
    uint32_t name; /* NONE: not told */
};

struct strings {
    char **items; /* owned, unescaped */
    size_t count;
};

struct cn_sourcemap {
    char *text; /* the whole file */
    size_t text_size;
    bool mapped; /* munmap rather than free */
    struct strings sources, names;
    struct span *contents; /* of sources, in the same order; data NULL: not there */
    size_t content_count;
    struct segment *segments; /* by line, then column */
    size_t segment_count;
    size_t *lines; /* index of each line's first segment, and one past the last line */
    size_t line_count;
};

/* ---- JSON, as much of it as a source map needs --------------------------------- */

struct reader {
    const char *at, *end;
    int depth;
};

static void skip_blank(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
        reader->at++;
}

/* Moves over `c` if it is next. */
static bool accept(struct reader *reader, char c)
{
    skip_blank(reader);
    if (reader->at == reader->end || *reader->at != c)
        return false;
    reader->at++;
    return true;
}

static bool read_string(struct reader *reader, struct span *out)
{
    if (!accept(reader, '"'))
        return false;
    const char *start = reader->at;
    for (; reader->at < reader->end && *reader->at != '"'; reader->at++)
        if (*reader->at == '\\' && ++reader->at == reader->end)
            return false;
    if (reader->at == reader->end)
        return false;
    *out = (struct span){start, (size_t)(reader->at - start)};
    reader->at++;
    return true;
}

static bool skip_value(struct reader *reader)
{
    struct span ignored;
    skip_blank(reader);
    if (reader->at == reader->end || reader->depth > DEPTH_MAX)
        return false;
    char open = *reader->at;
    if (open == '"')
        return read_string(reader, &ignored);
    if (open != '{' && open != '[') {
        const char *start = reader->at;
        while (reader->at < reader->end && !strchr(",]} \t\r\n", *reader->at))
            reader->at++;
        return reader->at > start;
    }
    char close = open == '{' ? '}' : ']';
    reader->at++;
    reader->depth++;
    if (!accept(reader, close)) {
        do {
            if (open == '{' && (!read_string(reader, &ignored) || !accept(reader, ':')))
                return false;
            if (!skip_value(reader))
                return false;
        } while (accept(reader, ','));
        if (!accept(reader, close))
            return false;
    }
    reader->depth--;
    return true;
}

/* Code unit of "\uXXXX" at `at`, or -1. */
static int read_unit(const char *at, const char *end)
{
    int unit = 0;
    if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = cn_hexdigit_value((unsigned char)at[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

static void append_code(struct cn_buf *out, uint32_t code)
{
    char bytes[4];
    bool lone_surrogate = code >= 0xd800 && code <= 0xdfff;
    cn_buf_append(out, bytes, cn_utf8_encode(lone_surrogate ? 0xfffd : code, bytes));
}

/* Appends one character of an escaped string; returns what follows it. */
static const char *unescape_one(const char *at, const char *end, struct cn_buf *out)
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    if (*at != '\\') {
        cn_buf_append_byte(out, (uint8_t)*at);
        return at + 1;
    }
    int unit = read_unit(at, end);
    if (unit >= 0) {
        int low = unit >= 0xd800 && unit < 0xdc00 ? read_unit(at + 6, end) : -1;
        bool pair = low >= 0xdc00 && low <= 0xdfff;
        append_code(out,
                    pair ? 0x10000u + (((uint32_t)unit - 0xd800) << 10) + ((uint32_t)low - 0xdc00)
                         : (uint32_t)unit);
        return at + (pair ? 12 : 6);
    }
    const char *known = at[1] ? strchr(names, at[1]) : NULL;
    cn_buf_append_byte(out, (uint8_t)(known ? values[known - names] : at[1]));
    return at + 2;
}

/* Owned, NUL-terminated. */
static char *unescape(struct span span)
{
    struct cn_buf out = {0};
    for (const char *at = span.data, *end = at + span.size; at < end;)
        at = unescape_one(at, end, &out);
    cn_buf_text(&out);
    return (char *)cn_buf_take(&out);
}

/* An array of strings or nulls; each goes to `each`. */
static bool read_strings(struct reader *reader, struct cn_sourcemap *map,
                         void (*each)(struct cn_sourcemap *map, struct span span))
{
    if (!accept(reader, '['))
        return false;
    if (accept(reader, ']'))
        return true;
    do {
        struct span span = {0};
        skip_blank(reader);
        bool is_string = reader->at < reader->end && *reader->at == '"';
        if (is_string ? !read_string(reader, &span) : !skip_value(reader))
            return false;
        each(map, span);
    } while (accept(reader, ','));
    return accept(reader, ']');
}

static void push_string(struct strings *strings, struct span span)
{
    CN_GROW_COUNTED(strings->items, strings->count);
    strings->items[strings->count++] = span.data ? unescape(span) : cn_strdup("");
}

static void add_source(struct cn_sourcemap *map, struct span span)
{
    push_string(&map->sources, span);
}

static void add_name(struct cn_sourcemap *map, struct span span)
{
    push_string(&map->names, span);
}

static void add_content(struct cn_sourcemap *map, struct span span)
{
    CN_GROW_COUNTED(map->contents, map->content_count);
    map->contents[map->content_count++] = span;
}

/* ---- mappings --------------------------------------------------------------------- */

/* One number in base 64 VLQ: six bits a digit, the low five of value, low ones first; the
 * lowest bit of all is the sign. False: malformed. */
static bool read_vlq(const char **at, const char *end, int64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && shift <= 30; shift += 5) {
        int digit = cn_base64_value((unsigned char)**at);
        if (digit < 0)
            return false;
        (*at)++;
        value |= (uint64_t)(digit & 31) << shift;
        if (!(digit & 32)) {
            *out = value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
            return true;
        }
    }
    return false;
}

/* Running values of the format: every number is a difference to the one before. */
struct position {
    int64_t column, source, line, source_column, name;
};

static bool in_range(int64_t value, int64_t bound)
{
    return value >= 0 && value < bound;
}

static bool read_segment(const char **at, const char *end, const struct cn_sourcemap *map,
                         struct position *position, struct segment *segment)
{
    int64_t delta[5];
    int count = 0;
    while (*at < end && **at != ',' && **at != ';') {
        if (count == 5 || !read_vlq(at, end, &delta[count]))
            return false;
        count++;
    }
    if (count != 1 && count != 4 && count != 5)
        return false;
    position->column += delta[0];
    *segment = (struct segment){.source = NONE, .name = NONE};
    if (!in_range(position->column, UINT32_MAX))
        return false;
    segment->column = (uint32_t)position->column;
    if (count == 1)
        return true;
    position->source += delta[1];
    position->line += delta[2];
    position->source_column += delta[3];
    if (!in_range(position->source, (int64_t)map->sources.count) ||
        !in_range(position->line, UINT32_MAX) || !in_range(position->source_column, UINT32_MAX))
        return false;
    segment->source = (uint32_t)position->source;
    segment->source_line = (uint32_t)position->line;
    segment->source_column = (uint32_t)position->source_column;
    if (count == 5) {
        position->name += delta[4];
        if (!in_range(position->name, (int64_t)map->names.count))
            return false;
        segment->name = (uint32_t)position->name;
    }
    return true;
}

static bool read_mappings(struct cn_sourcemap *map, struct span span)
{
    const char *at = span.data, *end = at + span.size;
    size_t segments = 0, lines = 1;
    for (const char *c = at; c < end; c++) {
        segments += *c == ',' || *c == ';';
        lines += *c == ';';
    }
    if (segments >= CN_SOURCEMAP_SEGMENT_MAX)
        return false;
    map->segments = cn_try_alloc((segments + 1) * sizeof(struct segment));
    map->lines = cn_try_alloc((lines + 1) * sizeof(size_t));
    if (!map->segments || !map->lines)
        return false;
    struct position position = {0};
    map->lines[map->line_count++] = 0;
    while (at < end) {
        if (*at == ';') {
            map->lines[map->line_count++] = map->segment_count;
            position.column = 0;
            at++;
        } else if (*at == ',') {
            at++;
        } else {
            struct segment segment;
            if (!read_segment(&at, end, map, &position, &segment))
                return false;
            size_t first = map->lines[map->line_count - 1];
            if (map->segment_count > first &&
                map->segments[map->segment_count - 1].column > segment.column)
                return false; /* searching needs them in order */
            map->segments[map->segment_count++] = segment;
        }
    }
    map->lines[map->line_count] = map->segment_count;
    return true;
}

/* ---- the whole map ------------------------------------------------------------------ */

static bool read_map(struct cn_sourcemap *map)
{
    struct reader reader = {.at = map->text, .end = map->text + map->text_size};
    struct span mappings = {0};
    if (!accept(&reader, '{'))
        return false;
    if (accept(&reader, '}'))
        return false;
    do {
        struct span key;
        if (!read_string(&reader, &key) || !accept(&reader, ':'))
            return false;
#define IS(text) (key.size == sizeof(text) - 1 && memcmp(key.data, text, sizeof(text) - 1) == 0)
        bool good;
        if (IS("sources") && map->sources.count == 0)
            good = read_strings(&reader, map, add_source);
        else if (IS("names") && map->names.count == 0)
            good = read_strings(&reader, map, add_name);
        else if (IS("sourcesContent") && map->content_count == 0)
            good = read_strings(&reader, map, add_content);
        else if (IS("mappings"))
            good = read_string(&reader, &mappings);
        else
            good = skip_value(&reader);
#undef IS
        if (!good)
            return false;
    } while (accept(&reader, ','));
    return accept(&reader, '}') && mappings.data && read_mappings(map, mappings);
}

static struct cn_sourcemap *parse(const char *name, char *text, size_t size, bool mapped,
                                  struct cn_err *err)
{
    struct cn_sourcemap *map = CN_NEW(struct cn_sourcemap);
    map->text = text;
    map->text_size = size;
    map->mapped = mapped;
    if (read_map(map))
        return map;
    cn_err_set(err, CN_EINVALID, "%s: not a source map", name);
    cn_sourcemap_free(map);
    return NULL;
}

struct cn_sourcemap *cn_sourcemap_open(const char *path, struct cn_err *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0) {
        cn_err_errno(err, errno, "%s: cannot be read", path);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    size_t size = (size_t)info.st_size;
    void *text = size == 0 || size > CN_SOURCEMAP_SIZE_MAX
                     ? MAP_FAILED
                     : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (text == MAP_FAILED) {
        cn_err_set(err, CN_ELIMIT, "%s: cannot be mapped into memory", path);
        return NULL;
    }
    return parse(path, text, size, true, err);
}

struct cn_sourcemap *cn_sourcemap_parse(const char *name, const char *json, size_t length,
                                        struct cn_err *err)
{
    if (length > CN_SOURCEMAP_SIZE_MAX) {
        cn_err_set(err, CN_ELIMIT, "%s: larger than %u bytes", name, CN_SOURCEMAP_SIZE_MAX);
        return NULL;
    }
    return parse(name, cn_strndup(json, length), length, false, err);
}

static void strings_fini(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        cn_free(strings->items[i]);
    cn_free(strings->items);
}

void cn_sourcemap_free(struct cn_sourcemap *map)
{
    if (!map)
        return;
    strings_fini(&map->sources);
    strings_fini(&map->names);
    cn_free(map->contents);
    cn_free(map->segments);
    cn_free(map->lines);
    if (map->mapped)
        munmap(map->text, map->text_size);
    else
        cn_free(map->text);
    cn_free(map);
}

bool cn_sourcemap_find(const struct cn_sourcemap *map, uint32_t line, uint32_t column,
                       struct cn_sourcemap_place *place)
{
    if (line == 0 || column == 0 || line > map->line_count)
        return false;
    /* The last segment of the line that begins at or before the column. */
    size_t low = map->lines[line - 1], high = map->lines[line], first = low;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->segments[middle].column < column)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == first || map->segments[low - 1].source == NONE)
        return false;
    const struct segment *segment = &map->segments[low - 1];
    *place = (struct cn_sourcemap_place){
        .source = map->sources.items[segment->source],
        .name = segment->name == NONE ? NULL : map->names.items[segment->name],
        .line = segment->source_line + 1,
        .column = segment->source_column + 1,
    };
    return true;
}

/* ---- showing places ------------------------------------------------------------------ */

static struct span content_of(const struct cn_sourcemap *map, const char *source)
{
    for (size_t i = 0; i < map->sources.count && i < map->content_count; i++)
        if (strcmp(map->sources.items[i], source) == 0)
            return map->contents[i];
    return (struct span){0};
}

void cn_sourcemap_frame(const struct cn_sourcemap *map, const struct cn_sourcemap_place *place,
                        struct cn_buf *out)
{
    struct span content = content_of(map, place->source);
    if (!content.data)
        return;
    uint32_t line = 1;
    uint32_t from = place->line > FRAME_LINES ? place->line - FRAME_LINES : 1;
    struct cn_buf text = {0};
    const char *at = content.data, *end = at + content.size;
    while (at < end && line <= place->line + FRAME_LINES) {
        cn_buf_clear(&text);
        while (at < end) {
            size_t before = text.size;
            at = unescape_one(at, end, &text);
            if (text.data[before] == '\n') {
                text.size--;
                break;
            }
        }
        if (line >= from) {
            size_t shown = text.size < FRAME_WIDTH_MAX ? text.size : FRAME_WIDTH_MAX;
            cn_buf_printf(out, "%s%5u | %.*s\n", line == place->line ? ">" : " ", line, (int)shown,
                          text.data ? (const char *)text.data : "");
            if (line == place->line && place->column <= shown + 1) {
                cn_buf_append_str(out, "       | ");
                for (uint32_t i = 1; i < place->column; i++)
                    cn_buf_append_byte(out, text.data[i - 1] == '\t' ? '\t' : ' ');
                cn_buf_append_str(out, "^\n");
            }
        }
        line++;
    }
    cn_buf_fini(&text);
}

/* Reads ":12:5" at `at`; returns what follows it, or NULL. */
static const char *read_numbers(const char *at, const char *end, uint32_t *line, uint32_t *column)
{
    uint32_t *numbers[] = {line, column};
    for (int i = 0; i < 2; i++) {
        uint64_t value = 0;
        if (at == end || *at++ != ':')
            return NULL;
        const char *start = at;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            if ((value = value * 10 + (uint64_t)(*at - '0')) > UINT32_MAX)
                return NULL;
        if (at == start)
            return NULL;
        *numbers[i] = (uint32_t)value;
    }
    return at;
}

void cn_sourcemap_rewrite(const struct cn_sourcemap *map, const char *url, const char *text,
                          size_t length, struct cn_sourcemap_place *first, struct cn_buf *out)
{
    const char *end = text + length, *line_start = text;
    size_t url_size = strlen(url);
    size_t out_line = out->size; /* where the current line begins in `out` */
    if (first)
        *first = (struct cn_sourcemap_place){0};
    for (const char *at = text; at < end;) {
        struct cn_sourcemap_place place;
        uint32_t line, column;
        const char *after = NULL;
        if (url_size && (size_t)(end - at) > url_size && memcmp(at, url, url_size) == 0)
            after = read_numbers(at + url_size, end, &line, &column);
        if (!after || !cn_sourcemap_find(map, line, column, &place)) {
            cn_buf_append_byte(out, (uint8_t)*at);
            if (*at++ == '\n') {
                line_start = at;
                out_line = out->size;
            }
            continue;
        }
        bool own_form = at > line_start && at[-1] == '@' && (after == end || *after == '\n');
        if (own_form) { /* name@URL:LINE:COLUMN */
            char *name = cn_strndup(line_start, (size_t)(at - 1 - line_start));
            out->size = out_line;
            cn_buf_printf(out, *name ? "    at %s (" : "    at %s", name);
            cn_buf_printf(out, "%s:%u:%u%s", place.source, place.line, place.column,
                          *name ? ")" : "");
            cn_free(name);
        } else {
            cn_buf_printf(out, "%s:%u:%u", place.source, place.line, place.column);
        }
        if (first && !first->source)
            *first = place;
        at = after;
    }
}

static const char *find_source(const struct cn_sourcemap *map, const char *text, size_t length)
{
    for (size_t i = 0; i < map->sources.count; i++) {
        const char *source = map->sources.items[i];
        if (source && strlen(source) == length && memcmp(source, text, length) == 0)
            return source;
    }
    return NULL;
}

/* Reads "SOURCE:12:5" from `at` to `end`. */
static bool read_place(const struct cn_sourcemap *map, const char *at, const char *end,
                       struct cn_sourcemap_place *place)
{
    const char *colon = end;
    for (int colons = 0; colons < 2; colons++)
        do {
            if (colon == at)
                return false;
        } while (*--colon != ':');
    *place = (struct cn_sourcemap_place){.source = find_source(map, at, (size_t)(colon - at))};
    return place->source && read_numbers(colon, end, &place->line, &place->column) == end;
}

bool cn_sourcemap_locate(const struct cn_sourcemap *map, const char *text, size_t length,
                         struct cn_sourcemap_place *place)
{
    static const char begin[] = "    at ";
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline ? newline : end;
        if ((size_t)(line_end - line) > sizeof(begin) &&
            memcmp(line, begin, sizeof(begin) - 1) == 0) {
            if (line_end - line > 2 && memcmp(line_end - 2, " {", 2) == 0)
                line_end -= 2; /* what the error has besides follows */
            const char *paren = memrchr(line, '(', (size_t)(line_end - line));
            bool named = paren && line_end[-1] == ')';
            if (read_place(map, named ? paren + 1 : line + sizeof(begin) - 1,
                           named ? line_end - 1 : line_end, place))
                return true;
        }
        line = newline ? newline + 1 : end;
    }
    return false;
}
