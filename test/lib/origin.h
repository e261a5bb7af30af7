/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/origin.h - a scripted TCP or TLS server on the test's own loop.
 *
 * The test says in `on_data` what happens when bytes arrive; everything is there
 * to be done wrong on purpose: cut answers, resets, silence. */
#ifndef CN_TEST_ORIGIN_H
#define CN_TEST_ORIGIN_H
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"

struct ssl_st;
struct ssl_ctx_st;
struct origin;

struct origin_conn {
    struct origin *origin;
    uv_tcp_t tcp;
    struct cn_list link;
    struct cn_buf in;   /* received so far; the script clears what it used */
    struct ssl_st *ssl; /* NULL: plain */
    bool handshake_done;
    bool ended; /* the peer sent its FIN */
    bool closing;
    int step;      /* for the script's use */
    size_t unsent; /* bytes given to origin_write() that the kernel has not taken */
};

struct origin {
    uv_loop_t *loop;
    uv_tcp_t listener;
    int port;
    struct ssl_ctx_st *tls; /* NULL: plain */
    struct cn_list conns;
    unsigned conn_count; /* accepted so far */
    unsigned open_count;
    bool listener_closed;
    void (*on_connect)(struct origin_conn *conn); /* may be NULL */
    void (*on_data)(struct origin_conn *conn);    /* also at the peer's FIN */
    void *data;                                   /* the script's */
};

void origin_start(struct origin *origin, uv_loop_t *loop, void (*on_data)(struct origin_conn *));
/* Before origin_start(): speak TLS with a fresh self-signed certificate for "localhost" and
 * 127.0.0.1, which is written to `pem_path`. `alpn` (one protocol) may be NULL. */
void origin_use_tls(struct origin *origin, const char *pem_path, const char *alpn);
/* A fresh self-signed certificate like that, and its key, as PEM files. */
void origin_write_cert(const char *cert_path, const char *key_path);
/* Closes everything and runs the loop until that is done. */
void origin_stop(struct origin *origin);

void origin_write(struct origin_conn *conn, const void *bytes, size_t size);
void origin_print(struct origin_conn *conn, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void origin_starttls(struct origin_conn *conn);     /* the next bytes are a handshake */
void origin_shutdown(struct origin_conn *conn);     /* FIN after what was written */
void origin_shutdown_tcp(struct origin_conn *conn); /* the same, without ending TLS first */
void origin_close(struct origin_conn *conn);
void origin_reset(struct origin_conn *conn); /* RST */

/* Takes one whole HTTP request off conn->in: true, with its head in `head` and its
 * body (chunks joined) in `body`; false: not there yet. Frees nothing: zeroed or
 * reused buffers are cleared first. */
bool origin_take_request(struct origin_conn *conn, struct cn_buf *head, struct cn_buf *body);

/* Runs the loop until *flag, and fails the test after `timeout_ms`. */
void loop_until(uv_loop_t *loop, const bool *flag, unsigned timeout_ms, const char *file, int line);
/* Lets the loop run for a while, to see that something does not happen. */
void loop_linger(uv_loop_t *loop, unsigned ms);
#define LOOP_UNTIL(loop, flag) loop_until(loop, flag, 30000, __FILE__, __LINE__)

#endif
