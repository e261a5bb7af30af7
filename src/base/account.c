/* SPDX-License-Identifier: Apache-2.0 */
#include "base/account.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"

const char *const cn_account_kind_names[CN_ACCOUNT_KIND_COUNT] = {
    [CN_ACCOUNT_HEAP] = "heap",       [CN_ACCOUNT_BODIES] = "bodies",
    [CN_ACCOUNT_ANSWERS] = "answers", [CN_ACCOUNT_SOCKETS] = "websockets",
    [CN_ACCOUNT_SQLITE] = "sqlite",   [CN_ACCOUNT_LOG] = "log",
    [CN_ACCOUNT_CACHES] = "caches",
};
const char *const cn_account_level_names[CN_ACCOUNT_LEVEL_COUNT] = {
    "calm", "caches", "idle", "sockets", "bodies", "requests", "reset",
};
const unsigned cn_account_level_shares[CN_ACCOUNT_LEVEL_COUNT] = {0, 70, 76, 82, 86, 90, 95};

static struct {
    uint64_t limit; /* set before the threads start */
    atomic_int_least64_t kinds[CN_ACCOUNT_KIND_COUNT];
    atomic_uint_least64_t used;
    atomic_uint level;
    atomic_uint_least64_t reliefs[CN_ACCOUNT_LEVEL_COUNT];
    struct cn_account_source sources[CN_ACCOUNT_SOURCE_MAX];
    uint64_t told[CN_ACCOUNT_SOURCE_MAX]; /* what each said last; the watcher's */
    size_t source_count;
} account;

/* --- how much there may be --------------------------------------------------------------- */

/* A small file of the kernel as text; false: it is not there. */
static bool read_file(const char *root, const char *path, char *text, size_t size)
{
    char *whole = cn_sprintf("%s%s", root, path);
    int fd = open(whole, O_RDONLY | O_CLOEXEC);
    cn_free(whole);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got < 0)
        return false;
    text[got] = 0;
    return true;
}

