/* SPDX-License-Identifier: Apache-2.0 */
/* v4/depot_check.c - checksums of what was deployed (D9 of depot.h): made with a version,
 * looked at before it is served and by `cairn check`. */
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/disk.h"
#include "base/mem.h"
#include "base/sealed.h"
#include "v4/depot_inside.h"

#define SUM_PIECE ((size_t)64 << 10)

/* The lists of checksums in code/ID/, and the folders that each is of. */
static const char *const source_folders[] = {"src", "assets", NULL};
static const char *const built_folders[] = {"bundle", NULL};
#define SOURCE_SUMS "sums.json"
#define BUILT_SUMS "bundle.json"

/* What the bundler was asked: written anew with every attempt, and read by nobody else. */
#define JOB "bundle/job.json"

static int sum_of_file(struct cn_disk *disk, const char *path, uint32_t *sum)
{
    struct cn_disk_file *file;
    uint8_t *bytes = cn_alloc(SUM_PIECE);
    uint64_t at = 0;
    int64_t count = 0;
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    *sum = 0;
    if (rc == 0) {
        while ((count = cn_disk_read(file, bytes, SUM_PIECE, at)) > 0) {
            *sum = cn_crc32c(*sum, bytes, (size_t)count);
            at += (uint64_t)count;
        }
        cn_disk_close(file);
    }
    cn_free(bytes);
    return rc < 0 ? rc : count < 0 ? (int)count : 0;
}

/* Appends "PATH":SUM of each file below code/ID/FOLDER. */
static int append_sums(struct cn_disk *disk, const char *root, const char *folder,
                       struct cn_buf *json)
{
    struct cn_disk_entries entries;
    char *path = cn_sprintf("%s/%s", root, folder);
    int rc = cn_disk_entries(disk, path, &entries);
    cn_free(path);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    for (size_t i = 0; i < entries.count && rc >= 0; i++) {
        char *below = cn_sprintf("%s/%s", folder, entries.items[i].name);
        char *whole = cn_sprintf("%s/%s", root, below);
        uint32_t sum;
        if (entries.items[i].is_dir) {
            rc = append_sums(disk, root, below, json);
        } else if (strcmp(below, JOB) != 0 && (rc = sum_of_file(disk, whole, &sum)) == 0) {
            cn_buf_append_str(json, json->data[json->size - 1] == '[' ? "\n[" : ",\n[");
            cn_buf_append_json(json, below, strlen(below));
            cn_buf_printf(json, ",%u]", sum);
        }
        cn_free(below);
        cn_free(whole);
    }
    cn_disk_entries_fini(&entries);
    return rc < 0 ? rc : 0;
}

/* The list of what lies in these folders of code/ID/, sealed. */
static int make_sums(struct cn_depot *depot, const char *root, const char *const *folders,
                     struct cn_buf *json, struct cn_err *err)
{
    int rc = 0;
    cn_buf_append_str(json, "{\"files\":[");
    for (size_t i = 0; folders[i] && rc == 0; i++)
        rc = append_sums(cn_depot_disk(depot), root, folders[i], json);
    if (rc < 0)
        cn_err_errno(err, -rc, "the version cannot be read again");
    cn_buf_append_str(json, "]}\n");
    cn_sealed_put(json);
    return rc;
}

int cn_depot_put_sums(struct cn_depot *depot, const char *code, struct cn_err *err)
{
    struct cn_buf json = {0};
    char *root = cn_depot_code_path(code), *path = cn_sprintf("%s/" SOURCE_SUMS, root);
    int rc = make_sums(depot, root, source_folders, &json, err);
    if (rc == 0)
        rc = cn_depot_write_file(depot, path, json.data, json.size, err);
    if (rc == 0)
        cn_depot_set_verified(depot, code); /* it was read just now */
    cn_buf_fini(&json);
    cn_free(root);
    cn_free(path);
    return rc;
}

int cn_depot_put_built(struct cn_depot *depot, const char *code, bool in_change, struct cn_err *err)
{
    struct cn_buf json = {0};
    struct cn_disk *disk = cn_depot_disk(depot);
    char *root = cn_depot_code_path(code), *path = cn_sprintf("%s/" BUILT_SUMS, root);
    int rc = make_sums(depot, root, built_folders, &json, err);
    if (rc == 0 && in_change) {
        rc = cn_depot_write_file(depot, path, json.data, json.size, err);
    } else if (rc == 0) {
        rc = cn_disk_sync_all(disk); /* what was built, before what vouches for it */
        if (rc == 0)
            rc = cn_disk_replace(disk, path, json.data, json.size);
        if (rc < 0)
            cn_err_errno(err, -rc, "cannot write %s", path);
    }
    cn_buf_fini(&json);
    cn_free(root);
    cn_free(path);
    return rc;
}

struct checking {
    struct cn_disk *disk;
    const struct cn_depot_script *script;
    const struct cn_depot_version *version;
    void (*problem)(void *data, const char *text);
    void *data;
};

