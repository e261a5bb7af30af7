/* SPDX-License-Identifier: Apache-2.0 */
/* assets/assets.c - reading the folder. See assets.h. */
#include "assets/assets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "assets/assets_private.h"
#include "assets/types.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/mem.h"

#define DEPTH_MAX 64
#define CHUNK_SIZE (256u << 10)
#define RULES_SIZE_MAX (8u << 20)

struct cn_assets *cn_assets_ref(struct cn_assets *assets)
{
    atomic_fetch_add_explicit(&assets->refs, 1, memory_order_relaxed);
    return assets;
}

void cn_assets_unref(struct cn_assets *assets)
{
    if (!assets || atomic_fetch_sub_explicit(&assets->refs, 1, memory_order_acq_rel) != 1)
        return;
    size_t cursor = 0;
    const struct cn_map_entry *entry;
    while (cn_map_next(&assets->files, &cursor, &entry)) {
        struct cn_asset *asset = entry->value;
        cn_free(asset->path);
        cn_free(asset->bytes);
        cn_free(asset);
    }
    cn_map_fini(&assets->files);
    cn_asset_rules_fini(&assets->rules);
    for (size_t i = 0; i < assets->options.first_count; i++)
        cn_free(assets->first[i]);
    cn_free(assets->first);
    cn_free(assets->base);
    if (assets->options.copy_fd >= 0)
        close(assets->options.copy_fd);
    cn_free(assets->directory);
    cn_free(assets->project);
    cn_free(assets);
}

const char *cn_assets_directory(const struct cn_assets *assets)
{
    return assets->directory;
}

size_t cn_assets_count(const struct cn_assets *assets)
{
    return assets->files.count;
}

const struct cn_asset *cn_assets_find(const struct cn_assets *assets, const char *path,
                                      size_t path_size)
{
    return cn_map_find(&assets->files, path, path_size);
}

const struct cn_asset *cn_assets_next(const struct cn_assets *assets, size_t *cursor)
{
    const struct cn_map_entry *entry;
    return cn_map_next(&assets->files, cursor, &entry) ? entry->value : NULL;
}

