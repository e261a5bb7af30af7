/* SPDX-License-Identifier: Apache-2.0 */
/* base/sandbox.c - see sandbox.h.
 *
 * The kernel's own interface, without libraries: Landlock has none, and the filter is a table.
 * Constants that the headers of Debian 12 do not have yet stand here.
 *
 * B1  A system call that is not in the table is allowed: which ones libc, the engine and libuv use
 *     differs between versions, and a list of them would break servers at upgrades.
 * B2  clone() makes threads only. clone3() keeps its flags in memory, where a filter cannot look;
 *     it does not exist as far as we are concerned, and libc goes back to clone().
 * B3  io_uring could do what the filter refuses, so it does not exist either.
 * B4  Landlock does not look at mode, owner, times and attributes of files, so no call that changes
 *     them is allowed, of no file: serving changes none.
 * B5  Landlock does not look at UNIX sockets that have a path, and what listens there (a container
 *     engine, a message bus) starts programs for whoever connects. So no such socket can be made;
 *     those that serving needs are made before. libc tries to reach its daemons by them and does
 *     without: that is not reported. Pairs are connected from the start, and no datagrams, which
 *     could be sent elsewhere.
 * B6  A signal, a limit or advice is for this process only, also where Landlock is too old to see
 *     to it. */
#include "base/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

/* --- Landlock -------------------------------------------------------------------------------- */

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define ABI_MIN 2 /* renaming between folders */
#define RULESET_VERSION 1u
#define RULE_PATH_BENEATH 1

struct ruleset {
    uint64_t files, ports, scopes;
};
struct path_rule {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed));

enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_DIR = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6,
    MAKE_DIR = 1 << 7,
    MAKE_REG = 1 << 8,
    MAKE_SOCK = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_SYM = 1 << 12,
    REFER = 1 << 13,
    TRUNCATE = 1 << 14,                  /* since version 3 */
    IOCTL_DEV = 1 << 15,                 /* since version 5 */
    SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0, /* since version 6 */
    SCOPE_SIGNAL = 1 << 1,
};
#define OF_VERSION_2 ((1 << 14) - 1)
#define OF_FILES (WRITE_FILE | READ_FILE | TRUNCATE)
#define READING (READ_FILE | READ_DIR)
#define WRITING                                                                         \
    (READING | WRITE_FILE | TRUNCATE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | \
     MAKE_SOCK | REFER)

/* What libraries read: themselves and their data, certificates, the resolver's files, the machine's
 * size and load. Not all of /etc and /proc: there are secrets of others. */
static const struct cn_sandbox_path system_paths[] = {
    {"/usr", false, true},
    {"/lib", false, true},
    {"/lib64", false, true},
    {"/etc/ld.so.cache", false, true},
    {"/etc/ssl/certs", false, true},
    {"/etc/ssl/openssl.cnf", false, true},
    {"/etc/pki", false, true},
    {"/etc/ca-certificates", false, true},
    {"/etc/resolv.conf", false, true},
    {"/run/systemd/resolve", false, true},
    {"/etc/hosts", false, true},
    {"/etc/host.conf", false, true},
    {"/etc/nsswitch.conf", false, true},
    {"/etc/gai.conf", false, true},
    {"/etc/services", false, true},
    {"/etc/protocols", false, true},
    {"/etc/localtime", false, true},
    {"/dev/null", true, true},
    {"/dev/zero", false, true},
    {"/dev/urandom", false, true},
    {"/dev/random", false, true},
    {"/proc/self", false, true},
    {"/proc/meminfo", false, true},
    {"/proc/cpuinfo", false, true},
    {"/proc/stat", false, true},
    {"/proc/loadavg", false, true},
    {"/proc/version", false, true},
    {"/proc/sys/kernel", false, true},
    {"/proc/sys/vm", false, true},
    {"/proc/sys/net/core", false, true},
    {"/sys/fs/cgroup", false, true},
    {"/sys/devices/system", false, true},
    {"/sys/kernel/mm", false, true},
};

static int landlock_version(void)
{
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
}

