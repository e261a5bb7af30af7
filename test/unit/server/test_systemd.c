/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that were passed to this process, by a service manager or by itself before a restart, and
 * what the manager is told. */
#include "server/systemd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

#define RESTARTED "CAIRN_TEST_RESTARTED"

static int *fds;
static size_t count;
static char *host;
static uint16_t port;
static struct cn_err err;

static int take(void)
{
    err = (struct cn_err){0};
    int rc = cn_systemd_sockets(&fds, &count, &host, &port, &err);
    CHECK_INT(rc, err.code);
    CHECK(rc == 0 || (!fds && !count && !host));
    CHECK(!getenv("LISTEN_PID") && !getenv("LISTEN_FDS") && !getenv("LISTEN_FDNAMES"));
    CHECK(!getenv("CAIRN_LISTEN_FDS"));
    return rc;
}

static void done(void)
{
    cn_free(fds);
    cn_free(host);
}

static int listener(int domain, int type, bool listens, uint16_t *bound)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t size = domain == AF_INET ? sizeof(address.v4) : sizeof(address.v6);
    int fd = socket(domain, type, 0);
    CHECK(fd >= 0);
    address.any.sa_family = (sa_family_t)domain;
    if (domain == AF_INET)
        address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        address.v6.sin6_addr = in6addr_loopback;
    CHECK(bind(fd, &address.any, size) == 0);
    CHECK(!listens || listen(fd, 5) == 0);
    CHECK(getsockname(fd, &address.any, &size) == 0);
    *bound = ntohs(domain == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
    return fd;
}

/* "PID:7,8" */
static void pass(const char *variable, const char *format, int a, int b)
{
    char text[64], with_pid[96];
    snprintf(text, sizeof(text), format, a, b);
    snprintf(with_pid, sizeof(with_pid), "%ld%s", (long)getpid(), text);
    CHECK(setenv(variable, with_pid, 1) == 0);
}

TEST(systemd, without_a_manager_nothing_was_passed)
{
    CHECK_INT(0, take());
    CHECK(!fds && !count && !host);
    /* What is for another process is not taken, and is not left for children either. */
    setenv("LISTEN_PID", "1", 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "x", 1);
    setenv("CAIRN_LISTEN_FDS", "1:0", 1);
    CHECK_INT(0, take());
    CHECK(!fds && !count && !host);
}

TEST(systemd, sockets_of_a_process_before_are_taken_with_their_address)
{
    uint16_t first, second;
    int a = listener(AF_INET, SOCK_STREAM, true, &first);
    int b = listener(AF_INET, SOCK_STREAM, true, &second);
    pass("CAIRN_LISTEN_FDS", ":%d,%d", a, b);
    CHECK_INT(0, take());
    CHECK_INT(2, count);
    CHECK(fds[0] == a && fds[1] == b);
    CHECK_STR("127.0.0.1", host);
    CHECK_INT(first, port);
    CHECK(fcntl(a, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(b, F_GETFL) & O_NONBLOCK);
    done();
    CHECK_INT(0, take()); /* once */
    CHECK(!fds);
    close(a);
    close(b);
}

TEST(systemd, an_address_of_six_is_written_as_one)
{
    uint16_t bound;
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    bool has = probe >= 0 && bind(probe, (struct sockaddr *)&address, sizeof(address)) == 0;
    if (probe >= 0)
        close(probe);
    if (!has)
        test_skip("this machine has no IPv6");
    int fd = listener(AF_INET6, SOCK_STREAM, true, &bound);
    pass("CAIRN_LISTEN_FDS", ":%d", fd, 0);
    CHECK_INT(0, take());
    CHECK_STR("::1", host);
    CHECK_INT(bound, port);
    done();
    close(fd);
}

TEST(systemd, what_is_no_listening_tcp_socket_is_an_error)
{
    uint16_t bound;
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    int good = listener(AF_INET, SOCK_STREAM, true, &bound);
    int rows[] = {pipes[0], listener(AF_INET, SOCK_DGRAM, false, &bound),
                  listener(AF_INET, SOCK_STREAM, false, &bound), 9999, -1};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        pass("CAIRN_LISTEN_FDS", ":%d,%d", good, rows[i]);
        CHECK_INT(CN_EINVALID, take());
        if (rows[i] >= 0 && rows[i] < 9999)
            close(rows[i]);
    }
    pass("CAIRN_LISTEN_FDS", ":x", 0, 0);
    CHECK_INT(CN_EINVALID, take()); /* standard input is none */
    pass("CAIRN_LISTEN_FDS", "", 0, 0);
    CHECK_INT(0, take());
    CHECK(!fds);
    close(good);
    close(pipes[1]);
}