/* A number alone in a file; "max", or none: no limit. */
static uint64_t read_limit(const char *root, const char *path)
{
    char text[64];
    if (!read_file(root, path, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    return strtoull(text, NULL, 10);
}

static uint64_t machine_bytes(const char *root)
{
    char text[256];
    static const char name[] = "MemTotal:";
    if (!read_file(root, "/proc/meminfo", text, sizeof(text)) ||
        strncmp(text, name, sizeof(name) - 1) != 0)
        return 0;
    return strtoull(text + sizeof(name) - 1, NULL, 10) << 10; /* in kB */
}

/* The least of a group and those above it: each of them bounds the process. */
static uint64_t least_of_groups(const char *root, const char *mount, char *group, const char *file)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char *path = cn_sprintf("%s%s/%s", mount, group, file);
        uint64_t bytes = read_limit(root, path);
        cn_free(path);
        least = bytes < least ? bytes : least;
        char *slash = strrchr(group, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

/* Of the groups in /proc/self/cgroup: "0::/path" of version 2, "4:memory:/path" of version 1. */
static uint64_t cgroup_bytes(const char *root)
{
    char text[4096];
    uint64_t least = UINT64_MAX;
    if (!read_file(root, "/proc/self/cgroup", text, sizeof(text)))
        return least;
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        uint64_t bytes = UINT64_MAX;
        char *group = strrchr(line, ':');
        if (!group || group[1] != '/')
            continue;
        if (strncmp(line, "0::", 3) == 0)
            bytes = least_of_groups(root, "/sys/fs/cgroup", group + 1, "memory.max");
        else if (strstr(line, ":memory:"))
            bytes =
                least_of_groups(root, "/sys/fs/cgroup/memory", group + 1, "memory.limit_in_bytes");
        least = bytes < least ? bytes : least;
    }
    return least;
}

uint64_t cn_account_default(const char *root)
{
    uint64_t bytes = machine_bytes(root), group = cgroup_bytes(root);
    if (group < bytes || bytes == 0)
        bytes = group == UINT64_MAX ? 0 : group;
    return bytes / 4 * 3;
}

void cn_account_set_limit(uint64_t bytes)
{
    account.limit = bytes;
}

uint64_t cn_account_limit(void)
{
    return account.limit;
}

/* --- who has it ---------------------------------------------------------------------------- */

void cn_account_add(enum cn_account_kind kind, int64_t bytes)
{
    int64_t before = atomic_fetch_add_explicit(&account.kinds[kind], bytes, memory_order_relaxed);
    CN_ASSERT(before + bytes >= 0); /* A5 */
}

bool cn_account_take(enum cn_account_kind kind, size_t bytes)
{
    uint64_t limit = account.limit;
    if (limit && cn_account_level() >= CN_ACCOUNT_RELIEVE_BODIES)
        return false;
    if (limit && cn_account_used() > limit / 2 && cn_account_kind_bytes(kind) + bytes > limit / 4)
        return false; /* A4 */
    cn_account_add(kind, (int64_t)bytes);
    return true;
}

uint64_t cn_account_kind_bytes(enum cn_account_kind kind)
{
    return (uint64_t)atomic_load_explicit(&account.kinds[kind], memory_order_relaxed);
}

uint64_t cn_account_other_bytes(void)
{
    uint64_t used = cn_account_used(), known = 0;
    for (unsigned i = 0; i < CN_ACCOUNT_KIND_COUNT; i++)
        known += cn_account_kind_bytes(i);
    return used > known ? used - known : 0;
}

void cn_account_source_add(const struct cn_account_source *source)
{
    CN_ASSERT(account.source_count < CN_ACCOUNT_SOURCE_MAX);
    account.told[account.source_count] = 0;
    account.sources[account.source_count++] = *source;
}

void cn_account_sources_clear(void)
{
    for (size_t i = 0; i < account.source_count; i++)
        cn_account_add(account.sources[i].kind, -(int64_t)account.told[i]);
    account.source_count = 0;
}

void cn_account_sources_ask(void)
{
    for (size_t i = 0; i < account.source_count; i++) {
        const struct cn_account_source *source = &account.sources[i];
        uint64_t now = source->bytes(source->data);
        cn_account_add(source->kind, (int64_t)now - (int64_t)account.told[i]);
        account.told[i] = now;
    }
}

void cn_account_sources_forget(void)
{
    for (size_t i = 0; i < account.source_count; i++) {
        if (account.sources[i].forget)
            account.sources[i].forget(account.sources[i].data);
    }
}

/* --- how short it is ------------------------------------------------------------------------ */

uint64_t cn_account_read_used(void)
{
    char text[128];
    char *at = text;
    if (!read_file("", "/proc/self/statm", text, sizeof(text)))
        return 0;
    (void)strtoull(at, &at, 10); /* all that is mapped */
    uint64_t resident = strtoull(at, &at, 10), of_files = strtoull(at, &at, 10);
    return resident < of_files ? 0 : (resident - of_files) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The highest level whose share is reached, if `slack` percent are missing. */
static enum cn_account_level level_at(uint64_t used, unsigned slack)
{
    unsigned level = CN_ACCOUNT_LEVEL_COUNT - 1;
    while (level > CN_ACCOUNT_CALM &&
           used < account.limit / 100 * (cn_account_level_shares[level] - slack))
        level--;
    return level;
}

enum cn_account_level cn_account_look(uint64_t used)
{
    atomic_store_explicit(&account.used, used, memory_order_relaxed);
    enum cn_account_level before = cn_account_level(), level = CN_ACCOUNT_CALM;
    if (account.limit) {
        level = level_at(used, 0);
        if (level < before) { /* A3 */
            enum cn_account_level kept = level_at(used, CN_ACCOUNT_SLACK);
            level = kept < before ? kept : before;
        }
    }
    atomic_store_explicit(&account.level, level, memory_order_relaxed);
    return level;
}

enum cn_account_level cn_account_level(void)
{
    return atomic_load_explicit(&account.level, memory_order_relaxed);
}

uint64_t cn_account_used(void)
{
    return atomic_load_explicit(&account.used, memory_order_relaxed);
}

uint64_t cn_account_excess(enum cn_account_level level)
{
    uint64_t share = account.limit / 100 * cn_account_level_shares[level];
    uint64_t used = cn_account_used();
    return account.limit && used > share ? used - share : 0;
}

void cn_account_relieved(enum cn_account_level level, uint64_t count)
{
    atomic_fetch_add_explicit(&account.reliefs[level], count, memory_order_relaxed);
}

uint64_t cn_account_relief_count(enum cn_account_level level)
{
    return atomic_load_explicit(&account.reliefs[level], memory_order_relaxed);
}
