/* SPDX-License-Identifier: Apache-2.0 */
#include "net/redirect.h"

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/mem.h"

bool cn_redirect_is(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

static bool part_equal(CURLU *a, CURLU *b, CURLUPart part)
{
    char *left = NULL, *right = NULL;
    bool equal = curl_url_get(a, part, &left, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                 curl_url_get(b, part, &right, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                 strcasecmp(left, right) == 0;
    curl_free(left);
    curl_free(right);
    return equal;
}

static bool same_origin(CURLU *a, CURLU *b)
{
    return part_equal(a, b, CURLUPART_SCHEME) && part_equal(a, b, CURLUPART_HOST) &&
           part_equal(a, b, CURLUPART_PORT);
}

static bool is_http(CURLU *url)
{
    char *scheme = NULL;
    bool is = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              (strcasecmp(scheme, "http") == 0 || strcasecmp(scheme, "https") == 0);
    curl_free(scheme);
    return is;
}

/* Reads `location` as seen from `from`. NULL: it cannot be, or is no address of HTTP. */
static char *resolve(CURLU *from, CURLU *to, const char *url, const char *location)
{
    char *whole = NULL, *copy = NULL;
    if (curl_url_set(from, CURLUPART_URL, url, CURLU_URLENCODE) == CURLUE_OK &&
        curl_url_set(to, CURLUPART_URL, url, CURLU_URLENCODE) == CURLUE_OK &&
        curl_url_set(to, CURLUPART_URL, location, CURLU_URLENCODE) == CURLUE_OK &&
        curl_url_set(to, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK && is_http(to) &&
        curl_url_get(to, CURLUPART_URL, &whole, 0) == CURLUE_OK)
        copy = cn_strdup(whole);
    curl_free(whole);
    return copy;
}

int cn_redirect_read(int status, const char *method, const char *url, const char *location,
                     struct cn_redirect *redirect, struct cn_err *err)
{
    CURLU *from = curl_url(), *to = curl_url();
    char *next = from && to ? resolve(from, to, url, location) : NULL;
    bool other = next && !same_origin(from, to);
    curl_url_cleanup(from);
    curl_url_cleanup(to);
    if (!next)
        return cn_err_set(err, CN_EINVALID,
                          "The redirect leads to something that is no HTTP address: %.200s",
                          location);
    bool is_post = strcmp(method, "POST") == 0;
    bool is_plain = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    *redirect = (struct cn_redirect){.url = next,
                                     .becomes_get = ((status == 301 || status == 302) && is_post) ||
                                                    (status == 303 && !is_plain),
                                     .other_origin = other};
    return 0;
}

static bool is_among(const char *name, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

bool cn_redirect_keeps(const struct cn_redirect *redirect, const char *name)
{
    static const char *const body[] = {"content-encoding", "content-language", "content-location",
                                       "content-type", "content-length"};
    static const char *const origin[] = {"authorization", "proxy-authorization", "cookie"};
    return !(redirect->becomes_get && is_among(name, body, CN_ARRAY_COUNT(body))) &&
           !(redirect->other_origin && is_among(name, origin, CN_ARRAY_COUNT(origin)));
}
