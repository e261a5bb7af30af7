/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/http_rig.h - the real HTTP server and raw clients of it, on one loop.
 *
 * Nothing sleeps: rig_until() runs the loop until a condition holds and fails the
 * test if that takes more than ten seconds. */
#ifndef CN_TEST_HTTP_RIG_H
#define CN_TEST_HTTP_RIG_H
#include <uv.h>

#include "base/buf.h"
#include "net/server.h"
#include "test/lib/test.h"

struct rig {
    uv_loop_t loop;
    struct cn_http_server *server;
    uint16_t port;
    bool drained, closed;
    /* What the built-in handler has seen. */
    unsigned request_count, abort_count;
    int abort_status;
    struct cn_http_request *held; /* the last request that a test's handler kept */
    struct cn_buf body;           /* bytes that rig_read_all() has read */
    int read_status;              /* last status of a read; 99 before any */
    unsigned read_count;          /* results of reads, direct or by callback */
    void (*on_abort)(struct cn_http_server *server, struct cn_http_request *req, int status);
    uint64_t clock_ms; /* for tests that move the server's clock */
    void *extra;       /* a test's own */
};

typedef void (*rig_handler)(struct rig *rig, struct cn_http_request *req);

/* `options` may be NULL; its callbacks and data are set here. NULL handler: answers with the
 * target as the body. */
void rig_open(struct rig *rig, rig_handler handler, const struct cn_http_server_options *options);
void rig_close(struct rig *rig); /* checks that nothing is left on the loop */
void rig_drain(struct rig *rig); /* sets rig->drained when done */

/* A handler for tests: keeps the request in rig->held. */
void rig_hold(struct rig *rig, struct cn_http_request *req);
/* Reads the whole body, then answers with it. */
void rig_echo(struct rig *rig, struct cn_http_request *req);
/* Reads on until the end into rig->body, without answering. */
void rig_read_all(struct cn_http_request *req);
int rig_answer(struct cn_http_request *req, int status, const char *body); /* and releases */

struct rig_client {
    struct rig *rig;
    int fd;
    uv_poll_t poll;
    struct cn_buf got;
    bool ended; /* end of file or error */
    bool reset; /* it was ECONNRESET */
    bool paused;
    bool closed;
};
void rig_connect(struct rig *rig, struct rig_client *client);
/* Connects with a receive buffer of about this size. */
void rig_connect_small(struct rig *rig, struct rig_client *client, int receive_bytes);
void rig_disconnect(struct rig_client *client);
void rig_send(struct rig_client *client, const char *text);
/* Returns how much the socket took. */
size_t rig_send_some(struct rig_client *client, const void *bytes, size_t size);
void rig_pause(struct rig_client *client, bool paused); /* stop or go on reading */

/* What was received, NUL-terminated. */
const char *rig_got(struct rig_client *client);
unsigned rig_count(struct rig_client *client, const char *part); /* occurrences in it */
bool rig_has(struct rig_client *client, const char *part);

/* Sends, waits until the server closes, returns what came. */
const char *rig_exchange(struct rig *rig, struct rig_client *client, const char *text);

void rig_turn(struct rig *rig); /* one iteration of the loop, without waiting */
void rig_guard_start(struct rig *rig);
bool rig_guard_wait(struct rig *rig); /* one iteration, waiting; false when time is up */
#define RIG_UNTIL(rig, condition)                                                       \
    do {                                                                                \
        rig_guard_start(rig);                                                           \
        while (!(condition))                                                            \
            if (!rig_guard_wait(rig))                                                   \
                test_fail(__FILE__, __LINE__, "timed out waiting for: %s", #condition); \
    } while (0)

#endif
