/* SPDX-License-Identifier: Apache-2.0 */
/* config/files.h - small whole files: configuration, bundles, starters. What must
 * survive a crash goes through base/disk.h instead. */
#ifndef CN_CONFIG_FILES_H
#define CN_CONFIG_FILES_H
#include <stddef.h>

struct cn_buf;
struct cn_err;

/* Appends the whole file. -ENOENT and other -errno, or CN_ELIMIT past `size_max`. */
int cn_files_read(const char *path, size_t size_max, struct cn_buf *out, struct cn_err *err);
/* Writes a new file beside and renames it over `path`: readers see the old or the new one. */
int cn_files_write(const char *path, const void *bytes, size_t size, struct cn_err *err);
/* Writes all of it to an open file; `path` is for the message. */
int cn_files_write_all(int fd, const char *path, const void *bytes, size_t size,
                       struct cn_err *err);
/* mkdir -p */
int cn_files_make_dirs(const char *path, struct cn_err *err);

#endif