static int64_t mtime_of(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* A3 */
static int copy_piece(struct cn_assets *assets, const uint8_t *bytes, size_t size)
{
    size_t done = 0;
    while (assets->options.copy_fd >= 0 && done < size) {
        ssize_t part = pwrite(assets->options.copy_fd, bytes + done, size - done,
                              (off_t)(assets->copy_size + done));
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return part < 0 ? -errno : -EIO;
        done += (size_t)part;
    }
    assets->copy_size += size;
    return 0;
}

/* Reads the whole file, for its checksum and its bytes, which are kept or copied. */
static int read_file(struct cn_assets *assets, int fd, struct cn_asset *asset, bool keep)
{
    uint8_t *buffer = cn_try_alloc(keep ? asset->size + 1 : CHUNK_SIZE);
    if (!buffer)
        return -ENOMEM;
    uint64_t high = 1, low = 2, offset = 0;
    asset->copied = assets->copy_size;
    for (;;) {
        size_t room = keep ? asset->size + 1 - offset : CHUNK_SIZE;
        uint8_t *at = keep ? buffer + offset : buffer;
        ssize_t size = room ? pread(fd, at, room, (off_t)offset) : -1;
        if (size < 0 && room && errno == EINTR)
            continue;
        if (size < 0 || (size == 0 && offset != asset->size) || offset > asset->size) {
            cn_free(buffer);
            return -EBUSY; /* it changes while we read */
        }
        if (size == 0)
            break;
        int rc = keep ? 0 : copy_piece(assets, at, (size_t)size);
        if (rc < 0) {
            cn_free(buffer);
            return rc;
        }
        high = cn_hash_bytes(high, at, (size_t)size);
        low = cn_hash_bytes(low, at, (size_t)size);
        offset += (uint64_t)size;
    }
    snprintf(asset->etag, sizeof(asset->etag), "\"%016llx%016llx\"", (unsigned long long)high,
             (unsigned long long)low);
    if (keep)
        asset->bytes = buffer;
    else
        cn_free(buffer);
    return 0;
}

/* What of `real` comes behind `folder`, or NULL if it is not in there. */
static const char *below(const char *folder, const char *real)
{
    size_t size = strlen(folder);
    if (strncmp(real, folder, size) != 0)
        return NULL;
    return real[size] == '/'                     ? real + size
           : size > 0 && folder[size - 1] == '/' ? real + size - 1
                                                 : NULL;
}

/* A1: whether the file lies in the folder, links followed, or else in the project, where nothing
 * below a name with a dot (secrets, data, .git) is anybody's to see. */
static bool is_inside(const struct cn_assets *assets, const char *file)
{
    char real[PATH_MAX];
    if (!realpath(file, real))
        return false;
    if (below(assets->directory, real))
        return true;
    const char *path = assets->project ? below(assets->project, real) : NULL;
    return path && !strstr(path, "/.");
}

/* The folders that are being walked through, from the innermost outwards. */
struct walked {
    const struct walked *above;
    dev_t device;
    ino_t inode;
};

/* A folder, or a link to one that may be followed; not one that is being walked through. */
static bool is_folder_to_walk(const struct cn_assets *assets, const char *file,
                              const struct walked *above, struct walked *walked)
{
    struct stat info;
    if (lstat(file, &info) < 0)
        return false;
    if (S_ISLNK(info.st_mode) && (!is_inside(assets, file) || stat(file, &info) < 0))
        return false;
    *walked = (struct walked){above, info.st_dev, info.st_ino};
    for (; above; above = above->above)
        if (above->device == info.st_dev && above->inode == info.st_ino)
            return false;
    return S_ISDIR(info.st_mode);
}

static int add_file(struct cn_assets *assets, const char *path, struct cn_err *err)
{
    char *file = cn_sprintf("%s/%s", assets->directory, path);
    struct stat info;
    int rc = 0, fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    /* Out of a sandbox, or a link that leads nowhere. */
    bool foreign = fd < 0 && (errno == EACCES || errno == ENOENT) && !is_inside(assets, file);
    if (foreign) {
        cn_warn("assets: %s is left out: it is no file of this folder", file);
    } else if (fd < 0 || fstat(fd, &info) < 0) {
        rc = cn_err_errno(err, errno, "assets: cannot read %s", file);
    } else if (!S_ISREG(info.st_mode) || !is_inside(assets, file)) {
        cn_warn("assets: %s is left out: it is no file of this folder", file);
    } else if (info.st_size > CN_ASSET_SIZE_MAX) {
        rc = cn_err_set(err, CN_ELIMIT, "assets: %s has %lld bytes; the limit is 25 MiB", file,
                        (long long)info.st_size);
    } else if (assets->files.count >= CN_ASSET_COUNT_MAX) {
        rc = cn_err_set(err, CN_ELIMIT, "assets: %s has more than %d files", assets->directory,
                        CN_ASSET_COUNT_MAX);
    } else {
        struct cn_asset *asset = CN_NEW(struct cn_asset);
        asset->size = (uint64_t)info.st_size;
        asset->mtime_ns = mtime_of(&info);
        asset->type = cn_asset_type(path);
        bool keep = asset->size <= CN_ASSET_MEMORY_FILE_MAX &&
                    assets->memory_size + asset->size <= CN_ASSET_MEMORY_MAX;
        rc = read_file(assets, fd, asset, keep);
        if (rc == 0) {
            asset->path = cn_sprintf("/%s", path);
            assets->memory_size += keep ? asset->size : 0;
            cn_map_set(&assets->files, asset->path, strlen(asset->path), asset);
        } else {
            cn_free(asset);
            cn_err_errno(err, -rc, "assets: cannot read %s", file);
        }
    }
    if (fd >= 0)
        close(fd);
    cn_free(file);
    return rc;
}

/* What a folder of assets says about itself is no asset. */
static bool is_special(const struct cn_assets *assets, const char *path)
{
    static const char *const names[] = {".assetsignore", "_headers", "_redirects"};
    static const char *const pages[] = {"_worker.js", "_routes.json", "functions"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(names); i++) {
        if (strcmp(path, names[i]) == 0)
            return true;
    }
    for (size_t i = 0; assets->options.pages && i < CN_ARRAY_COUNT(pages); i++) {
        if (strcmp(path, pages[i]) == 0)
            return true;
    }
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return assets->options.pages && (strcmp(name, "node_modules") == 0 ||
                                     strcmp(name, ".git") == 0 || strcmp(name, ".DS_Store") == 0);
}

static int walk(struct cn_assets *assets, const char *folder, int depth, const struct walked *above,
                struct cn_err *err)
{
    char *full = cn_sprintf("%s/%s", assets->directory, folder);
    DIR *dir = depth < DEPTH_MAX ? opendir(full) : NULL;
    int rc = 0;
    if (assets->folder_count++ > CN_ASSET_COUNT_MAX)
        rc = cn_err_set(err, CN_ELIMIT, "assets: %s has more than %d folders, links followed",
                        assets->directory, CN_ASSET_COUNT_MAX);
    else if (!dir)
        rc = cn_err_errno(err, depth < DEPTH_MAX ? errno : ELOOP, "assets: cannot read folder %s",
                          full);
    for (struct dirent *entry; dir && rc == 0 && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path =
            *folder ? cn_sprintf("%s/%s", folder, entry->d_name) : cn_strdup(entry->d_name);
        char *file = cn_sprintf("%s/%s", assets->directory, path);
        struct walked walked;
        bool is_folder = is_folder_to_walk(assets, file, above, &walked);
        if (is_special(assets, path) || cn_asset_ignored(&assets->rules, path, is_folder))
            ;
        else if (strcmp(path, "_worker.js") == 0)
            rc = cn_err_set(err, CN_EINVALID,
                            "assets: %s would make the source of a worker public; name it in "
                            ".assetsignore if it is an asset that must not be served",
                            file);
        else
            rc = is_folder ? walk(assets, path, depth + 1, &walked, err)
                           : add_file(assets, path, err);
        cn_free(file);
        cn_free(path);
    }
    if (dir)
        closedir(dir);
    cn_free(full);
    return rc;
}

static void on_bad_line(void *data, const char *file, unsigned line, const char *why)
{
    cn_warn("%s/%s:%u: %s; the line is left out", (const char *)data, file, line, why);
}

/* The contents of a file of rules; false if there is none. */
static bool read_rules(const struct cn_assets *assets, const char *name, struct cn_buf *text)
{
    char *path = cn_sprintf("%s/%s", assets->directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    cn_free(path);
    if (fd < 0)
        return false;
    cn_buf_clear(text);
    for (;;) {
        cn_buf_reserve(text, 64 << 10);
        ssize_t size = read(fd, text->data + text->size, 64 << 10);
        if (size <= 0 || text->size > RULES_SIZE_MAX)
            break;
        text->size += (size_t)size;
    }
    close(fd);
    return true;
}

static void load_rules(struct cn_assets *assets)
{
    struct cn_buf text = {0};
    cn_asset_rules_init(&assets->rules);
    if (read_rules(assets, ".assetsignore", &text))
        cn_asset_parse_ignore(&assets->rules, (char *)text.data, text.size);
    if (read_rules(assets, "_headers", &text))
        cn_asset_parse_headers(&assets->rules, (char *)text.data, text.size, on_bad_line,
                               assets->directory);
    if (read_rules(assets, "_redirects", &text))
        cn_asset_parse_redirects(&assets->rules, (char *)text.data, text.size, on_bad_line,
                                 assets->directory);
    cn_buf_fini(&text);
}

int cn_assets_load(const struct cn_assets_options *options, struct cn_assets **out,
                   struct cn_err *err)
{
    char real[PATH_MAX];
    if (!realpath(options->directory, real)) {
        int rc = cn_err_errno(err, errno, "assets: cannot open the folder %s", options->directory);
        if (options->copy_fd >= 0)
            close(options->copy_fd);
        return rc;
    }
    struct cn_assets *assets = CN_NEW(struct cn_assets);
    atomic_init(&assets->refs, 1);
    assets->options = *options;
    assets->directory = cn_strdup(real);
    if (options->project && realpath(options->project, real))
        assets->project = cn_strdup(real);
    assets->options.project = NULL; /* the caller's */
    assets->first = cn_alloc_zero((options->first_count + 1) * sizeof(*assets->first));
    for (size_t i = 0; i < options->first_count; i++)
        assets->first[i] = cn_strdup(options->first[i]);
    assets->base = cn_asset_base(options->base ? options->base : "/");
    assets->options.base = NULL;
    CN_ASSERT(assets->base); /* the configuration has looked at it */
    cn_map_init(&assets->files);
    load_rules(assets);
    struct walked top = {0};
    (void)is_folder_to_walk(assets, assets->directory, NULL, &top); /* opendir() will tell */
    int rc = walk(assets, "", 0, &top, err);
    if (rc < 0) {
        cn_assets_unref(assets);
        return rc;
    }
    *out = assets;
    return 0;
}

int cn_asset_open(const struct cn_assets *assets, const struct cn_asset *asset, bool *same,
                  uint64_t *begin, uint64_t *size)
{
    *begin = 0;
    if (assets->options.copy_fd >= 0) {
        *same = true;
        *begin = asset->copied;
        *size = asset->size;
        int copy = fcntl(assets->options.copy_fd, F_DUPFD_CLOEXEC, 0);
        return copy < 0 ? -errno : copy;
    }
    char *file = cn_sprintf("%s%s", assets->directory, asset->path);
    struct stat info;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || !is_inside(assets, file))) {
        close(fd);
        fd = -1;
    }
    cn_free(file);
    if (fd < 0)
        return -ENOENT;
    *size = (uint64_t)info.st_size;
    *same = *size == asset->size && mtime_of(&info) == asset->mtime_ns;
    return fd;
}

static void stamp_folder(const char *folder, int depth, uint64_t *stamp, int64_t *newest_ns)
{
    DIR *dir = depth < DEPTH_MAX ? opendir(folder) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *path = cn_sprintf("%s/%s", folder, entry->d_name);
        struct stat info;
        if (lstat(path, &info) == 0) {
            uint64_t parts[2] = {(uint64_t)info.st_size, (uint64_t)mtime_of(&info)};
            /* A sum: the order of a folder's entries may change. */
            *stamp += cn_hash_bytes(cn_hash_bytes(1, parts, sizeof(parts)), path, strlen(path));
            if (mtime_of(&info) > *newest_ns)
                *newest_ns = mtime_of(&info);
            if (S_ISDIR(info.st_mode))
                stamp_folder(path, depth + 1, stamp, newest_ns);
        }
        cn_free(path);
    }
    if (dir)
        closedir(dir);
}

uint64_t cn_assets_stamp(const char *directory, int64_t *newest_ns)
{
    uint64_t stamp = 1;
    int64_t newest = 0;
    stamp_folder(directory, 0, &stamp, newest_ns ? newest_ns : &newest);
    return stamp;
}
