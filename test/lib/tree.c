/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "test/lib/test.h"

const char *tree_path(const char *dir, const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    CHECK(snprintf(path, sizeof(paths[0]), "%s/%s", dir, name) < (int)sizeof(paths[0]));
    return path;
}

static void make_folders(const char *dir, const char *name)
{
    char path[512];
    CHECK(snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path));
    for (char *slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        (void)mkdir(path, 0755); /* it may be there */
        *slash = '/';
    }
}

void tree_folder(const char *dir, const char *name)
{
    make_folders(dir, name);
    CHECK(mkdir(tree_path(dir, name), 0755) == 0);
}

void tree_link(const char *dir, const char *name, const char *to)
{
    make_folders(dir, name);
    CHECK(symlink(to, tree_path(dir, name)) == 0);
}

void tree_write_bytes(const char *dir, const char *name, const void *bytes, size_t size)
{
    make_folders(dir, name);
    int fd = open(tree_path(dir, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK_INT(size, write(fd, bytes, size));
    CHECK(close(fd) == 0);
}

void tree_write(const char *dir, const char *name, const char *text)
{
    tree_write_bytes(dir, name, text, strlen(text));
}

void tree_write_long(const char *dir, const char *name, size_t size)
{
    uint8_t *bytes = cn_alloc(size);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)("0123456789abcdefghijklmnopqrstuvwxy"[i % 35]);
    tree_write_bytes(dir, name, bytes, size);
    cn_free(bytes);
}

char *tree_read(const char *dir, const char *name)
{
    int fd = open(tree_path(dir, name), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct cn_buf text = {0};
    for (ssize_t size = 1; size > 0;) {
        cn_buf_reserve(&text, 65536);
        size = read(fd, text.data + text.size, 65536);
        CHECK(size >= 0);
        text.size += (size_t)size;
    }
    close(fd);
    cn_buf_text(&text);
    return (char *)cn_buf_take(&text);
}

bool tree_has(const char *dir, const char *name)
{
    struct stat info;
    return lstat(tree_path(dir, name), &info) == 0;
}

int tree_open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir);
    int count = 0;
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 3; /* ".", ".." and the folder itself */
}
