/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox refuses what it says it refuses, and allows what serving needs. Each case tries in a
 * child, which reports by its exit code; this process is the one that reads refused calls. */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "test/lib/test.h"

static const char *data; /* the folder that may be used */
/* What the last child was refused, by name. */
static char last_refused[64];

static void give_listener(int socket, int listener)
{
    char byte = 0, space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &listener, sizeof(int));
    if (sendmsg(socket, &message, 0) != 1)
        _exit(100);
}

static int take_listener(int socket)
{
    char byte, space[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    int listener = -1;
    if (recvmsg(socket, &message, 0) == 1)
        memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
    return listener;
}

/* Runs `attempt` in the sandbox; it returns 0 or an errno value. */
static int in_sandbox(int (*attempt)(void))
{
    struct cn_err err = {0};
    if (!data)
        data = test_dir();
    struct cn_sandbox_path paths[] = {{data, true, false}};
    int pair[2], status;
    if (cn_sandbox_check(&err) < 0)
        test_skip("%s", err.text);
#ifdef __SANITIZE_THREAD__
    test_skip("the sanitizer has a thread of its own, which would stay outside");
#endif
    last_refused[0] = 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        int listener = cn_sandbox_enter(paths, 1, &err);
        if (listener < 0) {
            fprintf(stderr, "%s\n", err.text);
            _exit(99);
        }
        give_listener(pair[1], listener);
        close(listener);
        close(pair[1]);
        _exit(attempt());
    }
    close(pair[1]);
    int listener = take_listener(pair[0]);
    CHECK(listener >= 0);
    for (;;) {
        struct pollfd poll_fd = {listener, POLLIN, 0};
        CHECK(poll(&poll_fd, 1, 10000) == 1);
        if (!(poll_fd.revents & POLLIN))
            break; /* the child has ended */
        int thread;
        const char *name = cn_sandbox_report(listener, &thread);
        if (name)
            snprintf(last_refused, sizeof(last_refused), "%s", name);
    }
    close(listener);
    close(pair[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int result(long rc)
{
    return rc < 0 ? errno : 0;
}

/* --- files ----------------------------------------------------------------------------------- */

static int open_shadow(void)
{
    return result(open("/etc/shadow", O_RDONLY));
}
static int open_home(void)
{
    return result(open("/root", O_RDONLY | O_DIRECTORY));
}
static int open_parent(void)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/..", data);
    return result(open(path, O_RDONLY | O_DIRECTORY));
}
static int follow_link(void)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/link", data);
    return result(open(path, O_RDONLY));
}
static int create_outside(void)
{
    return result(open("/tmp/cairn-sandbox-test", O_WRONLY | O_CREAT, 0600));
}
static int write_library(void)
{
    return result(open("/usr/cairn-sandbox-test", O_WRONLY | O_CREAT, 0600));
}
static int make_device(void)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/device", data);
    return result(mknod(path, S_IFCHR | 0600, 0x103));
}

TEST(sandbox, refuses_files_elsewhere)
{
    char link[600];
    data = data ? data : test_dir();
    snprintf(link, sizeof(link), "%s/link", data);
    CHECK(symlink("/etc/shadow", link) == 0);
    CHECK_INT(EACCES, in_sandbox(open_shadow));
    CHECK_INT(EACCES, in_sandbox(open_home));
    CHECK_INT(EACCES, in_sandbox(open_parent));
    CHECK_INT(EACCES, in_sandbox(follow_link));
    CHECK_INT(EACCES, in_sandbox(create_outside));
    CHECK_INT(EACCES, in_sandbox(write_library));
    CHECK_INT(geteuid() == 0 ? EACCES : EPERM, in_sandbox(make_device));
}

static int use_data(void)
{
    char a[600], b[600], text[8];
    snprintf(a, sizeof(a), "%s/folder", data);
    if (mkdir(a, 0700) < 0)
        return errno;
    snprintf(a, sizeof(a), "%s/file", data);
    snprintf(b, sizeof(b), "%s/folder/moved", data);
    int fd = open(a, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || write(fd, "text", 4) != 4 || ftruncate(fd, 2) < 0 || fsync(fd) < 0)
        return errno;
    if (rename(a, b) < 0 || (fd = open(b, O_RDONLY)) < 0)
        return errno;
    if (read(fd, text, sizeof(text)) != 2 || unlink(b) < 0)
        return 1;
    return result(open("/etc/hosts", O_RDONLY)) || result(open("/proc/self/statm", O_RDONLY));
}

TEST(sandbox, allows_its_data_and_what_libraries_read)
{
    CHECK_INT(0, in_sandbox(use_data));
    CHECK_STR("", last_refused);
}

/* --- system calls ---------------------------------------------------------------------------- */

static int run_program(void)
{
    char *argv[] = {"true", NULL};
    return result(execv("/bin/true", argv));
}
static int make_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return result(pid);
}
static int trace(void)
{
    return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}
