/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/seen.h - the owner of an outgoing request, who writes down what he sees. */
#ifndef CN_TEST_SEEN_H
#define CN_TEST_SEEN_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "net/client.h"

/* One request, as its owner saw it. */
struct seen {
    struct cn_client *client;
    struct cn_client_request *request;
    int status, http_version;
    unsigned head_count, done_count;
    char reason[64];
    struct cn_buf headers; /* "name=value\n" each */
    struct cn_buf body;
    unsigned body_calls;
    struct cn_err error;
    bool head_seen, body_seen, done, wanted;
    bool pause_at_head, pause_at_body, abort_at_head, abort_at_body, discard_at_head;
    struct seen *again; /* a request to start from inside on_head, to again_url */
    const char *again_url;
    /* upload script: `upload_left` bytes in pieces of upload_piece */
    size_t upload_left, upload_piece;
    bool upload_hold; /* do not answer on_want */
};

extern const struct cn_client_callbacks seen_callbacks;

/* Starts it (method GET unless given); fails the test if the client refuses. */
void seen_start(struct seen *seen, struct cn_client *client, struct cn_client_params params);
const char *seen_body(struct seen *seen); /* as text */
/* Checks that on_done came exactly once. */
void seen_fini(struct seen *seen);

#endif
