/* SPDX-License-Identifier: Apache-2.0 */
#include "server/systemd.h"

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
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"

#define FIRST_FD 3 /* where passed descriptors begin */
#define PASSED_MAX 1024
#define RESTART_VARIABLE "CAIRN_LISTEN_FDS"

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

/* Takes a passed descriptor; its address the first time. */
static int take_socket(int fd, char **host, uint16_t *port, struct cn_err *err)
{
    int domain = option(fd, SO_DOMAIN);
    if ((domain != AF_INET && domain != AF_INET6) || option(fd, SO_TYPE) != SOCK_STREAM ||
        option(fd, SO_ACCEPTCONN) != 1)
        return cn_err_set(err, CN_EINVALID, "what was passed is no listening TCP socket");
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t size = sizeof(address);
    char text[INET6_ADDRSTRLEN] = "";
    if (getsockname(fd, &address.any, &size) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
        return cn_err_errno(err, errno, "the passed socket");
    if (*host)
        return 0;
    bool is_v4 = domain == AF_INET;
    inet_ntop(domain, is_v4 ? (void *)&address.v4.sin_addr : (void *)&address.v6.sin6_addr, text,
              sizeof(text));
    *host = cn_strdup(text);
    *port = ntohs(is_v4 ? address.v4.sin_port : address.v6.sin6_port);
    return 0;
}

/* "PID:7,8": what cn_systemd_restart() wrote. The number of descriptors. */
static size_t passed_by_us(int *fds, size_t max)
{
    char *text = getenv(RESTART_VARIABLE), *end;
    size_t count = 0;
    if (text && strtol(text, &end, 10) == (long)getpid() && *end == ':') {
        while (count < max && (*end == ':' || *end == ','))
            fds[count++] = (int)strtol(end + 1, &end, 10);
    }
    unsetenv(RESTART_VARIABLE);
    return count;
}

int cn_systemd_sockets(int **fds, size_t *count, char **host, uint16_t *port, struct cn_err *err)
{
    int passed[PASSED_MAX];
    long by_manager = passed_count();
    *fds = NULL;
    *count = 0;
    *host = NULL;
    if (by_manager > 1)
        return cn_err_set(err, CN_EINVALID,
                          "the service manager passed %ld sockets: one is taken, for requests",
                          by_manager);
    size_t found = passed_by_us(passed, PASSED_MAX);
    if (!found && by_manager > 0) {
        passed[0] = FIRST_FD;
        found = 1;
    }
    for (size_t i = 0; i < found; i++) {
        int rc = take_socket(passed[i], host, port, err);
        if (rc < 0) {
            cn_free(*host);
            *host = NULL;
            return rc;
        }
    }
    if (found)
        *fds = cn_memdup(passed, found * sizeof(*passed));
    *count = found;
    return 0;
}

/* The arguments of this process, as it was given them. NULL: they cannot be read. */
static char **own_arguments(void)
{
    struct cn_buf text = {0};
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    char part[4096];
    ssize_t got;
    while (fd >= 0 && (got = read(fd, part, sizeof(part))) > 0)
        cn_buf_append(&text, part, (size_t)got);
    if (fd >= 0)
        close(fd);
    if (!text.size)
        return NULL;
    cn_buf_append(&text, "", 1);
    size_t count = 0;
    char **arguments = cn_alloc_zero((text.size + 1) * sizeof(*arguments));
    for (size_t at = 0; at + 1 < text.size; at += strlen((char *)text.data + at) + 1)
        arguments[count++] = (char *)text.data + at;
    return arguments;
}

int cn_systemd_restart(const int *fds, size_t count, struct cn_err *err)
{
    struct cn_buf text = {0};
    char **arguments = own_arguments();
    if (!arguments)
        return cn_err_errno(err, errno, "/proc/self/cmdline");
    cn_buf_printf(&text, "%ld", (long)getpid());
    for (size_t i = 0; i < count; i++) {
        (void)fcntl(fds[i], F_SETFD, 0); /* open in the next one */
        cn_buf_printf(&text, "%c%d", i ? ',' : ':', fds[i]);
    }
    setenv(RESTART_VARIABLE, cn_buf_text(&text), 1);
    execv("/proc/self/exe", arguments);
    return cn_err_errno(err, errno, "execv");
}

/* The socket of cn_systemd_keep(), of the process as NOTIFY_SOCKET is; -1: none. */
static int kept = -1;

/* A socket that is connected to the manager; -1: there is none, or errno says why not. */
static int connect_manager(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = path ? strlen(path) : 0;
    errno = 0;
    if (size < 2 || size >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return -1;
    memcpy(address.sun_path, path, size);
    if (path[0] == '@')
        address.sun_path[0] = 0; /* a name without a file */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, length) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

void cn_systemd_keep(void)
{
    kept = connect_manager();
}

void cn_systemd_tell(const char *state)
{
    int fd = kept >= 0 ? kept : connect_manager();
    if (fd >= 0 ? send(fd, state, strlen(state), MSG_NOSIGNAL) < 0 : errno != 0)
        cn_warn("the service manager cannot be told \"%s\": %s", state, strerror(errno));
    if (fd >= 0 && fd != kept)
        close(fd);
}

void cn_systemd_tell_reloading(void)
{
    struct timespec now;
    char text[64];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    cn_systemd_tell(text);
}

bool cn_systemd_has_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM"); /* "DEVICE:INODE" */
    unsigned long device, inode;
    struct stat info;
    return stream && sscanf(stream, "%lu:%lu", &device, &inode) == 2 && fstat(fd, &info) == 0 &&
           info.st_dev == device && info.st_ino == inode;
}
