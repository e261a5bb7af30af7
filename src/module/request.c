/* SPDX-License-Identifier: Apache-2.0 */
#include "module/request.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "net/server.h"

#define ADDRESS_HEADER "cf-connecting-ip"

enum { METHOD, URL, HEADERS }; /* Q1: places; those of a header are two, its name and its value */

void cn_outside_begin(struct cn_compiled_asked *asked)
{
    asked->text_count = HEADERS + 2 * asked->http->header_count;
    asked->texts = cn_alloc_zero(asked->text_count * sizeof(*asked->texts));
}

void cn_outside_end(struct cn_compiled_asked *asked)
{
    for (size_t i = 0; i < asked->text_count; i++)
        cn_free(asked->texts[i]);
    cn_free(asked->texts);
}

/* The text at a place; what is not there yet is made of `bytes`. */
static const char *keep(struct cn_compiled_asked *asked, size_t place, const char *bytes,
                        size_t size)
{
    if (!asked->texts[place])
        asked->texts[place] = cn_strndup(bytes, size);
    return asked->texts[place];
}

const char *cn_outside_method(struct cn_compiled_asked *asked)
{
    const struct cn_http_request *http = asked->http;
    if (!http)
        return asked->texts[METHOD] ? asked->texts[METHOD] : "";
    return keep(asked, METHOD, http->method_text.data, http->method_text.size);
}

const char *cn_outside_url(struct cn_compiled_asked *asked)
{
    const struct cn_http_request *http = asked->http;
    if (asked->texts[URL] || !http)
        return asked->texts[URL] ? asked->texts[URL] : "";
    struct cn_buf url = {0};
    cn_http_request_url(http, &url);
    cn_buf_text(&url);
    return asked->texts[URL] = (char *)cn_buf_take(&url);
}

/* --- headers --------------------------------------------------------------------------------- */

static bool is_address(const struct cn_http_header *header)
{
    return cn_http_name_equal(header->name, header->name_size, ADDRESS_HEADER,
                              sizeof(ADDRESS_HEADER) - 1); /* Q2 */
}

static bool same_name(const struct cn_http_header *a, const struct cn_http_header *b)
{
    return a->name_size == b->name_size && strncasecmp(a->name, b->name, a->name_size) == 0;
}

/* The value of this header with those of all later ones of its name behind it. */
static const char *joined(struct cn_compiled_asked *asked, size_t first)
{
    const struct cn_http_request *http = asked->http;
    const struct cn_http_header *header = &http->headers[first];
    char **place = &asked->texts[HEADERS + 2 * first + 1];
    if (*place)
        return *place;
    struct cn_buf value = {0};
    bool is_cookie = cn_http_name_equal(header->name, header->name_size, "cookie", 6);
    cn_buf_append(&value, header->value, header->value_size);
    for (size_t i = first + 1; i < http->header_count; i++) {
        if (!same_name(&http->headers[i], header))
            continue;
        cn_buf_append_str(&value, is_cookie ? "; " : ", ");
        cn_buf_append(&value, http->headers[i].value, http->headers[i].value_size);
    }
    cn_buf_text(&value);
    return *place = (char *)cn_buf_take(&value);
}

const char *cn_outside_header(struct cn_compiled_asked *asked, const char *name)
{
    const struct cn_http_request *http = asked->http;
    size_t size = strlen(name);
    if (strcasecmp(name, ADDRESS_HEADER) == 0)
        return asked->address[0] ? asked->address : NULL;
    for (size_t i = 0; http && i < http->header_count; i++) {
        if (http->headers[i].name_size == size &&
            strncasecmp(http->headers[i].name, name, size) == 0)
            return joined(asked, i);
    }
    return NULL;
}

/* Whether an earlier header has the same name, and the values of all. */
static bool is_repeated(const struct cn_http_request *http, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (same_name(&http->headers[i], &http->headers[index]))
            return true;
    }
    return false;
}

static bool is_shown(const struct cn_http_request *http, size_t index)
{
    return !is_address(&http->headers[index]) && !is_repeated(http, index);
}

size_t cn_outside_header_count(const struct cn_compiled_asked *asked)
{
    const struct cn_http_request *http = asked->http;
    size_t count = 0;
    for (size_t i = 0; http && i < http->header_count; i++)
        count += is_shown(http, i);
    return count + (http && asked->address[0]);
}

const char *cn_outside_header_at(struct cn_compiled_asked *asked, size_t index, const char **value)
{
    const struct cn_http_request *http = asked->http;
    const char *found = NULL, *name = NULL;
    size_t i = 0;
    for (; http && i < http->header_count; i++) {
        if (is_shown(http, i) && index-- == 0)
            break;
    }
    if (http && i < http->header_count) {
        found = joined(asked, i);
        name = keep(asked, HEADERS + 2 * i, http->headers[i].name, http->headers[i].name_size);
    } else if (http && index == 0 && asked->address[0]) {
        found = asked->address;
        name = ADDRESS_HEADER;
    }
    if (value)
        *value = found;
    return name;
}
