/* SPDX-License-Identifier: Apache-2.0 */
/* assets/http.c - static assets straight to the client, without JavaScript.
 *
 * Bytes in memory go out as they are. A file on disk is read in pieces on the thread pool, one
 * piece ahead of the client at most:
 *
 *     open ──► begin ──► read ──► write ──► read ... ──► end
 *                          ▲        └ queue full: wait for drain
 *
 * Threads: the lane's. Ownership: a transfer belongs to itself and goes when its request and its
 * read are both over. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "assets/assets.h"
#include "base/assert.h"
#include "base/mem.h"
#include "net/server.h"

#define PIECE_SIZE (128u << 10)

struct transfer {
    uv_fs_t request;
    struct cn_http_request *http; /* NULL: over */
    struct cn_assets *assets;     /* a reference */
    uv_loop_t *loop;
    int fd;
    uint64_t offset, left;
    uint8_t *piece; /* being read into; owned */
    bool reading;
};

static void free_transfer(struct transfer *transfer)
{
    if (transfer->http || transfer->reading)
        return;
    close(transfer->fd);
    cn_assets_unref(transfer->assets);
    cn_free(transfer);
}

/* The request is answered, or cannot be: released. */
static void end_transfer(struct transfer *transfer)
{
    struct cn_http_request *http = transfer->http;
    transfer->http = NULL;
    cn_http_request_release(http);
    free_transfer(transfer);
}

static void on_abort(struct cn_http_request *http, int status)
{
    (void)status;
    end_transfer(http->data);
}

static void read_next(struct transfer *transfer);

static void on_drain(struct cn_http_request *http)
{
    read_next(http->data);
}

static void on_read(uv_fs_t *request)
{
    struct transfer *transfer = CN_CONTAINER_OF(request, struct transfer, request);
    ssize_t size = request->result;
    uint8_t *piece = transfer->piece;
    uv_fs_req_cleanup(request);
    transfer->reading = false;
    transfer->piece = NULL;
    if (!transfer->http) {
        cn_free(piece);
        free_transfer(transfer);
        return;
    }
    if (size <= 0) { /* unreadable, or shorter than it was: the client must see that it is cut */
        cn_free(piece);
        cn_http_abort(transfer->http);
        end_transfer(transfer);
        return;
    }
    transfer->offset += (uint64_t)size;
    transfer->left -= (uint64_t)size;
    int rc = cn_http_write(transfer->http, piece, (size_t)size, cn_free, piece);
    if (rc < 0 || !transfer->left) {
        if (rc >= 0)
            (void)cn_http_end(transfer->http); /* all bytes were written */
        else
            cn_http_abort(transfer->http);
        end_transfer(transfer);
    } else if (rc == 0) {
        cn_http_on_drain(transfer->http, on_drain);
    } else {
        read_next(transfer);
    }
}

static void read_next(struct transfer *transfer)
{
    size_t size = transfer->left < PIECE_SIZE ? (size_t)transfer->left : PIECE_SIZE;
    transfer->piece = cn_alloc(size);
    transfer->reading = true;
    uv_buf_t buf = uv_buf_init((char *)transfer->piece, (unsigned)size);
    int rc = uv_fs_read(transfer->loop, &transfer->request, transfer->fd, &buf, 1,
                        (int64_t)transfer->offset, on_read);
    CN_ASSERT(rc == 0); /* it only fails without a callback */
}

static void drop_header(struct cn_asset_answer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++) {
        if (strcmp(answer->headers[i].name, name) != 0)
            continue;
        answer->header_count--;
        memmove(&answer->headers[i], &answer->headers[i + 1],
                (answer->header_count - i) * sizeof(*answer->headers));
        return;
    }
}

/* A file that has changed since the deployment goes out whole, as it is now, without what was
 * computed from its former bytes (A2). */
void cn_asset_answer_changed(struct cn_asset_answer *answer, uint64_t size)
{
    drop_header(answer, "etag");
    drop_header(answer, "content-range");
    if (answer->status == 206)
        answer->status = 200;
    answer->offset = 0;
    answer->size = size;
}

