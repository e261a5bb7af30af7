/* SPDX-License-Identifier: Apache-2.0 */
/* net/client.h - outgoing HTTP for fetch(): HTTP/1.1 and HTTP/2, TLS, pooled connections.
 *
 * One client per lane. A request streams both ways with back-pressure:
 *
 *     cn_client_fetch() --> on_want* --> on_head --> on_body* --> on_done
 *                           (upload)     (once)      (download)   (always, once)
 *
 * C1  Callbacks run from the loop, never from inside a function of this header.
 * C2  on_done is the last callback and comes exactly once for every request that
 *     cn_client_fetch() accepted, also after an abort and when the client closes.
 *     The request is valid until on_done returns.
 * C3  After cn_client_abort() only on_done follows.
 * C4  While a request is paused no on_body comes; at most one transport buffer
 *     (16 KiB; HTTP/2: what the origin had in flight) waits meanwhile.
 * C5  Any function of this header may be called from inside any callback.
 *
 * What it does not do, on purpose: it follows no redirects (the Fetch standard's
 * algorithm lives above; use cn_client_discard() on the answer that redirects so
 * that its connection can be used again), keeps no cookies and no cache, reads no
 * proxy settings and no .netrc, and speaks no scheme but http and https. It adds no
 * header but Host and those that frame the body; everything else is the caller's.
 *
 * Content codings: the hosted platform gives a script the decoded body and leaves
 * `content-encoding` in the headers, and passes an untouched body on as it came.
 * So headers are always delivered as received, and whether the body is decoded can
 * be decided as late as in on_head (cn_client_set_decode), or later if on_head pauses.
 *
 * WebSocket clients do not come through here: net/ws_client.h.
 *
 * Threads:   the loop's.
 * Ownership: everything given to cn_client_fetch() is copied before it returns, the
 *            callback table excepted, which must outlive the request. Chunks and
 *            heads are borrowed for the length of the callback. */
#ifndef CN_NET_CLIENT_H
#define CN_NET_CLIENT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"

struct sockaddr;
struct cn_client;
struct cn_client_request; /* one fetch in progress */
struct cn_trust;
struct cn_holding;

/* Zero in a number means the default in brackets. */
struct cn_client_options {
    struct cn_trust *trust;        /* which certificates are believed; borrowed; not NULL */
    unsigned connections_max;      /* in total, busy and idle [256] */
    unsigned connections_host_max; /* to one host and port [64] */
    unsigned requests_max;         /* running and waiting for a connection [4096] */
    size_t head_size_max;          /* response status and headers [128 KiB] */
    unsigned connect_timeout_ms;   /* name, TCP and TLS together [30 s] */
    unsigned head_timeout_ms;      /* without progress until the head is there [100 s] */
    unsigned idle_timeout_ms;      /* without a byte of body while one is wanted [300 s] */
    /* May this address be connected to? Asked for every new connection, after the
     * name was resolved. NULL: every address may. */
    bool (*address_allowed)(const struct sockaddr *address, void *data);
    void *address_data;
};

struct cn_client_header {
    const char *name, *value; /* NUL-terminated when they come from the client */
    size_t name_length, value_length;
};

enum cn_client_body {
    CN_CLIENT_BODY_NONE,
    CN_CLIENT_BODY_BYTES,  /* `body`, `body_size` */
    CN_CLIENT_BODY_STREAM, /* cn_client_write() and cn_client_end() */
};

#define CN_CLIENT_LENGTH_UNKNOWN UINT64_MAX