static void check_file(const struct checking *checking, const char *root,
                       const struct cn_json *entry)
{
    const struct cn_json *name = entry->first, *want = name ? name->next : NULL;
    uint32_t sum = 0;
    if (!name || name->kind != CN_JSON_STRING || !want || want->kind != CN_JSON_INT)
        return; /* of another server; the list itself is sealed */
    char *path = cn_sprintf("%s/%s", root, name->text);
    int rc = sum_of_file(checking->disk, path, &sum);
    if (rc < 0 || (int64_t)sum != want->integer) {
        char *text = cn_sprintf("%s is %s: it belongs to version %s of %s", path,
                                rc < 0 ? "not there" : "damaged", checking->version->id,
                                checking->script->name);
        checking->problem(checking->data, text);
        cn_free(text);
    }
    cn_free(path);
}

/* One without a list is of a server that made none. */
static void check_sums(const struct checking *checking, const char *list)
{
    struct cn_err err = {0};
    struct cn_buf text = {0};
    char *root = cn_depot_code_path(checking->version->code),
         *path = cn_sprintf("%s/%s", root, list);
    int rc = cn_depot_read_sealed(checking->disk, path, CN_DEPOT_STATE_SIZE_MAX, &text, &err);
    struct cn_json *json = rc == 1 ? cn_json_parse((const char *)text.data, text.size, &err) : NULL;
    const struct cn_json *files = cn_json_find(json, "files");
    if (rc < 0 || (rc == 1 && !json))
        checking->problem(checking->data, err.text);
    for (const struct cn_json *each = files ? files->first : NULL; each; each = each->next)
        check_file(checking, root, each);
    cn_json_free(json);
    cn_buf_fini(&text);
    cn_free(root);
    cn_free(path);
}

/* --- before a version is served -----------------------------------------------------------------
 */

static void take_first(void *data, const char *text)
{
    struct cn_err *err = data;
    if (!err->code)
        cn_err_set(err, CN_ECORRUPT, "%s", text);
}

static int verify(struct cn_depot *depot, const struct cn_depot_script *script, const char *id,
                  const char *list, struct cn_err *err)
{
    const struct cn_depot_version *version = cn_depot_find_version(script, id);
    struct cn_err found = {0};
    if (!version)
        return cn_err_set(err, CN_ECORRUPT, "%s has no version %s", script->name, id);
    check_sums(&(struct checking){cn_depot_disk(depot), script, version, take_first, &found}, list);
    if (found.code)
        *err = found;
    return found.code;
}

int cn_depot_verify(struct cn_depot *depot, const struct cn_depot_script *script, const char *id,
                    struct cn_err *err)
{
    const struct cn_depot_version *version = cn_depot_find_version(script, id);
    struct cn_json *file = cn_depot_read_version(depot, id, err);
    if (!file)
        return CN_ECORRUPT;
    cn_json_free(file);
    if (version && cn_depot_is_verified(depot, version->code))
        return 0;
    struct cn_err missing = {0};
    char *root = cn_depot_code_path(version ? version->code : id);
    char *sums = cn_sprintf("%s/" SOURCE_SUMS, root);
    bool here = cn_disk_has(cn_depot_disk(depot), sums);
    int rc = verify(depot, script, id, SOURCE_SUMS, err);
    if (version && (rc < 0 || !here) && cn_depot_need(depot, id, version->code, &missing) == 0) {
        *err = (struct cn_err){0}; /* DB: others had it */
        rc = verify(depot, script, id, SOURCE_SUMS, err);
    }
    cn_free(root);
    cn_free(sums);
    if (rc == 0)
        cn_depot_set_verified(depot, version->code);
    return rc;
}

int cn_depot_verify_built(struct cn_depot *depot, const struct cn_depot_script *script,
                          const char *id, struct cn_err *err)
{
    return verify(depot, script, id, BUILT_SUMS, err);
}

/* --- cairn check --------------------------------------------------------------------------------
 */

static void check_versions(struct cn_disk *disk, const struct cn_depot_script *script,
                           void (*problem)(void *data, const char *text), void *data)
{
    for (size_t i = 0; i < script->version_count; i++) {
        struct cn_err err = {0};
        struct checking checking = {disk, script, &script->versions[i], problem, data};
        struct cn_json *version = cn_depot_read_version_of(disk, script->versions[i].id, &err);
        if (!version)
            problem(data, err.text);
        cn_json_free(version);
        if (strcmp(script->versions[i].code, script->versions[i].id) != 0)
            continue; /* once for each */
        check_sums(&checking, SOURCE_SUMS);
        check_sums(&checking, BUILT_SUMS);
    }
}

void cn_depot_check(struct cn_disk *disk, void (*problem)(void *data, const char *text), void *data)
{
    struct cn_err err = {0};
    struct cn_depot_state *state = NULL;
    uint8_t key[CN_DEPOT_KEY_SIZE];
    if (cn_depot_read_key(disk, key, &err) < 0)
        problem(data, err.text);
    OPENSSL_cleanse(key, sizeof(key));
    if (cn_depot_read_state(disk, &state, &err) < 0)
        problem(data, err.text);
    for (size_t i = 0; state && i < state->script_count; i++)
        check_versions(disk, &state->scripts[i], problem, data);
    cn_depot_state_unref(state);
}
