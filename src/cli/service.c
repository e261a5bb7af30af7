/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"

#define FIRST_FD 3 /* where passed descriptors begin */

/* The number of descriptors passed to us; 0 if they are for another process. */
static long passed_count(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    long number =
        pid && count && strtol(pid, NULL, 10) == (long)getpid() ? strtol(count, NULL, 10) : 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return number;
}

static int option(int fd, int name)
{
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

int cn_service_socket(int *fd, char **host, uint16_t *port, struct cn_err *err)
{
    *fd = -1;
    long count = passed_count();
    if (count <= 0)
        return 0;
    if (count > 1)
        return cn_err_set(err, CN_EINVALID,
                          "the service manager passed %ld sockets: one is taken, for requests",
                          count);
    int domain = option(FIRST_FD, SO_DOMAIN);
    if ((domain != AF_INET && domain != AF_INET6) || option(FIRST_FD, SO_TYPE) != SOCK_STREAM ||
        option(FIRST_FD, SO_ACCEPTCONN) != 1)
        return cn_err_set(err, CN_EINVALID,
                          "what the service manager passed is no listening TCP socket");
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t size = sizeof(address);
    char text[INET6_ADDRSTRLEN] = "";
    if (getsockname(FIRST_FD, &address.any, &size) < 0 ||
        fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(FIRST_FD, F_SETFL, O_NONBLOCK) < 0)
        return cn_err_errno(err, errno, "the socket of the service manager");
    bool is_v4 = domain == AF_INET;
    inet_ntop(domain, is_v4 ? (void *)&address.v4.sin_addr : (void *)&address.v6.sin6_addr, text,
              sizeof(text));
    *host = cn_strdup(text);
    *port = ntohs(is_v4 ? address.v4.sin_port : address.v6.sin6_port);
    *fd = FIRST_FD;
    return 0;
}

void cn_service_tell(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = path ? strlen(path) : 0;
    if (size < 2 || size >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, size);
    if (path[0] == '@')
        address.sun_path[0] = 0; /* a name without a file */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    if (fd < 0 ||
        sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, length) < 0)
        cn_warn("the service manager cannot be told \"%s\": %s", state, strerror(errno));
    if (fd >= 0)
        close(fd);
}

void cn_service_tell_reloading(void)
{
    struct timespec now;
    char text[64];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    cn_service_tell(text);
}