struct cn_client_params {
    const char *method; /* as it goes over the wire, for example "GET" */
    const char *url;    /* absolute, serialised by the URL standard; a fragment is ignored */
    /* Sent in this order. Those that frame the message (Content-Length,
     * Transfer-Encoding, Connection, Keep-Alive, Proxy-Connection, Upgrade, TE,
     * Trailer, HTTP2-Settings) are left out: the client writes its own. */
    const struct cn_client_header *headers;
    size_t header_count;
    enum cn_client_body body_kind;
    const void *body; /* BYTES */
    size_t body_size;
    uint64_t body_length; /* STREAM: its length, or CN_CLIENT_LENGTH_UNKNOWN */
    bool accept_encoding; /* send Accept-Encoding for what can be decoded, unless given */
    bool decode;          /* decode gzip, deflate, br and zstd; see cn_client_set_decode() */
    /* Asked for what the request holds: a body that waits, decoders. Borrowed until on_done, by
     * which all is given back; NULL: nobody is asked. */
    struct cn_holding *holding;
    unsigned connect_timeout_ms, head_timeout_ms, idle_timeout_ms; /* 0: the client's */
    unsigned total_timeout_ms;                                     /* 0: none */
};

struct cn_client_head {
    int status;                             /* 200 to 999; 1xx answers are not shown */
    const char *reason;                     /* "" in HTTP/2 */
    int http_version;                       /* 10, 11 or 20 */
    const struct cn_client_header *headers; /* as received: order, case, duplicates */
    size_t header_count;
};

struct cn_client_callbacks {
    void (*on_head)(struct cn_client_request *request, const struct cn_client_head *head,
                    void *data);
    void (*on_body)(struct cn_client_request *request, const void *bytes, size_t size, void *data);
    /* STREAM uploads: the buffer is empty, give more (now or later). May be NULL otherwise. */
    void (*on_want)(struct cn_client_request *request, void *data);
    /* NULL: the answer arrived whole. Otherwise what failed:
     *   UV_EAI_*       the name was not resolved     CN_ETIMEOUT   see the options
     *   UV_ECONNREFUSED, other UV_E*   connecting     CN_EABORTED   cn_client_abort()
     *   CN_ETLS        handshake or certificate      CN_ECLOSED    the client was closed
     *   CN_EPROTOCOL   malformed, truncated, reset   CN_ELIMIT     a head too large
     *   CN_EDENIED     address_allowed() said no     CN_EINVALID   an upload broke its length */
    void (*on_done)(struct cn_client_request *request, const struct cn_err *error, void *data);
};

struct cn_client *cn_client_new(uv_loop_t *loop, const struct cn_client_options *options);
/* Ends every request with CN_ECLOSED, closes the connections, frees the client, then
 * calls back. No function of this header may be called on it any more. */
void cn_client_close(struct cn_client *client, void (*cb)(void *data), void *data);

/* NULL on failure (CN_EINVALID: bad method, URL or header; CN_EOVERLOADED: requests_max),
 * with the reason in `err`; nothing is called then. */
struct cn_client_request *cn_client_fetch(struct cn_client *client,
                                          const struct cn_client_params *params,
                                          const struct cn_client_callbacks *callbacks, void *data,
                                          struct cn_err *err);
void cn_client_abort(struct cn_client_request *request); /* again: no effect */
/* The caller wants nothing more: what little is left of the body (64 KiB) is read and
 * thrown away so that the connection can be used again, else it is aborted. Only
 * on_done follows, with NULL or CN_EABORTED. Call it in on_head or later. */
void cn_client_discard(struct cn_client_request *request);

void cn_client_pause(struct cn_client_request *request);
void cn_client_resume(struct cn_client_request *request);
/* Before the first on_body: in on_head, or while paused since then. */
void cn_client_set_decode(struct cn_client_request *request, bool decode);

/* Appends to the upload; on_want comes when all of it has been taken.
 * CN_EOVERLOADED: 1 MiB waits already. CN_EINVALID: more than body_length, or ended.
 * CN_ECLOSED: the request is over and will not take the rest. */
int cn_client_write(struct cn_client_request *request, const void *bytes, size_t size,
                    struct cn_err *err);
/* No more follows. Ending before body_length fails the request. */
void cn_client_end(struct cn_client_request *request);

struct cn_client_stats {
    unsigned requests_running;
    uint64_t requests_total, connections_total, bytes_in, bytes_out;
};
/* W3 of base/loop.h */
void cn_client_check(const struct cn_client *client);
struct cn_client_stats cn_client_stats(const struct cn_client *client);

#endif