static uint64_t handled(int version)
{
    return OF_VERSION_2 | (version >= 3 ? TRUNCATE : 0) | (version >= 5 ? IOCTL_DEV : 0);
}

static int allow(int ruleset, const struct cn_sandbox_path *path, int version, struct cn_err *err)
{
    struct stat info;
    int fd = open(path->path, O_PATH | O_CLOEXEC);
    if (fd < 0 && path->optional && errno != EMFILE && errno != ENFILE)
        return 0;
    if (fd < 0 || fstat(fd, &info) < 0) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        return cn_err_errno(err, saved, "sandbox: cannot open %s", path->path);
    }
    struct path_rule rule = {.fd = fd, .allowed = path->write ? WRITING : READING};
    rule.allowed &= handled(version);
    if (!S_ISDIR(info.st_mode))
        rule.allowed &= OF_FILES;
    int rc = (int)syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
    int saved = errno;
    close(fd);
    return rc < 0 ? cn_err_errno(err, saved, "sandbox: %s cannot be allowed", path->path) : 0;
}

static int confine_files(const struct cn_sandbox_path *paths, size_t count, struct cn_err *err)
{
    int version = landlock_version();
    struct ruleset attributes = {.files = handled(version),
                                 .scopes =
                                     version >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0};
    size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
    if (ruleset < 0)
        return cn_err_errno(err, errno, "sandbox: landlock_create_ruleset");
    int rc = 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(system_paths) && rc == 0; i++)
        rc = allow(ruleset, &system_paths[i], version, err);
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = allow(ruleset, &paths[i], version, err);
    if (rc == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        rc = cn_err_errno(err, errno, "sandbox: landlock_restrict_self");
    close(ruleset);
    return rc;
}

/* --- seccomp --------------------------------------------------------------------------------- */

struct refused {
    int number;
    const char *name;
};
#define CALL(name)        \
    {                     \
        SYS_##name, #name \
    }

/* Calls that the headers of Debian 12 do not know. */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_removexattrat 466
#endif
#ifndef SYS_file_setattr
#define SYS_file_setattr 469
#endif

static const struct refused refused[] = {
    /* other programs and processes */
    CALL(execve),
    CALL(execveat),
#ifdef SYS_fork
    CALL(fork),
    CALL(vfork),
#endif
    CALL(clone), /* but for threads: B2 */
    CALL(ptrace),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(pidfd_getfd),
    CALL(kcmp),
    CALL(pidfd_send_signal),
    CALL(tkill),
    CALL(process_madvise),
    CALL(process_mrelease),
    CALL(move_pages),
    CALL(migrate_pages),
    CALL(msgget),
    CALL(semget),
    CALL(shmget),
    CALL(mq_open),
    /* what files are said to be: B4 */
    CALL(fchmod),
    CALL(fchmodat),
    CALL(fchmodat2),
    CALL(fchown),
    CALL(fchownat),
    CALL(utimensat),
    CALL(setxattr),
    CALL(lsetxattr),
    CALL(fsetxattr),
    CALL(setxattrat),
    CALL(removexattr),
    CALL(lremovexattr),
    CALL(fremovexattr),
    CALL(removexattrat),
    CALL(file_setattr),
#ifdef SYS_chmod
    CALL(chmod),
    CALL(chown),
    CALL(lchown),
    CALL(utime),
    CALL(utimes),
    CALL(futimesat),
#endif
    /* what the file system looks like */
    CALL(mount),
    CALL(umount2),
    CALL(pivot_root),
    CALL(chroot),
    CALL(setns),
    CALL(unshare),
    CALL(open_tree),
    CALL(move_mount),
    CALL(fsopen),
    CALL(fsconfig),
    CALL(fsmount),
    CALL(fspick),
    CALL(mount_setattr),
    CALL(open_by_handle_at),
    CALL(fanotify_init),
    CALL(quotactl),
    CALL(swapon),
    CALL(swapoff),
    CALL(acct),
    /* the kernel */
    CALL(init_module),
    CALL(finit_module),
    CALL(delete_module),
    CALL(kexec_load),
#ifdef SYS_kexec_file_load
    CALL(kexec_file_load),
#endif
    CALL(bpf),
    CALL(perf_event_open),
    CALL(userfaultfd),
    CALL(keyctl),
    CALL(add_key),
    CALL(request_key),
    CALL(syslog),
    CALL(reboot),
    CALL(personality),
#ifdef SYS_iopl
    CALL(iopl),
    CALL(ioperm),
    CALL(modify_ldt),
#endif
    /* the machine */
    CALL(settimeofday),
    CALL(clock_settime),
    CALL(clock_adjtime),
    CALL(adjtimex),
    CALL(sethostname),
    CALL(setdomainname),
    CALL(vhangup),
    /* who we are */
    CALL(setuid),
    CALL(setgid),
    CALL(setreuid),
    CALL(setregid),
    CALL(setresuid),
    CALL(setresgid),
    CALL(setfsuid),
    CALL(setfsgid),
    CALL(setgroups),
    CALL(capset),
    /* in part */
    CALL(socket),     /* families that nothing here uses; B5 */
    CALL(socketpair), /* B5 */
    CALL(ioctl),      /* typing for the user of a terminal, attributes of files */
    CALL(kill),
    CALL(tgkill),
    CALL(rt_sigqueueinfo),
    CALL(rt_tgsigqueueinfo),
    CALL(prlimit64),
};

