/* SPDX-License-Identifier: Apache-2.0 */
#include "net/client_params.h"

#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "net/client_head.h"
#include "net/decode.h"

#define NAME_SHOWN_MAX 100 /* bytes of a bad name that a message repeats */

static bool name_is(const struct cn_client_header *header, const char *name)
{
    return strlen(name) == header->name_length &&
           strncasecmp(header->name, name, header->name_length) == 0;
}

static bool frames_message(const struct cn_client_header *header)
{
    static const char *const names[] = {
        "content-length",   "transfer-encoding", "connection", "keep-alive",
        "proxy-connection", "upgrade",           "te",         "trailer",
        "http2-settings",
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        if (name_is(header, names[i]))
            return true;
    }
    return false;
}

static int header_check(const struct cn_client_header *header, struct cn_err *err)
{
    int shown = (int)(header->name_length < NAME_SHOWN_MAX ? header->name_length : NAME_SHOWN_MAX);
    if (!cn_client_is_token(header->name, header->name_length))
        return cn_err_set(err, CN_EINVALID, "\"%.*s\" is not a header name", shown, header->name);
    for (size_t i = 0; i < header->value_length; i++) {
        char c = header->value[i];
        if (c == 0 || c == '\r' || c == '\n')
            return cn_err_set(err, CN_EINVALID,
                              "the value of header %.*s has a forbidden character", shown,
                              header->name);
    }
    return 0;
}

static void list_append(struct curl_slist **list, const char *line)
{
    struct curl_slist *grown = curl_slist_append(*list, line);
    CN_ASSERT(grown);
    *list = grown;
}

int cn_client_params_headers(const struct cn_client_params *params, struct curl_slist **list,
                             struct cn_err *err)
{
    /* curl would add these by itself; a line that ends at the colon stops it. */
    static const char *const unwanted[] = {"Accept:", "Expect:", "Content-Type:"};
    static const char *const unwanted_names[] = {"accept", "expect", "content-type"};
    bool given[CN_ARRAY_COUNT(unwanted)] = {false}, coding_given = false;
    struct curl_slist *made = NULL;
    struct cn_buf line = {0};
    int rc = 0;
    for (size_t i = 0; i < params->header_count; i++) {
        const struct cn_client_header *header = &params->headers[i];
        rc = header_check(header, err);
        if (rc < 0)
            goto free_list;
        if (frames_message(header))
            continue;
        for (size_t u = 0; u < CN_ARRAY_COUNT(unwanted); u++)
            given[u] = given[u] || name_is(header, unwanted_names[u]);
        coding_given = coding_given || name_is(header, "accept-encoding");
        cn_buf_clear(&line);
        cn_buf_append(&line, header->name, header->name_length);
        if (header->value_length == 0) {
            cn_buf_append_byte(&line, ';'); /* curl's way to write an empty value */
        } else {
            cn_buf_append_str(&line, ": ");
            cn_buf_append(&line, header->value, header->value_length);
        }
        list_append(&made, cn_buf_text(&line));
    }
    for (size_t u = 0; u < CN_ARRAY_COUNT(unwanted); u++) {
        if (!given[u])
            list_append(&made, unwanted[u]);
    }
    if (params->accept_encoding && !coding_given)
        list_append(&made, "Accept-Encoding: " CN_DECODE_ACCEPT);
    cn_buf_fini(&line);
    *list = made;
    return 0;
free_list:
    cn_buf_fini(&line);
    curl_slist_free_all(made);
    return rc;
}

int cn_client_params_url(const char *text, CURLU **url, char **origin, struct cn_err *err)
{
    CURLU *made = curl_url();
    CN_ASSERT(made);
    char *scheme = NULL, *host = NULL, *port = NULL;
    int rc = 0;
    CURLUcode code =
        curl_url_set(made, CURLUPART_URL, text,
                     CURLU_PATH_AS_IS | CURLU_DISALLOW_USER | CURLU_NON_SUPPORT_SCHEME);
    if (code == CURLUE_USER_NOT_ALLOWED) {
        rc = cn_err_set(err, CN_EINVALID, "a URL with a user name or password cannot be fetched");
        goto free_url;
    }
    if (code != CURLUE_OK) {
        rc = cn_err_set(err, CN_EINVALID, "not a usable URL: %s", curl_url_strerror(code));
        goto free_url;
    }
    curl_url_get(made, CURLUPART_SCHEME, &scheme, 0);
    curl_url_get(made, CURLUPART_HOST, &host, 0);
    curl_url_get(made, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    if (!scheme || (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0))
        rc = cn_err_set(err, CN_EINVALID,
                        "the scheme \"%.20s\" cannot be fetched, only http and https can",
                        scheme ? scheme : "");
    else if (!host || !port)
        rc = cn_err_set(err, CN_EINVALID, "the URL has no host");
    if (rc < 0)
        goto free_url;
    *origin = cn_sprintf("%s://%.255s:%s", scheme, host, port);
    *url = made;
    made = NULL; /* the caller's now */
free_url:
    curl_url_cleanup(made);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    return rc;
}
