/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ws_handshake.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/rand.h"
#include "net/http.h"
#include "net/server.h"

/* --- keys -------------------------------------------------------------------------------- */

void cn_ws_accept_of(const char *key, size_t size, char accept[CN_WS_ACCEPT_SIZE + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[CN_WS_KEY_SIZE + sizeof(guid)];
    unsigned char digest[EVP_MAX_MD_SIZE];
    CN_ASSERT(size <= CN_WS_KEY_SIZE);
    memcpy(text, key, size);
    memcpy(text + size, guid, sizeof(guid) - 1);
    int rc = EVP_Digest(text, size + sizeof(guid) - 1, digest, NULL, EVP_sha1(), NULL);
    CN_ASSERT(rc == 1);
    EVP_EncodeBlock((unsigned char *)accept, digest, 20);
}

void cn_ws_key_new(char key[CN_WS_KEY_SIZE + 1])
{
    unsigned char bytes[16];
    cn_rand_secure(bytes, sizeof(bytes));
    EVP_EncodeBlock((unsigned char *)key, bytes, sizeof(bytes));
}

/* 16 bytes in base64: 22 letters and two signs of equality. */
static bool key_valid(const char *key, size_t size)
{
    if (size != CN_WS_KEY_SIZE || key[22] != '=' || key[23] != '=')
        return false;
    for (size_t i = 0; i < 22; i++) {
        char c = key[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '+' && c != '/')
            return false;
    }
    return true;
}

int cn_ws_request_check(const struct cn_http_request *req, char accept[CN_WS_ACCEPT_SIZE + 1])
{
    const struct cn_http_header *upgrade = cn_http_request_find(req, "upgrade");
    if (!req->upgrade || !upgrade ||
        !cn_http_list_has(upgrade->value, upgrade->value_size, "websocket"))
        return -1;
    if (req->method != CN_HTTP_GET || req->version_minor < 1)
        return 400;
    const struct cn_http_header *version = cn_http_request_find(req, "sec-websocket-version");
    if (!version || version->value_size != 2 || memcmp(version->value, "13", 2) != 0)
        return 426;
    const struct cn_http_header *key = cn_http_request_find(req, "sec-websocket-key");
    if (!key || !key_valid(key->value, key->value_size))
        return 400;
    cn_ws_accept_of(key->value, key->value_size, accept);
    return 0;
}

/* --- extensions -------------------------------------------------------------------------- */

/* Takes the text up to `stop`, trimmed, from the front of *rest. */
static struct cn_http_text take_until(struct cn_http_text *rest, char stop)
{
    const char *end = memchr(rest->data, stop, rest->size);
    size_t size = end ? (size_t)(end - rest->data) : rest->size;
    struct cn_http_text part = {rest->data, size};
    rest->data += end ? size + 1 : size;
    rest->size -= end ? size + 1 : size;
    while (part.size > 0 && (part.data[0] == ' ' || part.data[0] == '\t'))
        part.data++, part.size--;
    while (part.size > 0 && (part.data[part.size - 1] == ' ' || part.data[part.size - 1] == '\t'))
        part.size--;
    return part;
}

enum { SERVER_ALONE = 1, CLIENT_ALONE = 2, SERVER_BITS = 4, CLIENT_BITS = 8 };

/* A window size of 8 to 15, perhaps in quotes; 0: it is none. */
static unsigned bits_parse(struct cn_http_text value)
{
    if (value.size >= 2 && value.data[0] == '"' && value.data[value.size - 1] == '"') {
        value.data++;
        value.size -= 2;
    }
    if (value.size == 1 && (value.data[0] == '8' || value.data[0] == '9'))
        return (unsigned)(value.data[0] - '0');
    if (value.size == 2 && value.data[0] == '1' && value.data[1] >= '0' && value.data[1] <= '5')
        return 10u + (unsigned)(value.data[1] - '0');
    return 0;
}

/* One extension with its parameters. False: not permessage-deflate, or not valid. */
static bool params_parse(struct cn_http_text offer, unsigned *seen, unsigned *server_bits)
{
    static const struct {
        const char *name;
        unsigned flag;
    } known[] = {{"server_no_context_takeover", SERVER_ALONE},
                 {"client_no_context_takeover", CLIENT_ALONE},
                 {"server_max_window_bits", SERVER_BITS},
                 {"client_max_window_bits", CLIENT_BITS}};
    struct cn_http_text name = take_until(&offer, ';');
    if (!cn_http_name_equal(name.data, name.size, "permessage-deflate", 18))
        return false;
    *seen = 0;
    *server_bits = CN_WS_WINDOW_BITS_MAX;
    while (offer.size > 0) {
        struct cn_http_text value = take_until(&offer, ';');
        bool has_value = memchr(value.data, '=', value.size) != NULL;
        name = take_until(&value, '=');
        unsigned flag = 0;
        for (size_t i = 0; i < CN_ARRAY_COUNT(known); i++)
            if (cn_http_name_equal(name.data, name.size, known[i].name, strlen(known[i].name)))
                flag = known[i].flag;
        if (!flag || *seen & flag)
            return false;
        *seen |= flag;
        value = take_until(&value, ';');
        unsigned bits = has_value ? bits_parse(value) : 0;
        if ((flag == SERVER_BITS && !bits) || (flag == CLIENT_BITS && has_value && !bits) ||
            (flag <= CLIENT_ALONE && has_value))
            return false;
        if (flag == SERVER_BITS)
            *server_bits = bits;
    }
    return true;
}

bool cn_ws_offer_choose(const char *value, size_t size, struct cn_ws_terms *terms)
{
    struct cn_http_text rest = {value, size};
    while (rest.size > 0) {
        unsigned seen, bits;
        /* zlib cannot keep a window of 256 bytes. */
        if (!params_parse(take_until(&rest, ','), &seen, &bits) || bits < 9)
            continue;
        *terms = (struct cn_ws_terms){.deflate = true, .window_bits = bits};
        return true;
    }
    return false;
}

size_t cn_ws_offer_answer(const struct cn_ws_terms *terms, char *text, size_t text_size)
{
    int size = snprintf(text, text_size, CN_WS_OFFER);
    if (terms->window_bits < CN_WS_WINDOW_BITS_MAX)
        size += snprintf(text + size, text_size - (size_t)size, "; server_max_window_bits=%u",
                         terms->window_bits);
    CN_ASSERT((size_t)size < text_size);
    return (size_t)size;
}

bool cn_ws_answer_check(const char *value, size_t size, struct cn_ws_terms *terms)
{
    unsigned seen, bits;
    struct cn_http_text answer = {value, size};
    if (memchr(value, ',', size) || !params_parse(answer, &seen, &bits))
        return false;
    /* It may not set what was not offered, and must keep to what was asked. */
    if (!(seen & SERVER_ALONE) || seen & CLIENT_BITS)
        return false;
    *terms = (struct cn_ws_terms){.deflate = true, .window_bits = CN_WS_WINDOW_BITS_MAX};
    return true;
}
