/* SPDX-License-Identifier: Apache-2.0 */
#include "v4/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/mem.h"
#include "v4/depot.h"

static bool hash_is_good(const char *hash)
{
    return hash && strlen(hash) == CN_MANIFEST_HASH_SIZE &&
           strspn(hash, "0123456789abcdef") == CN_MANIFEST_HASH_SIZE;
}

static const char *plain_path(const char *name)
{
    return name[0] == '/' ? name + 1 : name;
}

static int check_file(const struct cn_json *file, struct cn_err *err)
{
    const char *path = plain_path(file->name);
    const struct cn_json *size = cn_json_find(file, "size");
    if (!cn_depot_path_is_good(path, strlen(path))) /* M1 */
        return cn_err_set(err, CN_EINVALID,
                          "the path of an asset must stay inside its folder: %.60s", file->name);
    if (strcmp(path, "_headers") == 0 || strcmp(path, "_redirects") == 0)
        return cn_err_set(err, CN_EINVALID, "%s is no asset: it belongs to the configuration",
                          file->name);
    if (!hash_is_good(cn_json_text(file, "hash")))
        return cn_err_set(err, CN_EINVALID, "the hash of %.60s is none", file->name);
    if (!size || size->kind != CN_JSON_INT || size->integer < 0)
        return cn_err_set(err, CN_EINVALID, "the size of %.60s is none", file->name);
    if (size->integer > (int64_t)CN_MANIFEST_FILE_SIZE_MAX)
        return cn_err_set(err, CN_ELIMIT, "%.60s is larger than %u MiB", file->name,
                          CN_MANIFEST_FILE_SIZE_MAX >> 20);
    return 0;
}

/* Checks each entry by itself; the sum of what they need goes to *count and *memory. */
static int check_files(const struct cn_json *json, size_t *count, size_t *memory,
                       struct cn_err *err)
{
    *count = 0;
    *memory = sizeof(struct cn_manifest);
    if (!json || json->kind != CN_JSON_OBJECT)
        return cn_err_set(err, CN_EINVALID, "the manifest of the assets is missing");
    for (const struct cn_json *file = json->first; file; file = file->next) {
        if (++*count > CN_MANIFEST_FILE_MAX)
            return cn_err_set(err, CN_ELIMIT, "there are more than %d assets",
                              CN_MANIFEST_FILE_MAX);
        int rc = check_file(file, err);
        if (rc < 0)
            return rc;
        *memory += sizeof(struct cn_manifest_file) + strlen(plain_path(file->name)) + 1;
        if (*memory > CN_MANIFEST_SIZE_MAX) /* M3 */
            return cn_err_set(err, CN_ELIMIT, "the manifest of the assets is larger than %u MiB",
                              CN_MANIFEST_SIZE_MAX >> 20);
    }
    return 0;
}

/* By path, a folder just before what is in it: the slash comes before every other character. */
static int compare_paths(const void *one, const void *two)
{
    const unsigned char *a = (const unsigned char *)((const struct cn_manifest_file *)one)->path;
    const unsigned char *b = (const unsigned char *)((const struct cn_manifest_file *)two)->path;
    while (*a && *a == *b) {
        a++;
        b++;
    }
    int left = *a == '/' ? 1 : *a, right = *b == '/' ? 1 : *b; /* there are no controls (D5) */
    return left - right;
}

static int compare_hashes(const void *one, const void *two)
{
    const struct cn_manifest_file *a = one, *b = two;
    int order = memcmp(a->hash, b->hash, CN_MANIFEST_HASH_SIZE);
    return order ? order : strcmp(a->path, b->path);
}

/* M1, of a manifest in order of its paths. */
static int check_paths(const struct cn_manifest *manifest, struct cn_err *err)
{
    for (size_t i = 1; i < manifest->count; i++) {
        const char *before = manifest->files[i - 1].path, *path = manifest->files[i].path;
        size_t size = strlen(before);
        if (strncmp(before, path, size) != 0)
            continue;
        if (!path[size])
            return cn_err_set(err, CN_EINVALID, "the asset %.60s is there twice", path);
        if (path[size] == '/')
            return cn_err_set(err, CN_EINVALID,
                              "the assets %.60s and %.60s cannot both be: one is the other's "
                              "folder",
                              before, path);
    }
    return 0;
}

/* M2, of one in order of its hashes. */
static int check_hashes(const struct cn_manifest *manifest, struct cn_err *err)
{
    for (size_t i = 1; i < manifest->count; i++) {
        const struct cn_manifest_file *before = &manifest->files[i - 1], *file = before + 1;
        if (memcmp(before->hash, file->hash, CN_MANIFEST_HASH_SIZE) == 0 &&
            before->size != file->size)
            return cn_err_set(err, CN_EINVALID,
                              "the assets %.60s and %.60s have the same hash and not the same size",
                              before->path, file->path);
    }
    return 0;
}

static struct cn_manifest *make(const struct cn_json *json, size_t count, size_t memory)
{
    struct cn_manifest *manifest = cn_alloc(memory);
    char *text = (char *)&manifest->files[count];
    atomic_init(&manifest->refs, 1);
    manifest->count = 0;
    manifest->memory = memory;
    for (const struct cn_json *each = json->first; each; each = each->next) {
        struct cn_manifest_file *file = &manifest->files[manifest->count++];
        const char *path = plain_path(each->name);
        size_t size = strlen(path) + 1;
        file->path = memcpy(text, path, size);
        file->size = (uint32_t)cn_json_int(each, "size");
        memcpy(file->hash, cn_json_text(each, "hash"), sizeof(file->hash));
        text += size;
    }
    CN_ASSERT(manifest->count == count && text == (char *)manifest + memory);
    return manifest;
}

int cn_manifest_new(const struct cn_json *json, struct cn_manifest **out, struct cn_err *err)
{
    size_t count, memory;
    int rc = check_files(json, &count, &memory, err);
    if (rc < 0)
        return rc;
    struct cn_manifest *manifest = make(json, count, memory);
    qsort(manifest->files, count, sizeof(manifest->files[0]), compare_paths);
    rc = check_paths(manifest, err);
    if (rc == 0) {
        qsort(manifest->files, count, sizeof(manifest->files[0]), compare_hashes);
        rc = check_hashes(manifest, err);
    }
    if (rc < 0) {
        cn_manifest_unref(manifest);
        return rc;
    }
    *out = manifest;
    return 0;
}

struct cn_manifest *cn_manifest_ref(struct cn_manifest *manifest)
{
    atomic_fetch_add_explicit(&manifest->refs, 1, memory_order_relaxed);
    return manifest;
}

void cn_manifest_unref(struct cn_manifest *manifest)
{
    if (manifest && atomic_fetch_sub_explicit(&manifest->refs, 1, memory_order_acq_rel) == 1)
        cn_free(manifest);
}

const struct cn_manifest_file *cn_manifest_find(const struct cn_manifest *manifest,
                                                const char *hash)
{
    size_t from = 0, to = manifest->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(manifest->files[middle].hash, hash) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    bool found = from < manifest->count && strcmp(manifest->files[from].hash, hash) == 0;
    return found ? &manifest->files[from] : NULL;
}
