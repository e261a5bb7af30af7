/* SPDX-License-Identifier: Apache-2.0 */
/* net/http_parser.c - the request parser.
 *
 * A head is parsed only once it is complete and contiguous, so nothing is ever
 * half parsed: the scan below looks at every byte once, whatever the pieces it
 * arrives in, and llhttp then runs over the whole head in one call.
 *
 * Request smuggling lives on two parsers that disagree, so we accept only what
 * can be read in one way, and check it ourselves where llhttp 8 is lenient:
 *
 *  P1  Lines end in CR LF; neither character occurs otherwise (bare LF, bare CR).
 *  P2  No control characters but HT, and that only in header lines.
 *  P3  No header line starts with a blank (obs-fold), names are tokens (no blank
 *      before the colon, no empty name).
 *  P4  The request line ends in HTTP/1.0 or HTTP/1.1 after one single space.
 *  P5  At most one Content-Length, all digits. Transfer-Encoding is exactly
 *      "chunked", once, in HTTP/1.1, and never together with Content-Length.
 *  P6  Exactly one Host in HTTP/1.1, at most one in HTTP/1.0, and made of
 *      characters that can be in an authority.
 *  P7  The host of an absolute target stands in the Host field's place too: there is
 *      one host, whoever asks.
 *
 * Body framing is decoded here and not by llhttp, whose version 8 takes bare CR
 * in trailers and puts no bound on chunk extensions. */
#include "net/http_parser.h"

#include <llhttp.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/hexdigit.h"

/* Longest method, two spaces, "HTTP/1.1": what a request line has besides its target. */
#define REQUEST_LINE_SLACK 64
#define EXTENSION_SIZE_MAX (16 << 10) /* of all chunks of a body together */
#define TRAILER_SIZE_MAX (16 << 10)
#define CHUNK_DIGITS_MAX 16

/* --- scan ------------------------------------------------------------------------------- */

/* 1 for bytes at which the scan stops to think. */
static const uint8_t special[256] = {[0 ... 0x1f] = 1, [0x7f] = 1};

static int request_line_check(const uint8_t *line, size_t size)
{
    static const char version[] = " HTTP/";
    if (size < 9 || memcmp(line + size - 9, version, 6) != 0 || line[size - 2] != '.')
        return 400;
    if (line[size - 3] != '1' || (line[size - 1] != '0' && line[size - 1] != '1'))
        return 505;
    return 0;
}

int cn_http_scan_head(struct cn_http_scan *scan, const uint8_t *bytes, size_t size,
                      const struct cn_http_limits *limits)
{
    size_t pos = scan->pos;
    int status = 0;
    for (;;) {
        while (pos < size && !special[bytes[pos]])
            pos++;
        if (scan->first_line_end == 0) {
            if (pos > limits->target_size_max + REQUEST_LINE_SLACK)
                return 414;
        } else if (pos - scan->first_line_end > limits->head_size_max)
            return 431;
        if (pos > scan->line_start && scan->first_line_end != 0 && bytes[scan->line_start] == ' ')
            return 400; /* P3 */
        if (pos == size)
            break;
        if (bytes[pos] == '\t' && scan->first_line_end != 0 && pos != scan->line_start) {
            pos++;
            continue;
        }
        if (bytes[pos] != '\r')
            return 400; /* P1, P2, P3 */
        if (pos + 1 == size)
            break; /* look at this CR again when its LF is there */
        if (bytes[pos + 1] != '\n')
            return 400; /* P1 */
        if (scan->first_line_end == 0) {
            status = request_line_check(bytes, pos);
            if (status != 0)
                return status;
            scan->first_line_end = pos;
        } else if (pos == scan->line_start) {
            scan->pos = pos + 2;
            return 1;
        } else if (++scan->header_count > limits->header_count_max)
            return 431;
        pos += 2;
        scan->line_start = pos;
    }
    scan->pos = pos;
    return 0;
}

/* --- parse ------------------------------------------------------------------------------ */

