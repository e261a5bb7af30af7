/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http.h"

#include <string.h>

const struct cn_http_limits cn_http_limits_default = {
    .target_size_max = 16 << 10,
    .head_size_max = 128 << 10,
    .header_count_max = 256,
    .body_size_max = 100 << 20,
    .drain_size_max = 256 << 10,
    .output_high_bytes = 256 << 10,
    .output_size_max = 16 << 20,
    .input_high_bytes = 64 << 10,
    .connection_count_max = 10000,
    .head_timeout_ms = 10 * 1000,
    .idle_timeout_ms = 75 * 1000,
    .body_timeout_ms = 60 * 1000,
    .write_timeout_ms = 60 * 1000,
    .linger_timeout_ms = 2 * 1000,
};

const char *cn_http_reason(int status)
{
    switch (status) {
    case 100:
        return "Continue";
    case 101:
        return "Switching Protocols";
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 202:
        return "Accepted";
    case 203:
        return "Non-Authoritative Information";
    case 204:
        return "No Content";
    case 205:
        return "Reset Content";
    case 206:
        return "Partial Content";
    case 207:
        return "Multi-Status";
    case 208:
        return "Already Reported";
    case 226:
        return "IM Used";
    case 300:
        return "Multiple Choices";
    case 301:
        return "Moved Permanently";
    case 302:
        return "Found";
    case 303:
        return "See Other";
    case 304:
        return "Not Modified";
    case 305:
        return "Use Proxy";
    case 307:
        return "Temporary Redirect";
    case 308:
        return "Permanent Redirect";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 402:
        return "Payment Required";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 406:
        return "Not Acceptable";
    case 407:
        return "Proxy Authentication Required";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 410:
        return "Gone";
    case 411:
        return "Length Required";
    case 412:
        return "Precondition Failed";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 415:
        return "Unsupported Media Type";
    case 416:
        return "Range Not Satisfiable";
    case 417:
        return "Expectation Failed";
    case 418:
        return "I'm a teapot";
    case 421:
        return "Misdirected Request";
    case 422:
        return "Unprocessable Content";
    case 423:
        return "Locked";
    case 424:
        return "Failed Dependency";
    case 425:
        return "Too Early";
    case 426:
        return "Upgrade Required";
    case 428:
        return "Precondition Required";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 451:
        return "Unavailable For Legal Reasons";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 502:
        return "Bad Gateway";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    case 506:
        return "Variant Also Negotiates";
    case 507:
        return "Insufficient Storage";
    case 508:
        return "Loop Detected";
    case 510:
        return "Not Extended";
    case 511:
        return "Network Authentication Required";
    default:
        return "Unknown";
    }
}

/* 1 for the characters of an RFC 9110 token. */
static const uint8_t token_chars[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

bool cn_http_token_valid(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!token_chars[(uint8_t)text[i]])
            return false;
    return size > 0;
}

bool cn_http_value_valid(const char *text, size_t size)
{
    unsigned bad = 0;
    for (size_t i = 0; i < size; i++) {
        uint8_t c = (uint8_t)text[i];
        bad |= (c < 0x20) & (c != '\t');
        bad |= c == 0x7f;
    }
    return bad == 0;
}

static uint8_t lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : (uint8_t)c;
}

bool cn_http_name_equal(const char *name, size_t size, const char *lower_name, size_t lower_size)
{
    if (size != lower_size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (lower(name[i]) != (uint8_t)lower_name[i])
            return false;
    return true;
}

bool cn_http_list_has(const char *value, size_t size, const char *lower_item)
{
    size_t item_size = strlen(lower_item);
    const char *end = value + size;
    while (value < end) {
        const char *comma = memchr(value, ',', (size_t)(end - value));
        const char *stop = comma ? comma : end;
        const char *first = value, *last = stop;
        while (first < last && (*first == ' ' || *first == '\t'))
            first++;
        while (last > first && (last[-1] == ' ' || last[-1] == '\t'))
            last--;
        if (cn_http_name_equal(first, (size_t)(last - first), lower_item, item_size))
            return true;
        value = stop + 1;
    }
    return false;
}
