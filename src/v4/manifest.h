/* SPDX-License-Identifier: Apache-2.0 */
/* v4/manifest.h - which files of assets a version is to have: paths, and of each the hash that
 * its sender gave it and its size.
 *
 *   M1  A path is that of a file inside the folder of assets (D5 of depot.h), is there once, and is
 *       not another one's folder: all of them can be linked.
 *   M2  One hash stands for one content: files that share it have the same size.
 *   M3  It is small: what a sender adds to an entry is not kept. CN_MANIFEST_FILE_MAX files at
 *       most, in CN_MANIFEST_SIZE_MAX bytes.
 *
 * Threads:   any: it is not changed once it is made.
 * Ownership: counted references, and one allocation. */
#ifndef CN_V4_MANIFEST_H
#define CN_V4_MANIFEST_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct cn_json;

#define CN_MANIFEST_FILE_MAX 100000 /* as the platform's, with a paid plan */
#define CN_MANIFEST_FILE_SIZE_MAX (25u << 20)
#define CN_MANIFEST_SIZE_MAX (16u << 20)
#define CN_MANIFEST_HASH_SIZE 32 /* digits */

struct cn_manifest_file {
    const char *path; /* "a/b.txt": without the slash before it */
    char hash[CN_MANIFEST_HASH_SIZE + 1];
    uint32_t size;
};

struct cn_manifest {
    atomic_uint refs;
    size_t count;
    size_t memory;                   /* bytes of all of it */
    struct cn_manifest_file files[]; /* in order of their hashes */
};

/* Reads {"/path":{"hash","size"},...}; `json` may be NULL. CN_EINVALID and CN_ELIMIT with a
 * sentence for its sender. */
int cn_manifest_new(const struct cn_json *json, struct cn_manifest **manifest, struct cn_err *err);
struct cn_manifest *cn_manifest_ref(struct cn_manifest *manifest);
void cn_manifest_unref(struct cn_manifest *manifest); /* NULL is fine */
/* The first file with this hash; NULL: there is none. */
const struct cn_manifest_file *cn_manifest_find(const struct cn_manifest *manifest,
                                                const char *hash);

#endif