struct parse {
    llhttp_t llhttp; /* first: the callbacks get this */
    struct cn_http_message *message;
    size_t capacity;
};

static int on_url(llhttp_t *llhttp, const char *at, size_t size)
{
    struct cn_http_text *target = &((struct parse *)llhttp)->message->target;
    if (target->size == 0)
        target->data = at;
    target->size += size;
    return 0;
}

static int on_header_field(llhttp_t *llhttp, const char *at, size_t size)
{
    struct parse *parse = (struct parse *)llhttp;
    struct cn_http_message *message = parse->message;
    if (message->header_count == parse->capacity)
        return -1; /* llhttp sees more lines than the scan did: they disagree, so refuse */
    message->headers[message->header_count++] =
        (struct cn_http_header){.name = at, .name_size = (uint32_t)size, .value = at + size};
    return 0;
}

static int on_header_value(llhttp_t *llhttp, const char *at, size_t size)
{
    struct cn_http_message *message = ((struct parse *)llhttp)->message;
    struct cn_http_header *header = &message->headers[message->header_count - 1];
    if (header->value_size == 0)
        header->value = at;
    header->value_size += (uint32_t)size;
    return 0;
}

static int on_headers_complete(llhttp_t *llhttp)
{
    return HPE_PAUSED; /* the body is ours */
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
};

static enum cn_http_method method_of(unsigned llhttp_method)
{
    switch (llhttp_method) {
    case HTTP_GET:
        return CN_HTTP_GET;
    case HTTP_HEAD:
        return CN_HTTP_HEAD;
    case HTTP_POST:
        return CN_HTTP_POST;
    case HTTP_PUT:
        return CN_HTTP_PUT;
    case HTTP_DELETE:
        return CN_HTTP_DELETE;
    case HTTP_PATCH:
        return CN_HTTP_PATCH;
    case HTTP_OPTIONS:
        return CN_HTTP_OPTIONS;
    default:
        return CN_HTTP_OTHER;
    }
}

static bool text_is(const struct cn_http_header *header, const char *lower_value)
{
    return cn_http_name_equal(header->value, header->value_size, lower_value, strlen(lower_value));
}

static bool host_valid(const char *text, size_t size)
{
    static const uint8_t chars[256] = {
        ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, ['-'] = 1, ['.'] = 1,  ['_'] = 1,
        ['~'] = 1,         ['!'] = 1,         ['$'] = 1,         ['&'] = 1, ['\''] = 1, ['('] = 1,
        [')'] = 1,         ['*'] = 1,         ['+'] = 1,         [','] = 1, [';'] = 1,  ['='] = 1,
        [':'] = 1,         ['['] = 1,         [']'] = 1,         ['%'] = 1,
    };
    for (size_t i = 0; i < size; i++)
        if (!chars[(uint8_t)text[i]])
            return false;
    return true;
}

/* 18 digits at most: no overflow, and far past every limit. */
static bool length_parse(const char *text, size_t size, int64_t *length)
{
    if (size == 0 || size > 18)
        return false;
    int64_t value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (text[i] - '0');
    }
    *length = value;
    return true;
}

/* What the fields that frame and route the message say. */
struct framing {
    unsigned host_count, length_count, coding_count;
    bool close, keep_alive, connection_upgrade, upgrade;
};

