/* SPDX-License-Identifier: Apache-2.0 */
#include "peer/dial.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/loop.h"
#include "base/mem.h"
#include "net/stream.h"
#include "net/tls.h"

enum { HOST_MAX = 255, UNANSWERED_MS = 10000 };

struct cn_dial {
    uv_loop_t *loop;
    struct cn_tls_context *tls;
    struct cn_dial_hooks hooks;
    unsigned turn;
    uv_getaddrinfo_t lookup;
    uv_connect_t connect;
    uv_tcp_t tcp;
    bool connecting, closing, over; /* over: `done` was called, or will not be */
};

static void dial_free(struct cn_dial *dial)
{
    struct cn_dial_hooks hooks = dial->hooks;
    cn_free(dial);
    hooks.gone(hooks.data); /* A2 */
}

static void on_closed(uv_handle_t *handle)
{
    dial_free(CN_CONTAINER_OF(handle, struct cn_dial, tcp));
}

static void close_socket(struct cn_dial *dial)
{
    if (!dial->closing)
        uv_close((uv_handle_t *)&dial->tcp, on_closed);
    dial->closing = true;
}

static void finish(struct cn_dial *dial, struct cn_stream_moved *moved, int status)
{
    dial->over = true;
    dial->hooks.done(dial->hooks.data, moved, status);
}

void cn_dial_drop(struct cn_dial *dial)
{
    cn_loop_assert_owner(dial->loop);
    CN_ASSERT(!dial->over);
    dial->over = true;
    if (dial->connecting)
        close_socket(dial);
    else
        (void)uv_cancel((uv_req_t *)&dial->lookup); /* its callback comes in any case */
}

/* What is sent and not acknowledged by the other machine ends the connection in time. */
static void set_options(struct cn_dial *dial, int fd)
{
    int ms = UNANSWERED_MS;
    (void)uv_tcp_nodelay(&dial->tcp, 1); /* as for those that are accepted */
    (void)uv_tcp_keepalive(&dial->tcp, 1, UNANSWERED_MS / 1000);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

static void on_connect(uv_connect_t *request, int status)
{
    struct cn_dial *dial = CN_CONTAINER_OF(request, struct cn_dial, connect);
    if (dial->over)
        return; /* on_closed() comes */
    uv_os_fd_t fd;
    struct cn_stream_moved moved = {.fd = -1};
    if (status == 0 && uv_fileno((uv_handle_t *)&dial->tcp, &fd) == 0) {
        set_options(dial, fd);
        moved.tls = cn_tls_new_keyed(dial->tls);
        moved.fd = moved.tls ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
        if (moved.fd < 0)
            cn_tls_free(moved.tls);
    }
    finish(dial, moved.fd < 0 ? NULL : &moved, status < 0 ? status : UV_EMFILE);
    close_socket(dial);
}

static void on_name(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct cn_dial *dial = CN_CONTAINER_OF(request, struct cn_dial, lookup);
    unsigned count = 0;
    const struct addrinfo *chosen = list;
    if (dial->over) {
        uv_freeaddrinfo(list);
        dial_free(dial);
        return;
    }
    for (const struct addrinfo *at = list; at && status == 0; at = at->ai_next)
        count++;
    for (unsigned i = count ? dial->turn % count : 0; i > 0; i--)
        chosen = chosen->ai_next;
    int rc = count ? uv_tcp_init(dial->loop, &dial->tcp) : status < 0 ? status : UV_EAI_NONAME;
    dial->connecting = rc == 0;
    if (rc == 0)
        rc = uv_tcp_connect(&dial->connect, &dial->tcp, chosen->ai_addr, on_connect);
    uv_freeaddrinfo(list);
    if (rc == 0)
        return;
    finish(dial, NULL, rc);
    if (dial->connecting)
        close_socket(dial);
    else
        dial_free(dial);
}

static bool split_address(const char *address, char *host, const char **port)
{
    const char *colon = strrchr(address, ':');
    size_t size = colon ? (size_t)(colon - address) : 0;
    if (!size || !colon[1])
        return false;
    if (address[0] == '[' && address[size - 1] == ']' && size > 2) {
        address++;
        size -= 2;
    }
    if (size > HOST_MAX)
        return false;
    memcpy(host, address, size);
    host[size] = 0;
    *port = colon + 1;
    return true;
}

struct cn_dial *cn_dial_new(uv_loop_t *loop, const char *address, unsigned turn,
                            struct cn_tls_context *tls, const struct cn_dial_hooks *hooks)
{
    cn_loop_assert_owner(loop);
    char host[HOST_MAX + 1];
    const char *port;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    if (!split_address(address, host, &port))
        return NULL;
    struct cn_dial *dial = CN_NEW(struct cn_dial);
    dial->loop = loop;
    dial->tls = tls;
    dial->hooks = *hooks;
    dial->turn = turn;
    if (uv_getaddrinfo(loop, &dial->lookup, on_name, host, port, &hints) == 0)
        return dial;
    cn_free(dial);
    return NULL;
}