static const int socket_families[] = {AF_INET, AF_INET6, AF_NETLINK};
static const unsigned refused_ioctls[] = {TIOCSTI, 0x541C /* TIOCLINUX */, FS_IOC_SETFLAGS,
                                          FS_IOC_FSSETXATTR};

#define TO_PARENT (SECCOMP_RET_USER_NOTIF)
#define NOT_THERE (SECCOMP_RET_ERRNO | ENOSYS)
#define NOT_FOR_US (SECCOMP_RET_ERRNO | EACCES)
#define PROGRAM_MAX 512

struct program {
    struct sock_filter items[PROGRAM_MAX];
    unsigned short count;
};

static void emit(struct program *program, struct sock_filter item)
{
    CN_ASSERT(program->count < PROGRAM_MAX);
    program->items[program->count++] = item;
}

static void load(struct program *program, size_t offset)
{
    emit(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void finish(struct program *program, unsigned action)
{
    emit(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Goes on with the next `skip` items only if the value loaded last passes the test. */
static void test(struct program *program, unsigned short test, unsigned value, uint8_t skip)
{
    emit(program,
         (struct sock_filter)BPF_JUMP((unsigned short)(BPF_JMP | test | BPF_K), value, 0, skip));
}

/* The lower half of an argument: all that the kernel looks at for those we ask for. */
static size_t argument(unsigned index)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the lower half is first");
    return offsetof(struct seccomp_data, args) + 8 * index;
}

/* Allows the call if the value loaded last is this one. */
static void allow_if(struct program *program, unsigned value)
{
    test(program, BPF_JEQ, value, 1);
    finish(program, SECCOMP_RET_ALLOW);
}

static void emit_socket(struct program *program)
{
    load(program, argument(0));
    for (size_t i = 0; i < CN_ARRAY_COUNT(socket_families); i++)
        allow_if(program, (unsigned)socket_families[i]);
    test(program, BPF_JEQ, AF_UNIX, 1);
    finish(program, NOT_FOR_US);
}

static void emit_socketpair(struct program *program)
{
    load(program, argument(1));
    emit(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf)); /* its type */
    allow_if(program, SOCK_STREAM); /* there are no pairs but of UNIX */
    allow_if(program, SOCK_SEQPACKET);
}

static void emit_ioctl(struct program *program)
{
    load(program, argument(1));
    for (size_t i = 0; i < CN_ARRAY_COUNT(refused_ioctls); i++) {
        test(program, BPF_JEQ, refused_ioctls[i], 1);
        finish(program, TO_PARENT);
    }
    finish(program, SECCOMP_RET_ALLOW);
}

/* Behind the test for the number: what may be after all. What is not, goes on to be refused. */
static void emit_exceptions(struct program *program, int number)
{
    switch (number) {
    case SYS_clone:
        load(program, argument(0));
        test(program, BPF_JSET, CLONE_THREAD, 1);
        finish(program, SECCOMP_RET_ALLOW);
        break;
    case SYS_socket:
        emit_socket(program);
        break;
    case SYS_socketpair:
        emit_socketpair(program);
        break;
    case SYS_ioctl:
        emit_ioctl(program);
        break;
    case SYS_kill:
    case SYS_tgkill:
    case SYS_rt_sigqueueinfo:
    case SYS_rt_tgsigqueueinfo:
    case SYS_prlimit64:
        load(program, argument(0));
        allow_if(program, (unsigned)getpid()); /* B6 */
        if (number == SYS_prlimit64)
            allow_if(program, 0);
        break;
    default:
        break;
    }
}

static void emit_refused(struct program *program, int number)
{
    struct program inner = {.count = 0};
    emit_exceptions(&inner, number);
    finish(&inner, TO_PARENT);
    test(program, BPF_JEQ, (unsigned)number, (uint8_t)inner.count);
    for (unsigned short i = 0; i < inner.count; i++)
        emit(program, inner.items[i]);
}

static void emit_missing(struct program *program, unsigned number)
{
    test(program, BPF_JEQ, number, 1);
    finish(program, NOT_THERE);
}

/* Returns the listener. */
static int confine_calls(struct cn_err *err)
{
    struct program program = {.count = 0};
    load(&program, offsetof(struct seccomp_data, arch));
    emit(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    finish(&program, SECCOMP_RET_KILL_PROCESS); /* 32-bit calls have other numbers */
    load(&program, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    test(&program, BPF_JGE, 0x40000000, 1); /* so have those of x32 */
    finish(&program, NOT_THERE);
#endif
    emit_missing(&program, SYS_clone3);
    emit_missing(&program, SYS_io_uring_setup);
    emit_missing(&program, SYS_io_uring_enter);
    emit_missing(&program, SYS_io_uring_register);
    for (size_t i = 0; i < CN_ARRAY_COUNT(refused); i++)
        emit_refused(&program, refused[i].number);
    finish(&program, SECCOMP_RET_ALLOW);
    struct sock_fprog fprog = {program.count, program.items};
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                SECCOMP_FILTER_FLAG_NEW_LISTENER, &fprog);
    return listener < 0 ? cn_err_errno(err, errno, "sandbox: seccomp") : listener;
}

const char *cn_sandbox_report(int listener, int *thread)
{
    struct seccomp_notif call;
    memset(&call, 0, sizeof(call)); /* the kernel insists */
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
        return NULL;
    struct seccomp_notif_resp answer = {.id = call.id, .error = -EPERM};
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer); /* or the thread has ended */
    *thread = (int)call.pid;
    for (size_t i = 0; i < CN_ARRAY_COUNT(refused); i++)
        if (refused[i].number == call.data.nr)
            return refused[i].name;
    return "a system call";
}

/* --- both ------------------------------------------------------------------------------------ */

int cn_sandbox_check(struct cn_err *err)
{
    unsigned action = SECCOMP_RET_USER_NOTIF;
    if (!ARCH)
        return cn_err_set(err, CN_EUNSUPPORTED, "the sandbox is not built for this processor");
    int version = landlock_version();
    if (version < ABI_MIN)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "the sandbox needs Landlock, version %d or later: this kernel has %s "
                          "(Linux 5.19, with \"landlock\" among the security modules it starts)",
                          ABI_MIN, version < 0 ? "none" : "an older one");
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
        return cn_err_set(err, CN_EUNSUPPORTED,
                          "the sandbox needs seccomp filters that report, which this kernel does "
                          "not have");
    return 0;
}

static size_t thread_count(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

int cn_sandbox_enter(const struct cn_sandbox_path *paths, size_t count, struct cn_err *err)
{
    int rc = cn_sandbox_check(err);
    if (rc < 0)
        return rc;
    CN_ASSERT(thread_count() <= 1); /* the others would stay outside */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return cn_err_errno(err, errno, "sandbox: PR_SET_NO_NEW_PRIVS");
    rc = confine_files(paths, count, err);
    return rc < 0 ? rc : confine_calls(err);
}