static void respond_from_disk(uv_loop_t *loop, struct cn_assets *assets,
                              struct cn_http_request *http, struct cn_asset_answer *answer)
{
    bool same;
    uint64_t begin, size;
    int fd = cn_asset_open(assets, answer->asset, &same, &begin, &size);
    if (fd < 0) {
        struct cn_http_head gone = {404, NULL, 0, NULL};
        (void)cn_http_respond(http, &gone, NULL, 0, NULL, NULL); /* it was removed meanwhile */
        cn_http_request_release(http);
        return;
    }
    if (!same)
        cn_asset_answer_changed(answer, size);
    struct transfer *transfer = CN_NEW(struct transfer);
    *transfer = (struct transfer){.http = http,
                                  .assets = cn_assets_ref(assets),
                                  .loop = loop,
                                  .fd = fd,
                                  .offset = begin + answer->offset,
                                  .left = answer->size};
    http->data = transfer;
    http->on_abort = on_abort;
    struct cn_http_head head = {answer->status, answer->headers, answer->header_count, NULL};
    int rc = cn_http_begin(http, &head, (int64_t)answer->size);
    if (rc < 0 || !answer->size) {
        if (rc == 0)
            (void)cn_http_end(http); /* empty */
        end_transfer(transfer);
    } else {
        read_next(transfer);
    }
}

static void release_assets(void *assets)
{
    cn_assets_unref(assets);
}

static void respond(uv_loop_t *loop, struct cn_assets *assets, struct cn_http_request *http,
                    struct cn_asset_answer *answer)
{
    const struct cn_asset *asset = answer->asset;
    if (asset && !asset->bytes && http->method != CN_HTTP_HEAD) {
        respond_from_disk(loop, assets, http, answer);
        return;
    }
    char length[24];
    struct cn_http_header *headers =
        cn_alloc((answer->header_count + 1) * sizeof(*headers)); /* one for HEAD's length */
    size_t count = answer->header_count;
    if (count)
        memcpy(headers, answer->headers, count * sizeof(*headers));
    if (http->method == CN_HTTP_HEAD) {
        int size = snprintf(length, sizeof(length), "%llu", (unsigned long long)answer->size);
        headers[count++] = (struct cn_http_header){"content-length", length, 14, (uint32_t)size};
        asset = NULL;
    }
    struct cn_http_head head = {answer->status, headers, count, NULL};
    /* If the client is gone there is nobody to tell. */
    if (asset)
        (void)cn_http_respond(http, &head, asset->bytes + answer->offset, (size_t)answer->size,
                              release_assets, cn_assets_ref(assets));
    else
        (void)cn_http_respond(http, &head, NULL, 0, NULL, NULL);
    cn_free(headers);
    cn_http_request_release(http);
}

static struct cn_http_text find_header(void *data, const char *lower_name)
{
    const struct cn_http_header *header = cn_http_request_find(data, lower_name);
    return header ? (struct cn_http_text){header->value, header->value_size}
                  : (struct cn_http_text){0};
}

bool cn_assets_respond(struct cn_assets *assets, bool alone, uv_loop_t *loop,
                       struct cn_http_request *http)
{
    const char *mark = memchr(http->target.data, '?', http->target.size);
    size_t path_size = mark ? (size_t)(mark - http->target.data) : http->target.size;
    if (cn_assets_prefer_worker(assets, http->target.data, path_size))
        return false;
    /* Rules know hosts without their port. */
    const char *colon = memchr(http->host.data, ':', http->host.size);
    struct cn_asset_request request = {
        .method = http->method_text,
        .host = {http->host.data, colon ? (size_t)(colon - http->host.data) : http->host.size},
        .target = http->target,
        .header = find_header,
        .data = http,
    };
    struct cn_asset_answer answer;
    bool answered = cn_assets_answer(assets, &request, &answer);
    if (!answered && !alone)
        return false;
    if (!answered)
        answer.status = 404;
    respond(loop, assets, http, &answer);
    cn_asset_answer_fini(&answer);
    return true;
}