/* Looks at one header by the length of its name, so that most cost one switch. */
static int header_use(const struct cn_http_header *header, struct cn_http_message *message,
                      struct framing *framing)
{
#define NAME_IS(text) (memcmp(header->name, text, sizeof(text) - 1) == 0)
    switch (header->name_size) {
    case 4:
        if (NAME_IS("host")) {
            if (framing->host_count++ > 0 || !host_valid(header->value, header->value_size))
                return 400; /* P6 */
            message->host = (struct cn_http_text){header->value, header->value_size};
        }
        return 0;
    case 6:
        if (NAME_IS("expect") && message->version_minor > 0) {
            if (!text_is(header, "100-continue"))
                return 417;
            message->expect_continue = true;
        }
        return 0;
    case 7:
        framing->upgrade |= NAME_IS("upgrade");
        return 0;
    case 10:
        if (NAME_IS("connection")) {
            framing->close |= cn_http_list_has(header->value, header->value_size, "close");
            framing->keep_alive |=
                cn_http_list_has(header->value, header->value_size, "keep-alive");
            framing->connection_upgrade |=
                cn_http_list_has(header->value, header->value_size, "upgrade");
        }
        return 0;
    case 14:
        if (NAME_IS("content-length") &&
            (framing->length_count++ > 0 ||
             !length_parse(header->value, header->value_size, &message->content_length)))
            return 400; /* P5 */
        return 0;
    case 17:
        if (NAME_IS("transfer-encoding") &&
            (framing->coding_count++ > 0 || message->version_minor == 0 ||
             !text_is(header, "chunked")))
            return 400; /* P5 */
        return 0;
    default:
        return 0;
    }
#undef NAME_IS
}

/* Trims blanks, lower-cases and checks the name (P3), and uses the header. */
static int header_finish(struct cn_http_header *header, struct cn_http_message *message,
                         struct framing *framing)
{
    while (header->value_size > 0 && (header->value[header->value_size - 1] == ' ' ||
                                      header->value[header->value_size - 1] == '\t'))
        header->value_size--;
    while (header->value_size > 0 && (header->value[0] == ' ' || header->value[0] == '\t')) {
        header->value++;
        header->value_size--;
    }
    if (!cn_http_token_valid(header->name, header->name_size))
        return 400;
    char *name = (char *)header->name; /* inside `head`, which we may change */
    for (size_t i = 0; i < header->name_size; i++)
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] |= 0x20;
    return header_use(header, message, framing);
}

/* P7 (RFC 9112, 3.2.2): who routes, who checks a signature and who reads the field see one value.
 */
static void host_set(struct cn_http_message *message, const char *host, size_t size)
{
    message->host = (struct cn_http_text){host, size};
    for (size_t i = 0; i < message->header_count; i++) {
        struct cn_http_header *header = &message->headers[i];
        if (header->name_size == 4 && memcmp(header->name, "host", 4) == 0) {
            header->value = host;
            header->value_size = (uint32_t)size;
        }
    }
}

/* Brings every form of target to "path and query" plus host (RFC 9112, 3.2). */
static int target_finish(struct cn_http_message *message, const struct framing *framing,
                         const struct cn_http_limits *limits)
{
    struct cn_http_text *target = &message->target;
    if (target->size > limits->target_size_max)
        return 414;
    if (framing->host_count == 0 && message->version_minor > 0)
        return 400; /* P6 */
    for (size_t i = 0; i < target->size; i++)
        if ((uint8_t)target->data[i] <= ' ' || target->data[i] == 0x7f)
            return 400;
    if (target->size > 0 && target->data[0] == '/')
        return 0;
    if (target->size == 1 && target->data[0] == '*')
        return message->method == CN_HTTP_OPTIONS ? 0 : 400;
    size_t scheme_size;
    if (target->size > 7 && cn_http_name_equal(target->data, 7, "http://", 7))
        scheme_size = 7;
    else if (target->size > 8 && cn_http_name_equal(target->data, 8, "https://", 8))
        scheme_size = 8;
    else
        return 400;
    const char *host = target->data + scheme_size, *end = target->data + target->size;
    const char *path = host;
    while (path < end && *path != '/' && *path != '?' && *path != '#')
        path++;
    if (path == host || !host_valid(host, (size_t)(path - host)))
        return 400;
    host_set(message, host, (size_t)(path - host));
    if (path < end && *path == '/')
        *target = (struct cn_http_text){path, (size_t)(end - path)};
    else if (path == end)
        *target = (struct cn_http_text){"/", 1};
    else
        return 400; /* a query needs its path: there is no room to put the slash in */
    return 0;
}

