/* SPDX-License-Identifier: Apache-2.0 */
#include "test/cluster/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void address(struct sockaddr_un *to, const char *where, unsigned who)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(to->sun_path, sizeof(to->sun_path), "%s/%u.sock", where, who);
}

int wire_open(const char *where, unsigned who)
{
    struct sockaddr_un own;
    int size = 4 << 20, socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address(&own, where, who);
    unlink(own.sun_path);
    setsockopt(socket_fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    if (socket_fd < 0 || bind(socket_fd, (struct sockaddr *)&own, sizeof(own)) < 0) {
        perror(own.sun_path);
        exit(2);
    }
    return socket_fd;
}

void wire_send(int socket_fd, const char *where, unsigned to, const struct wire *wire)
{
    struct sockaddr_un other;
    address(&other, where, to);
    size_t size = offsetof(struct wire, records) + wire->count * sizeof(wire->records[0]);
    (void)!sendto(socket_fd, wire, size, 0, (struct sockaddr *)&other, sizeof(other));
}

bool wire_receive(int socket_fd, struct wire *wire)
{
    ssize_t size = recv(socket_fd, wire, sizeof(*wire), 0);
    return size >= (ssize_t)offsetof(struct wire, records);
}