static int mount_something(void)
{
    return result(mount("none", data, "tmpfs", 0, NULL));
}
static int raw_packets(void)
{
    return result(socket(AF_PACKET, SOCK_RAW, 0));
}
static int load_bpf(void)
{
    return result(syscall(SYS_bpf, 0, NULL, 0));
}
static int become_nobody(void)
{
    return result(syscall(SYS_setuid, 65534));
}
static int use_io_uring(void)
{
    return result(syscall(SYS_io_uring_setup, 8, NULL));
}

/* B4: also of the data itself, by its path and by a descriptor that was opened for reading. */
static int change_mode(void)
{
    return result(chmod(data, 0700));
}
static int change_mode_of_library(void)
{
    int fd = open("/usr/bin/env", O_RDONLY);
    return fd < 0 ? 1 : result(fchmod(fd, 0755));
}
static int change_mode_2(void)
{
    return result(syscall(452, AT_FDCWD, data, 0700, 0)); /* fchmodat2 */
}
static int change_owner(void)
{
    return result(fchownat(AT_FDCWD, data, getuid(), getgid(), 0));
}
static int change_times(void)
{
    return result(utimensat(AT_FDCWD, data, NULL, 0));
}
static int change_attribute(void)
{
    return result(syscall(SYS_setxattr, data, "user.x", "y", 1, 0));
}
static int change_flags(void)
{
    int fd = open("/usr/bin/env", O_RDONLY), flags = 0;
    return fd < 0 ? 1 : result(ioctl(fd, FS_IOC_SETFLAGS, &flags));
}
/* B6 */
static int signal_parent(void)
{
    return result(kill(getppid(), 0));
}
static int signal_group(void)
{
    return result(kill(0, 0));
}
static int signal_thread_of_parent(void)
{
    return result(syscall(SYS_tgkill, getppid(), getppid(), 0));
}
static int limit_parent(void)
{
    return result(prlimit(getppid(), RLIMIT_NOFILE, NULL, &(struct rlimit){0}));
}
/* B5 */
static int pair_of_datagrams(void)
{
    int pair[2];
    return result(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair));
}

TEST(sandbox, refuses_and_reports_calls)
{
    static const struct {
        int (*attempt)(void);
        const char *name;
    } cases[] = {
        {run_program, "execve"},
        {make_process, "clone"},
        {trace, "ptrace"},
        {mount_something, "mount"},
        {raw_packets, "socket"},
        {load_bpf, "bpf"},
        {become_nobody, "setuid"},
#ifdef SYS_chmod
        {change_mode, "chmod"},
#else
        {change_mode, "fchmodat"},
#endif
        {change_mode_of_library, "fchmod"},
        {change_mode_2, "fchmodat2"},
        {change_owner, "fchownat"},
        {change_times, "utimensat"},
        {change_attribute, "setxattr"},
        {change_flags, "ioctl"},
        {signal_parent, "kill"},
        {signal_group, "kill"},
        {signal_thread_of_parent, "tgkill"},
        {limit_parent, "prlimit64"},
        {pair_of_datagrams, "socketpair"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(EPERM, in_sandbox(cases[i].attempt));
        CHECK_STR(cases[i].name, last_refused);
    }
    CHECK_INT(ENOSYS, in_sandbox(use_io_uring));
}

static void on_signal(int number)
{
    (void)number;
}

static int use_own_signals_and_limits(void)
{
    int pair[2];
    (void)signal(SIGUSR2, on_signal);
    if (raise(SIGUSR2) != 0 || kill(getpid(), SIGUSR2) != 0)
        return 1;
    if (pthread_kill(pthread_self(), SIGUSR2) != 0)
        return 2;
    if (prlimit(0, RLIMIT_NOFILE, NULL, &(struct rlimit){0}) < 0)
        return 3;
    return result(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
}

TEST(sandbox, allows_signals_limits_and_pairs_of_its_own)
{
    CHECK_INT(0, in_sandbox(use_own_signals_and_limits));
    CHECK_STR("", last_refused);
}

static int make_unix_socket(void)
{
    return result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

/* B5: libc tries, and it is no sign of anything. */
TEST(sandbox, unix_sockets_are_refused_without_a_report)
{
    CHECK_INT(EACCES, in_sandbox(make_unix_socket));
    CHECK_STR("", last_refused);
}

static void *on_thread(void *code)
{
    *(int *)code = result(open("/etc/shadow", O_RDONLY));
    return NULL;
}

static int use_threads_and_code(void)
{
    pthread_t thread;
    int refused = 0;
    if (pthread_create(&thread, NULL, on_thread, &refused) != 0 || pthread_join(thread, NULL) != 0)
        return 1;
    void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED || mprotect(code, 4096, PROT_READ | PROT_EXEC) < 0)
        return 2;
    int fd = socket(AF_INET, SOCK_STREAM, 0), netlink = socket(AF_NETLINK, SOCK_RAW, 0);
    return fd < 0 || netlink < 0 ? 3 : refused == EACCES ? 0 : 4;
}

TEST(sandbox, threads_inherit_it_and_code_can_be_made)
{
    CHECK_INT(0, in_sandbox(use_threads_and_code));
}