int cn_http_parse_head(const struct cn_http_scan *scan, char *head,
                       const struct cn_http_limits *limits, struct cn_http_message *message)
{
    struct cn_http_header *headers = message->headers;
    *message = (struct cn_http_message){.headers = headers, .host = {"", 0}};
    struct parse parse = {.message = message, .capacity = scan->header_count};
    llhttp_init(&parse.llhttp, HTTP_REQUEST, &settings);
    int rc = llhttp_execute(&parse.llhttp, head, scan->pos);
    if (rc == HPE_INVALID_METHOD) {
        const char *space = memchr(head, ' ', scan->first_line_end);
        return space && cn_http_token_valid(head, (size_t)(space - head)) ? 501 : 400;
    }
    if (rc != HPE_PAUSED || message->header_count != scan->header_count)
        return 400;
    message->method = method_of(parse.llhttp.method);
    message->version_minor = parse.llhttp.http_minor;
    /* One space between method, target and version (P4): what llhttp took as the target must
     * fill the line between them. */
    const char *text = llhttp_method_name(parse.llhttp.method);
    size_t method_size = strlen(text);
    if (scan->first_line_end < method_size + 10 || memcmp(head, text, method_size) != 0 ||
        message->target.data != head + method_size + 1 ||
        message->target.size != scan->first_line_end - method_size - 10)
        return 400;
    message->method_text = (struct cn_http_text){head, method_size};
    if (parse.llhttp.method == HTTP_CONNECT)
        return 501; /* we are no proxy */
    struct framing framing = {0};
    for (size_t i = 0; i < message->header_count; i++) {
        int status = header_finish(&message->headers[i], message, &framing);
        if (status != 0)
            return status;
    }
    if (framing.coding_count > 0) {
        if (framing.length_count > 0)
            return 400; /* P5 */
        message->content_length = -1;
    }
    message->upgrade = framing.upgrade && framing.connection_upgrade && message->version_minor > 0;
    message->keep_alive = !framing.close && (message->version_minor > 0 || framing.keep_alive);
    return target_finish(message, &framing, limits);
}

/* --- chunked ---------------------------------------------------------------------------- */

/*  SIZE ──► EXTENSION ──► SIZE_LF ──► DATA ──► DATA_CR ──► DATA_LF ──► SIZE
 *    │                       │ size 0
 *    └───────────────────────┴──► TRAILER ──► TRAILER_LINE ──► TRAILER_LF ──► TRAILER
 *                                     └──► END_LF ──► DONE                              */
enum {
    STATE_SIZE,
    STATE_BLANK, /* after the size: blanks are allowed only before an extension */
    STATE_EXTENSION,
    STATE_SIZE_LF,
    STATE_DATA,
    STATE_DATA_CR,
    STATE_DATA_LF,
    STATE_TRAILER, /* at the start of a line */
    STATE_TRAILER_NAME,
    STATE_TRAILER_VALUE,
    STATE_TRAILER_LF,
    STATE_END_LF,
    STATE_DONE,
};

/* One byte of a size line. */
static int size_step(struct cn_http_chunked *chunked, uint8_t c)
{
    int digit;
    switch (chunked->state) {
    case STATE_SIZE:
        digit = cn_hexdigit_value(c);
        if (digit >= 0) {
            if (++chunked->digit_count > CHUNK_DIGITS_MAX)
                return CN_EPROTOCOL;
            chunked->chunk_left = chunked->chunk_left << 4 | (unsigned)digit;
            return 0;
        }
        if (chunked->digit_count == 0)
            return CN_EPROTOCOL;
        /* fall through */
    case STATE_BLANK:
        if (c == ' ' || c == '\t') {
            chunked->state = STATE_BLANK;
            return ++chunked->extension_size > EXTENSION_SIZE_MAX ? CN_ELIMIT : 0;
        }
        if (c == '\r' && chunked->state == STATE_SIZE)
            chunked->state = STATE_SIZE_LF;
        else if (c == ';')
            chunked->state = STATE_EXTENSION;
        else
            return CN_EPROTOCOL;
        return 0;
    case STATE_EXTENSION:
        if (c == '\r')
            chunked->state = STATE_SIZE_LF;
        else if (special[c] && c != '\t')
            return CN_EPROTOCOL;
        return ++chunked->extension_size > EXTENSION_SIZE_MAX ? CN_ELIMIT : 0;
    case STATE_SIZE_LF:
        if (c != '\n')
            return CN_EPROTOCOL;
        chunked->digit_count = 0;
        chunked->state = chunked->chunk_left > 0 ? STATE_DATA : STATE_TRAILER;
        return 0;
    default:
        CN_UNREACHABLE();
    }
}

