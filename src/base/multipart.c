/* SPDX-License-Identifier: Apache-2.0 */
#include "base/multipart.h"

#include <string.h>
#include <strings.h>

#include "base/assert.h"

void cn_multipart_init(struct cn_multipart *parser, const uint8_t *bytes, size_t size,
                       const char *boundary, size_t boundary_size)
{
    *parser = (struct cn_multipart){.bytes = bytes, .size = size};
    cn_buf_append_str(&parser->needle, "\n--");
    cn_buf_append(&parser->needle, boundary, boundary_size);
}

void cn_multipart_fini(struct cn_multipart *parser)
{
    cn_buf_fini(&parser->needle);
    cn_buf_fini(&parser->name);
    cn_buf_fini(&parser->filename);
}

/* Where LF and the delimiter begin, at `from` or later; SIZE_MAX: nowhere. */
static size_t find_delimiter(const struct cn_multipart *parser, size_t from)
{
    CN_ASSERT(from <= parser->size);
    if (from == parser->size)
        return SIZE_MAX;
    const uint8_t *found =
        memmem(parser->bytes + from, parser->size - from, parser->needle.data, parser->needle.size);
    return found ? (size_t)(found - parser->bytes) : SIZE_MAX;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void trim(const char **text, size_t *size)
{
    while (*size && is_blank(**text)) {
        (*text)++;
        (*size)--;
    }
    while (*size && is_blank((*text)[*size - 1]))
        (*size)--;
}

static bool text_is(const char *text, size_t size, const char *word)
{
    return size == strlen(word) && strncasecmp(text, word, size) == 0;
}

/* One `; name=value` of a header; `value` receives it without quotes. Returns where the next one
 * begins, or NULL if there is none. */
static const char *parameter(const char *at, const char *end, const char **name, size_t *name_size,
                             struct cn_buf *value)
{
    while (at < end && (*at == ';' || is_blank(*at)))
        at++;
    if (at == end)
        return NULL;
    *name = at;
    while (at < end && *at != '=' && *at != ';')
        at++;
    *name_size = (size_t)(at - *name);
    trim(name, name_size);
    cn_buf_clear(value);
    if (at == end || *at == ';')
        return at;
    at++;
    while (at < end && is_blank(*at))
        at++;
    if (at < end && *at == '"') {
        for (at++; at < end && *at != '"'; at++) {
            if (*at == '\\' && at + 1 < end && (at[1] == '"' || at[1] == '\\'))
                at++;
            cn_buf_append_byte(value, (uint8_t)*at);
        }
        while (at < end && *at != ';')
            at++;
        return at;
    }
    const char *start = at;
    while (at < end && *at != ';')
        at++;
    size_t size = (size_t)(at - start);
    trim(&start, &size);
    cn_buf_append(value, start, size);
    return at;
}

static int disposition(struct cn_multipart *parser, const char *text, size_t size,
                       struct cn_multipart_part *part, struct cn_err *err)
{
    const char *end = text + size;
    const char *at = text;
    while (at < end && *at != ';' && !is_blank(*at))
        at++;
    if (!text_is(text, (size_t)(at - text), "form-data"))
        return cn_err_set(err, CN_EINVALID,
                          "Content-Disposition header for FormData part must have the value "
                          "\"form-data\", possibly followed by parameters. Got: \"%.*s\"",
                          (int)(at - text < 64 ? at - text : 64), text);
    struct cn_buf value = {0};
    const char *name;
    size_t name_size;
    bool has_name = false;
    bool has_filename = false;
    while ((at = parameter(at, end, &name, &name_size, &value))) {
        struct cn_buf *into = NULL;
        if (!has_name && text_is(name, name_size, "name")) {
            has_name = true;
            into = &parser->name;
        } else if (!has_filename && text_is(name, name_size, "filename")) {
            has_filename = true;
            into = &parser->filename;
        }
        if (into) {
            cn_buf_clear(into);
            cn_buf_append(into, cn_buf_text(&value), value.size);
        }
    }
    cn_buf_fini(&value);
    if (!has_name)
        return cn_err_set(err, CN_EINVALID,
                          "Content-Disposition header in FormData part is missing a name.");
    part->name = cn_buf_text(&parser->name);
    part->name_size = parser->name.size;
    part->filename = has_filename ? cn_buf_text(&parser->filename) : NULL;
    part->filename_size = has_filename ? parser->filename.size : 0;
    return 0;
}

/* Reads the lines of a head up to and with the empty one; parser->at is behind it then. */
static int head(struct cn_multipart *parser, struct cn_multipart_part *part, struct cn_err *err)
{
    for (;;) {
        const char *line = (const char *)parser->bytes + parser->at;
        const char *lf = memchr(line, '\n', parser->size - parser->at);
        if (!lf)
            return cn_err_set(err, CN_EINVALID, "No end of headers in FormData part.");
        size_t size = (size_t)(lf - line);
        parser->at += size + 1;
        if (size && line[size - 1] == '\r')
            size--;
        if (!size)
            break;
        const char *colon = memchr(line, ':', size);
        if (!colon)
            continue;
        const char *name = line;
        size_t name_size = (size_t)(colon - line);
        const char *value = colon + 1;
        size_t value_size = size - name_size - 1;
        trim(&name, &name_size);
        trim(&value, &value_size);
        if (text_is(name, name_size, "content-disposition")) {
            int rc = disposition(parser, value, value_size, part, err);
            if (rc < 0)
                return rc;
        } else if (text_is(name, name_size, "content-type")) {
            part->type = value;
            part->type_size = value_size;
        }
    }
    if (!part->name)
        return cn_err_set(err, CN_EINVALID,
                          "No valid Content-Disposition header found in FormData part.");
    return 0;
}

/* Finds the first delimiter: at the very start, or at the start of a line. */
static int start(struct cn_multipart *parser, struct cn_err *err)
{
    size_t length = parser->needle.size - 1; /* without the LF */
    parser->started = true;
    if (parser->size >= length && !memcmp(parser->bytes, parser->needle.data + 1, length)) {
        parser->at = length;
        return 0;
    }
    size_t found = find_delimiter(parser, 0);
    if (found == SIZE_MAX)
        return cn_err_set(err, CN_EINVALID,
                          "No initial boundary string (or you have a truncated message).");
    parser->at = found + parser->needle.size;
    return 0;
}

int cn_multipart_next(struct cn_multipart *parser, struct cn_multipart_part *part,
                      struct cn_err *err)
{
    if (!parser->started) {
        int rc = start(parser, err);
        if (rc < 0)
            return rc;
    }
    const uint8_t *at = parser->bytes + parser->at;
    size_t left = parser->size - parser->at;
    if (left >= 2 && at[0] == '-' && at[1] == '-')
        return 0;
    if (left >= 2 && at[0] == '\r' && at[1] == '\n')
        parser->at += 2;
    else if (left >= 1 && at[0] == '\n')
        parser->at += 1;
    else
        return cn_err_set(err, CN_EINVALID,
                          "Boundary string was not succeeded by CRLF, LF, or '--'.");
    *part = (struct cn_multipart_part){.type = ""};
    int rc = head(parser, part, err);
    if (rc < 0)
        return rc;
    /* The LF before the delimiter may be the one that ended the head. */
    part->start = parser->at;
    size_t next = find_delimiter(parser, part->start - 1);
    if (next == SIZE_MAX)
        return cn_err_set(err, CN_EINVALID,
                          "No subsequent boundary string after multipart message.");
    part->end = next > part->start && parser->bytes[next - 1] == '\r' ? next - 1 : next;
    if (part->end < part->start)
        part->end = part->start;
    parser->at = next + parser->needle.size;
    return 1;
}
