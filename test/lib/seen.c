/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/seen.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "test/lib/test.h"

static void on_head(struct cn_client_request *request, const struct cn_client_head *head,
                    void *data)
{
    struct seen *seen = data;
    CHECK_INT(0, seen->head_count++);
    seen->head_seen = true;
    seen->status = head->status;
    seen->http_version = head->http_version;
    snprintf(seen->reason, sizeof(seen->reason), "%s", head->reason);
    for (size_t i = 0; i < head->header_count; i++) {
        const struct cn_client_header *header = &head->headers[i];
        CHECK_INT(strlen(header->name), header->name_length);
        CHECK_INT(strlen(header->value), header->value_length);
        cn_buf_printf(&seen->headers, "%s=%s\n", header->name, header->value);
    }
    if (seen->abort_at_head)
        cn_client_abort(request);
    if (seen->discard_at_head)
        cn_client_discard(request);
    if (seen->pause_at_head)
        cn_client_pause(request);
    if (seen->again)
        seen_start(seen->again, seen->client, (struct cn_client_params){.url = seen->again_url});
}

static void on_body(struct cn_client_request *request, const void *bytes, size_t size, void *data)
{
    struct seen *seen = data;
    CHECK(!seen->done);
    cn_buf_append(&seen->body, bytes, size);
    seen->body_calls++;
    seen->body_seen = true;
    if (seen->abort_at_body)
        cn_client_abort(request);
    if (seen->pause_at_body)
        cn_client_pause(request);
}

static void on_want(struct cn_client_request *request, void *data)
{
    struct seen *seen = data;
    seen->wanted = true;
    if (seen->upload_hold)
        return;
    size_t size = seen->upload_left < seen->upload_piece ? seen->upload_left : seen->upload_piece;
    char *bytes = cn_alloc(size + 1);
    memset(bytes, 'u', size);
    CHECK_INT(0, cn_client_write(request, bytes, size, NULL));
    cn_free(bytes);
    seen->upload_left -= size;
    if (seen->upload_left == 0)
        cn_client_end(request);
}

static void on_done(struct cn_client_request *request, const struct cn_err *error, void *data)
{
    struct seen *seen = data;
    seen->done_count++;
    seen->done = true;
    if (error)
        seen->error = *error;
}

const struct cn_client_callbacks seen_callbacks = {on_head, on_body, on_want, on_done};

void seen_start(struct seen *seen, struct cn_client *client, struct cn_client_params params)
{
    struct cn_err err = {0};
    if (!params.method)
        params.method = "GET";
    seen->client = client;
    seen->request = cn_client_fetch(client, &params, &seen_callbacks, seen, &err);
    if (!seen->request)
        test_fail(__FILE__, __LINE__, "fetch refused: %s", err.text);
}

const char *seen_body(struct seen *seen)
{
    return cn_buf_text(&seen->body);
}

void seen_fini(struct seen *seen)
{
    CHECK_INT(1, seen->done_count);
    cn_buf_fini(&seen->headers);
    cn_buf_fini(&seen->body);
}