/* One byte of a trailer line; trailers are checked like headers, and dropped. */
static int trailer_step(struct cn_http_chunked *chunked, uint8_t c)
{
    if (++chunked->trailer_size > TRAILER_SIZE_MAX)
        return CN_ELIMIT;
    switch (chunked->state) {
    case STATE_TRAILER:
        if (c == '\r') {
            chunked->state = STATE_END_LF;
            return 0;
        }
        chunked->trailer_name_size = 0;
        chunked->state = STATE_TRAILER_NAME;
        /* fall through */
    case STATE_TRAILER_NAME:
        if (c == ':' && chunked->trailer_name_size > 0) {
            chunked->state = STATE_TRAILER_VALUE;
            return 0;
        }
        chunked->trailer_name_size++;
        return cn_http_token_valid((const char *)&c, 1) ? 0 : CN_EPROTOCOL;
    case STATE_TRAILER_VALUE:
        if (c == '\r')
            chunked->state = STATE_TRAILER_LF;
        else if (special[c] && c != '\t')
            return CN_EPROTOCOL;
        return 0;
    case STATE_TRAILER_LF:
        chunked->state = STATE_TRAILER;
        return c == '\n' ? 0 : CN_EPROTOCOL;
    case STATE_END_LF:
        chunked->state = STATE_DONE;
        return c == '\n' ? 0 : CN_EPROTOCOL;
    default:
        CN_UNREACHABLE();
    }
}

int cn_http_chunked_next(struct cn_http_chunked *chunked, const uint8_t *bytes, size_t size,
                         size_t *used, const uint8_t **data, size_t *data_size)
{
    size_t pos = 0;
    int rc = 0;
    while (rc == 0 && chunked->state != STATE_DONE) {
        if (pos == size) {
            *used = pos;
            return CN_HTTP_CHUNKED_MORE;
        }
        switch (chunked->state) {
        case STATE_DATA: {
            size_t piece = size - pos;
            if (piece > chunked->chunk_left)
                piece = (size_t)chunked->chunk_left;
            chunked->chunk_left -= piece;
            if (chunked->chunk_left == 0)
                chunked->state = STATE_DATA_CR;
            *data = bytes + pos;
            *data_size = piece;
            *used = pos + piece;
            return CN_HTTP_CHUNKED_DATA;
        }
        case STATE_DATA_CR:
            rc = bytes[pos++] == '\r' ? 0 : CN_EPROTOCOL;
            chunked->state = STATE_DATA_LF;
            break;
        case STATE_DATA_LF:
            rc = bytes[pos++] == '\n' ? 0 : CN_EPROTOCOL;
            chunked->state = STATE_SIZE;
            break;
        case STATE_TRAILER:
        case STATE_TRAILER_NAME:
        case STATE_TRAILER_VALUE:
        case STATE_TRAILER_LF:
        case STATE_END_LF:
            rc = trailer_step(chunked, bytes[pos++]);
            break;
        default:
            rc = size_step(chunked, bytes[pos++]);
            break;
        }
    }
    *used = pos;
    return rc < 0 ? rc : CN_HTTP_CHUNKED_END;
}
