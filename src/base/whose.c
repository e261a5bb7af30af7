/* SPDX-License-Identifier: Apache-2.0 */
#include "base/whose.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LISTENING 0x0A /* st of /proc/net/tcp: TCP_LISTEN */

/* `pid` 0: it is not known. */
static void name_process(long pid, char text[CN_WHOSE_TEXT_MAX])
{
    char path[40], name[40] = "";
    if (pid == 0) {
        snprintf(text, CN_WHOSE_TEXT_MAX, "another process");
        return;
    }
    snprintf(path, sizeof(path), "/proc/%ld/comm", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fgets(name, sizeof(name), file))
            name[strcspn(name, "\n")] = 0;
        fclose(file);
    }
    for (char *c = name; *c; c++)
        *c = isprint((unsigned char)*c) ? *c : '?';
    if (*name)
        snprintf(text, CN_WHOSE_TEXT_MAX, "%s (process %ld)", name, pid);
    else
        snprintf(text, CN_WHOSE_TEXT_MAX, "process %ld", pid);
}

/* The inode of a socket that listens on the port; 0: there is none. */
static unsigned long find_listener(const char *table, uint16_t port)
{
    char line[512];
    unsigned long found = 0;
    FILE *file = fopen(table, "re");
    while (file && !found && fgets(line, sizeof(line), file)) {
        unsigned local = 0, state = 0;
        unsigned long inode = 0;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*u %*d %lu",
                   &local, &state, &inode) == 3 &&
            local == port && state == LISTENING)
            found = inode;
    }
    if (file)
        fclose(file);
    return found;
}

static bool has_link(const char *folder, const char *wanted)
{
    char target[64];
    bool found = false;
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && !found && (entry = readdir(dir))) {
        ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
        if (size > 0) {
            target[size] = 0;
            found = strcmp(target, wanted) == 0;
        }
    }
    if (dir)
        closedir(dir);
    return found;
}

/* The process that has a descriptor of this name; 0: none that can be seen. */
static long find_holder(const char *wanted)
{
    long found = 0;
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    while (dir && !found && (entry = readdir(dir))) {
        char folder[300];
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(folder, sizeof(folder), "/proc/%s/fd", entry->d_name);
        if (has_link(folder, wanted))
            found = strtol(entry->d_name, NULL, 10);
    }
    if (dir)
        closedir(dir);
    return found;
}

void cn_whose_port(uint16_t port, char text[CN_WHOSE_TEXT_MAX])
{
    char wanted[40];
    unsigned long inode = find_listener("/proc/net/tcp", port);
    if (!inode)
        inode = find_listener("/proc/net/tcp6", port);
    snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
    name_process(inode ? find_holder(wanted) : 0, text);
}

void cn_whose_lock(const char *path, char text[CN_WHOSE_TEXT_MAX])
{
    struct stat info;
    char line[256];
    long holder = 0;
    FILE *file = stat(path, &info) == 0 ? fopen("/proc/locks", "re") : NULL;
    while (file && !holder && fgets(line, sizeof(line), file)) {
        unsigned major_number, minor_number;
        unsigned long inode;
        long pid;
        if (sscanf(line, "%*u: FLOCK %*s WRITE %ld %x:%x:%lu", &pid, &major_number, &minor_number,
                   &inode) == 4 &&
            pid > 0 && inode == info.st_ino && makedev(major_number, minor_number) == info.st_dev)
            holder = pid;
    }
    if (file)
        fclose(file);
    name_process(holder, text);
}