TEST(systemd, a_manager_passes_one_socket)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "2", 1);
    CHECK_INT(CN_EINVALID, take());
    CHECK(strstr(err.text, "2 sockets"));
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "0", 1);
    CHECK_INT(0, take());
    CHECK(!fds);
    /* The first descriptor that is passed has number 3, so a child is given one. */
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        uint16_t bound;
        int fd = listener(AF_INET, SOCK_STREAM, true, &bound);
        if (fd != 3)
            dup2(fd, 3);
        snprintf(pid, sizeof(pid), "%ld", (long)getpid());
        setenv("LISTEN_PID", pid, 1);
        setenv("LISTEN_FDS", "1", 1);
        bool good = cn_systemd_sockets(&fds, &count, &host, &port, &err) == 0 && count == 1 &&
                    fds[0] == 3 && port == bound && strcmp(host, "127.0.0.1") == 0;
        _exit(good ? 0 : 1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(0, status);
}

/* This program, started by the test below with an argument and an empty one, restarts itself, and
 * says by its exit code whether it has what it had. */
__attribute__((constructor)) static void restarts(void)
{
    static const char arguments[] = "test_systemd\0an argument\0"; /* and the end of the last */
    const char *step = getenv(RESTARTED);
    if (!step)
        return;
    if (strcmp(step, "first") == 0) {
        uint16_t bound, other;
        char number[16];
        int sockets[] = {listener(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, true, &bound),
                         listener(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, true, &other)};
        snprintf(number, sizeof(number), "%u", bound);
        setenv(RESTARTED, number, 1);
        (void)cn_systemd_restart(sockets, 2, &err);
        _exit(1);
    }
    char seen[256];
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t size = read(fd, seen, sizeof(seen));
    if (size != sizeof(arguments) || memcmp(seen, arguments, sizeof(arguments)) != 0)
        _exit(2);
    if (cn_systemd_sockets(&fds, &count, &host, &port, &err) != 0 || count != 2)
        _exit(3);
    _exit(port == (uint16_t)atoi(step) ? 42 : 4);
}

TEST(systemd, a_restart_is_this_program_with_its_arguments_and_sockets)
{
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setenv(RESTARTED, "first", 1);
        execl("/proc/self/exe", "test_systemd", "an argument", "", NULL);
        _exit(5);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_INT(42, WEXITSTATUS(status));
}

static int notified(struct sockaddr_un *address, socklen_t size)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)address, size) == 0);
    return fd;
}

static const char *received(int fd)
{
    static char text[128];
    ssize_t size = recv(fd, text, sizeof(text) - 1, 0);
    text[size > 0 ? size : 0] = 0;
    return text;
}

TEST(systemd, a_manager_is_told_by_a_file_or_by_a_name_without_one)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unsigned long long time;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", test_dir());
    int fd = notified(&address, sizeof(address));
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    cn_systemd_tell("READY=1");
    CHECK_STR("READY=1", received(fd));
    cn_systemd_tell_reloading();
    CHECK(sscanf(received(fd), "RELOADING=1\nMONOTONIC_USEC=%llu", &time) == 1 && time > 0);
    close(fd);
    char name[64];
    int size = snprintf(name, sizeof(name), "@cairn-test-%ld", (long)getpid());
    memcpy(address.sun_path, name, (size_t)size);
    address.sun_path[0] = 0;
    fd = notified(&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)size));
    setenv("NOTIFY_SOCKET", name, 1);
    cn_systemd_tell("STOPPING=1");
    CHECK_STR("STOPPING=1", received(fd));
    close(fd);
}

TEST(systemd, a_manager_that_is_not_there_is_nobody_to_wait_for)
{
    char lengthy[300];
    int files = tree_open_files();
    memset(lengthy, 'x', sizeof(lengthy));
    lengthy[0] = '/';
    lengthy[sizeof(lengthy) - 1] = 0;
    const char *const rows[] = {"", "/", "@", "relative", "/nowhere/at/all", lengthy};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        setenv("NOTIFY_SOCKET", rows[i], 1);
        cn_systemd_tell("READY=1");
    }
    unsetenv("NOTIFY_SOCKET");
    cn_systemd_tell("READY=1");
    CHECK_INT(files, tree_open_files());
}
