/* SPDX-License-Identifier: Apache-2.0 */
#include "net/caller.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"

#define CONNECT_TIMEOUT_MS 30000
#define FIELDS_MAX (64u << 10)
#define TIMEOUT_MS (30 * 60 * 1000) /* a deployment is built before it is answered */

struct sink {
    struct cn_buf *answer, *fields;
    size_t left;
    CURL *easy;
    int file;
};

static size_t write_all(int file, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = write(file, bytes + done, size - done);
        if (count < 0 && errno != EINTR)
            return 0;
        done += count > 0 ? (size_t)count : 0;
    }
    return size;
}

static size_t on_field(char *bytes, size_t one, size_t size, void *data)
{
    struct sink *sink = data;
    (void)one; /* always 1 */
    if (sink->fields->size + size > FIELDS_MAX)
        return 0;
    cn_buf_append(sink->fields, bytes, size);
    return size;
}

static size_t on_bytes(char *bytes, size_t one, size_t size, void *data)
{
    struct sink *sink = data;
    (void)one; /* always 1 */
    long status = 0;
    if (sink->file)
        curl_easy_getinfo(sink->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status == 200)
        return write_all(sink->file, bytes, size);
    if (size > sink->left || !cn_buf_try_append(sink->answer, bytes, size))
        return 0; /* K2: ends the transfer */
    sink->left -= size;
    return size;
}

static struct curl_slist *make_fields(const struct cn_caller_request *request)
{
    struct curl_slist *fields = NULL;
    if (request->token) {
        char *line = cn_sprintf("Authorization: Bearer %s", request->token);
        fields = curl_slist_append(fields, line);
        cn_free(line);
    }
    if (request->content_type) {
        char *line = cn_sprintf("Content-Type: %s", request->content_type);
        fields = curl_slist_append(fields, line);
        cn_free(line);
    }
    if (request->s3_keys)
        fields = curl_slist_append(fields, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
    return curl_slist_append(fields, "Expect:"); /* the body goes at once */
}

static void set_up(CURL *easy, const struct cn_caller_request *request, struct curl_slist *fields,
                   struct sink *sink)
{
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "cairn/" CN_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, sink);
    if (request->socket)
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->socket);
    if (request->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
    if (request->s3_keys) {
        curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, "aws:amz:auto:s3");
        curl_easy_setopt(easy, CURLOPT_USERPWD, request->s3_keys);
    }
    if (request->fields) {
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_field);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, sink);
    }
    if (!request->content_type)
        return;
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body ? request->body : "");
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_size);
}

int cn_caller_ask(const struct cn_caller_request *request, struct cn_buf *answer,
                  struct cn_err *err)
{
    CN_ASSERT(request->method && request->url);
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;
    CURL *easy = curl_easy_init();
    struct sink sink = {answer, request->fields, request->answer_max, easy, request->file};
    if (!easy)
        return cn_err_set(err, CN_ENOMEM, "no request can be made");
    struct curl_slist *fields = make_fields(request);
    set_up(easy, request, fields, &sink);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(fields);
    curl_easy_cleanup(easy);
    if (code == CURLE_OK)
        return (int)status;
    if (code == CURLE_WRITE_ERROR)
        return cn_err_set(err, CN_ELIMIT, "%s: the answer is larger than %zu bytes", request->url,
                          request->answer_max);
    return cn_err_set(err, code == CURLE_OPERATION_TIMEDOUT ? CN_ETIMEOUT : CN_ECLOSED, "%s: %s",
                      request->url, *why ? why : curl_easy_strerror(code));
}
