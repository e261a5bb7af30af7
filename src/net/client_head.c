/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client_head.h"

#include <string.h>

#include "base/mem.h"

struct span {
    size_t name, name_length, value, value_length; /* offsets into text */
};

void cn_client_head_fini(struct cn_client_head_reader *reader)
{
    cn_buf_fini(&reader->text);
    cn_buf_fini(&reader->spans);
}

bool cn_client_is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        bool ok = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  (c && strchr("!#$%&'*+-.^_`|~", c));
        if (!ok)
            return false;
    }
    return length > 0;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static bool value_is_clean(const char *value, size_t length)
{
    return !memchr(value, 0, length) && !memchr(value, '\r', length);
}

static size_t text_append(struct cn_client_head_reader *reader, const char *text, size_t length)
{
    size_t at = reader->text.size;
    cn_buf_append(&reader->text, text, length);
    cn_buf_append_byte(&reader->text, 0);
    return at;
}

static void reset(struct cn_client_head_reader *reader)
{
    cn_buf_clear(&reader->text);
    cn_buf_clear(&reader->spans);
    reader->status = 0;
}

/* "HTTP/1.1 200 OK" or "HTTP/2 200". */
static bool status_line(struct cn_client_head_reader *reader, const char *line, size_t length)
{
    const char *end = line + length, *at = line + 5;
    if (length < 6 || memcmp(line, "HTTP/", 5) != 0 || !is_digit(*at))
        return false;
    reader->http_version = 10 * (*at++ - '0');
    if (end - at >= 2 && *at == '.' && is_digit(at[1])) {
        reader->http_version += at[1] - '0';
        at += 2;
    }
    if (at == end || *at++ != ' ' || end - at < 3)
        return false;
    for (int i = 0; i < 3; i++, at++) {
        if (!is_digit(*at))
            return false;
        reader->status = reader->status * 10 + (*at - '0');
    }
    if (reader->status < 100 || (at < end && *at++ != ' '))
        return false;
    if (!value_is_clean(at, (size_t)(end - at)))
        return false;
    text_append(reader, at, (size_t)(end - at));
    return true;
}

/* A line that begins with a blank goes on with the value of the one before. */
static bool folded_line(struct cn_client_head_reader *reader, const char *line, size_t length)
{
    if (reader->spans.size == 0 || !value_is_clean(line, length))
        return false;
    struct span *last = (struct span *)(reader->spans.data + reader->spans.size) - 1;
    while (length > 0 && is_blank(*line)) {
        line++;
        length--;
    }
    if (length == 0)
        return true;
    reader->text.data[reader->text.size - 1] = ' '; /* over the NUL */
    text_append(reader, line, length);
    last->value_length += 1 + length;
    return true;
}

static bool field_line(struct cn_client_head_reader *reader, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length), *end = line + length;
    if (!colon || !cn_client_is_token(line, (size_t)(colon - line)))
        return false;
    const char *value = colon + 1;
    while (value < end && is_blank(*value))
        value++;
    while (end > value && is_blank(end[-1]))
        end--;
    struct span span = {.name_length = (size_t)(colon - line),
                        .value_length = (size_t)(end - value)};
    if (!value_is_clean(value, span.value_length))
        return false;
    span.name = text_append(reader, line, span.name_length);
    span.value = text_append(reader, value, span.value_length);
    cn_buf_append(&reader->spans, &span, sizeof(span));
    return true;
}

int cn_client_head_line(struct cn_client_head_reader *reader, const char *line, size_t size,
                        size_t size_max, struct cn_err *err)
{
    reader->size += size;
    if (reader->size > size_max)
        return cn_err_set(err, CN_ELIMIT, "the answer's headers exceed %zu bytes", size_max);
    if (size > 0 && line[size - 1] == '\n')
        size--;
    if (size > 0 && line[size - 1] == '\r')
        size--;
    bool ok = true;
    if (reader->status == 0) {
        reset(reader);
        ok = status_line(reader, line, size);
    } else if (size > 0) {
        ok = is_blank(line[0]) ? folded_line(reader, line, size) : field_line(reader, line, size);
    } else if (reader->status >= 200 || (reader->status == 101 && reader->upgrades)) {
        return 1;
    } else {
        reset(reader); /* 100 Continue, 103 Early Hints: the real one follows */
    }
    return ok ? 0 : cn_err_set(err, CN_EPROTOCOL, "the answer has a malformed header line");
}

struct cn_client_head cn_client_head_take(struct cn_client_head_reader *reader,
                                          struct cn_client_header **headers)
{
    const struct span *spans = (const struct span *)reader->spans.data;
    size_t count = reader->spans.size / sizeof(struct span);
    const char *text = (const char *)reader->text.data;
    struct cn_client_header *list = cn_alloc((count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++) {
        list[i] = (struct cn_client_header){.name = text + spans[i].name,
                                            .name_length = spans[i].name_length,
                                            .value = text + spans[i].value,
                                            .value_length = spans[i].value_length};
    }
    *headers = list;
    return (struct cn_client_head){.status = reader->status,
                                   .reason = text,
                                   .http_version = reader->http_version,
                                   .headers = list,
                                   .header_count = count};
}
