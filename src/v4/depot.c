/* SPDX-License-Identifier: Apache-2.0 */
#include "v4/depot.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/diag.h"
#include "base/disk.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/sealed.h"
#include "base/utf8.h"
#include "text/base64.h"
#include "text/hex.h"
#include "v4/depot_inside.h"

#define STATE "deployed/state.json"
#define KEY "deployed/key"
#define KEY_SIZE CN_DEPOT_KEY_SIZE
#define KEY_FILE_SIZE (KEY_SIZE + 4) /* its CRC-32C behind it */
#define NONCE_SIZE 12
#define TAG_SIZE 16
#define PATH_SIZE_MAX 900
#define SEGMENT_SIZE_MAX 250
#define DEPTH_MAX 32
#define OFFERS_MAX 4

struct cn_depot {
    struct cn_disk *disk; /* borrowed: the data directory */
    char *root;           /* owned: its path, absolute */
    char *domain;         /* owned, or NULL */
    uint8_t key[KEY_SIZE];
    const struct cn_depot_common *common; /* borrowed, or NULL (DB) */
    pthread_mutex_t turn;       /* held by who changes, and waits for others to end (DB) */
    pthread_mutex_t change;     /* held by who changes (D7) */
    pthread_mutex_t committing; /* held while the state is replaced, and to give a change up */
    pthread_mutex_t lock;       /* guards what follows */
    struct cn_depot_state *current;
    struct cn_depot_state *next;   /* what a change wants; NULL: none is under way */
    struct cn_depot_state *before; /* what was current when the change began, or NULL */
    bool committed;                /* `next` is durable and current */
    bool rehearsing;               /* `next` is only tried */
    bool deploys;                  /* with `next` something else is served */
    bool (*may)(void *data);       /* DC; NULL: nobody is asked */
    void *may_data;
    struct cn_depot_state *left; /* what served before what was adopted, or NULL; of who follows */
    struct cn_map verified;      /* code -> itself: found whole since this was opened (D9) */
    bool unsynced;               /* files were written since the last sync; the changer's */
};

bool cn_depot_is_verified(struct cn_depot *depot, const char *code)
{
    pthread_mutex_lock(&depot->lock);
    bool is = cn_map_find(&depot->verified, code, strlen(code)) != NULL;
    pthread_mutex_unlock(&depot->lock);
    return is;
}

void cn_depot_set_verified(struct cn_depot *depot, const char *code)
{
    pthread_mutex_lock(&depot->lock);
    cn_map_set(&depot->verified, code, strlen(code), depot);
    pthread_mutex_unlock(&depot->lock);
}

/* --- sealed files (base/sealed.h) --------------------------------------------------------------
 */

/* 1: read; 0: there is none. */
static int read_file(struct cn_disk *disk, const char *path, size_t size_max, struct cn_buf *out,
                     struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot read %s", path);
    int64_t size = cn_disk_size(file);
    if (size > (int64_t)size_max)
        rc = cn_err_set(err, CN_ECORRUPT, "%s is too large", path);
    if (rc == 0 && size > 0) {
        cn_buf_reserve(out, (size_t)size + 1);
        int64_t count = cn_disk_read(file, out->data, (size_t)size, 0);
        if (count < 0)
            rc = cn_err_errno(err, (int)-count, "cannot read %s", path);
        else
            out->size = (size_t)count;
    }
    cn_disk_close(file);
    return rc < 0 ? rc : 1;
}

int cn_depot_read_sealed(struct cn_disk *disk, const char *path, size_t size_max,
                         struct cn_buf *out, struct cn_err *err)
{
    int rc = read_file(disk, path, size_max, out, err);
    if (rc == 1 && cn_sealed_check(out) != 1)
        rc = cn_err_set(err, CN_ECORRUPT, "%s is damaged: it does not match its checksum", path);
    return rc;
}

/* --- paths -------------------------------------------------------------------------------------
 */

static bool segment_is_good(const char *text, size_t size)
{
    if (size == 0 || size > SEGMENT_SIZE_MAX)
        return false;
    return !(size == 1 && text[0] == '.') && !(size == 2 && memcmp(text, "..", 2) == 0);
}

bool cn_depot_path_is_good(const char *path, size_t size)
{
    size_t depth = 0, from = 0;
    if (size == 0 || size > PATH_SIZE_MAX || !cn_utf8_valid(path, size))
        return false;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && ((unsigned char)path[i] < ' ' || path[i] == '\\' || path[i] == 0x7f))
            return false;
        if (i < size && path[i] != '/')
            continue;
        if (!segment_is_good(path + from, i - from) || ++depth > DEPTH_MAX)
            return false;
        from = i + 1;
    }
    return true;
}

char *cn_depot_code_path(const char *code)
{
    return cn_sprintf("deployed/code/%s", code);
}

/* --- removing ----------------------------------------------------------------------------------
 */

/* Best effort: what stays is tried again at the next start (D6). */
static void remove_tree(struct cn_depot *depot, const char *path)
{
    struct cn_disk_entries entries;
    if (cn_disk_entries(depot->disk, path, &entries) < 0)
        return;
    for (size_t i = 0; i < entries.count; i++) {
        char *below = cn_sprintf("%s/%s", path, entries.items[i].name);
        if (entries.items[i].is_dir)
            remove_tree(depot, below);
        else
            (void)cn_disk_unlink(depot->disk, below);
        cn_free(below);
    }
    cn_disk_entries_fini(&entries);
    char *whole = cn_sprintf("%s/%s", depot->root, path);
    (void)rmdir(whole);
    cn_free(whole);
}

void cn_depot_remove_version(struct cn_depot *depot, const char *id)
{
    char *file = cn_sprintf("deployed/versions/%s.json", id), *code = cn_depot_code_path(id);
    (void)cn_disk_unlink(depot->disk, file);
    remove_tree(depot, code);
    cn_free(file);
    cn_free(code);
}

static bool names_version(const struct cn_depot_state *state, const char *id, bool code)
{
    for (size_t i = 0; i < state->script_count; i++) {
        const struct cn_depot_script *script = &state->scripts[i];
        for (size_t k = 0; k < script->version_count; k++) {
            const struct cn_depot_version *version = &script->versions[k];
            if (strcmp(code ? version->code : version->id, id) == 0)
                return true;
        }
    }
    return false;
}

/* D6: everything in a folder that the state does not name. */
static void sweep(struct cn_depot *depot, const struct cn_depot_state *state, const char *folder,
                  bool (*is_named)(const struct cn_depot_state *state, const char *name))
{
    struct cn_disk_entries entries;
    if (cn_disk_entries(depot->disk, folder, &entries) < 0)
        return;
    for (size_t i = 0; i < entries.count; i++) {
        if (is_named(state, entries.items[i].name))
            continue;
        char *path = cn_sprintf("%s/%s", folder, entries.items[i].name);
        if (entries.items[i].is_dir)
            remove_tree(depot, path);
        else
            (void)cn_disk_unlink(depot->disk, path);
        cn_free(path);
    }
    cn_disk_entries_fini(&entries);
}

static bool code_is_named(const struct cn_depot_state *state, const char *name)
{
    return names_version(state, name, true);
}

static bool file_is_named(const struct cn_depot_state *state, const char *name)
{
    char id[CN_DEPOT_ID_SIZE];
    snprintf(id, sizeof(id), "%s", name);
    return strlen(name) == sizeof(id) - 1 + strlen(".json") && names_version(state, id, false);
}

static bool worker_is_named(const struct cn_depot_state *state, const char *name)
{
    return cn_depot_find(state, name) != NULL;
}

static void sweep_all(struct cn_depot *depot, const struct cn_depot_state *state)
{
    sweep(depot, state, "deployed/versions", file_is_named);
    sweep(depot, state, "deployed/code", code_is_named);
    sweep(depot, state, "deployed/assets", worker_is_named);
}

/* --- open and close ----------------------------------------------------------------------------
 */

static void put_key_sum(uint8_t out[4], const uint8_t key[KEY_SIZE])
{
    uint32_t sum = cn_crc32c(0, key, KEY_SIZE);
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(sum >> 8 * i);
}

int cn_depot_read_key(struct cn_disk *disk, uint8_t key[KEY_SIZE], struct cn_err *err)
{
    struct cn_buf bytes = {0};
    uint8_t sum[4];
    int rc = read_file(disk, KEY, KEY_FILE_SIZE, &bytes, err);
    bool good = rc == 1 && bytes.size == KEY_FILE_SIZE;
    if (good) {
        put_key_sum(sum, bytes.data);
        good = memcmp(bytes.data + KEY_SIZE, sum, sizeof(sum)) == 0;
    }
    if (rc == 1 && !good)
        rc = cn_err_set(err, CN_ECORRUPT, KEY " is damaged: secrets cannot be read without it");
    if (rc == 1)
        memcpy(key, bytes.data, KEY_SIZE);
    if (bytes.size)
        OPENSSL_cleanse(bytes.data, bytes.size);
    cn_buf_fini(&bytes);
    return rc;
}

static int write_key(struct cn_disk *disk, const uint8_t key[KEY_SIZE], struct cn_err *err)
{
    uint8_t file[KEY_FILE_SIZE];
    memcpy(file, key, KEY_SIZE);
    put_key_sum(file + KEY_SIZE, file);
    int rc = cn_disk_replace(disk, KEY, file, sizeof(file)); /* mode 0600, as all here */
    OPENSSL_cleanse(file, sizeof(file));
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write " KEY) : 0;
}

/* D4: the key, made at the first start, after which a state is there. */
static int load_key(struct cn_depot *depot, struct cn_err *err)
{
    struct cn_disk_file *state;
    if (depot->common) {
        memcpy(depot->key, depot->common->key, KEY_SIZE);
        return 0;
    }
    int rc = cn_depot_read_key(depot->disk, depot->key, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    if (cn_disk_open(depot->disk, STATE, CN_DISK_READONLY, &state) == 0) {
        cn_disk_close(state);
        cn_error(KEY " is not there, and a new one is made: secrets that were deployed cannot be "
                     "read with it. Put the file back from where this data directory came from and "
                     "start again, or set them anew");
    }
    cn_rand_secure(depot->key, KEY_SIZE);
    return write_key(depot->disk, depot->key, err);
}

static int write_state_to(struct cn_disk *disk, const struct cn_depot_state *state,
                          struct cn_err *err)
{
    struct cn_buf json = {0};
    cn_depot_state_write(state, &json);
    cn_sealed_put(&json);
    int rc = json.size > CN_DEPOT_STATE_SIZE_MAX
                 ? cn_err_set(err, CN_ELIMIT, "there are too many workers, versions or names")
                 : cn_disk_replace(disk, STATE, json.data, json.size);
    if (rc < 0 && rc != CN_ELIMIT)
        cn_err_errno(err, -rc, "cannot write " STATE);
    cn_buf_fini(&json);
    return rc;
}

static int write_state(struct cn_depot *depot, const struct cn_depot_state *state,
                       struct cn_err *err)
{
    return write_state_to(depot->disk, state, err);
}

int cn_depot_restore(struct cn_disk *disk, const struct cn_depot_state *state,
                     const uint8_t key[CN_DEPOT_KEY_SIZE], struct cn_err *err)
{
    int rc = cn_disk_mkdirs(disk, "deployed");
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot make the folder deployed");
    rc = write_key(disk, key, err);
    return rc < 0 ? rc : write_state_to(disk, state, err);
}

int cn_depot_read_state(struct cn_disk *disk, struct cn_depot_state **out, struct cn_err *err)
{
    struct cn_buf text = {0};
    int rc = cn_depot_read_sealed(disk, STATE, CN_DEPOT_STATE_SIZE_MAX, &text, err);
    if (rc == 1) {
        *out = cn_depot_state_read((const char *)text.data, text.size, err);
        rc = *out ? 1 : cn_err_context(err, STATE);
    }
    cn_buf_fini(&text);
    return rc;
}

static int load_state(struct cn_depot *depot, struct cn_err *err)
{
    if (depot->common) {
        depot->current = cn_depot_state_ref(depot->common->first);
        return write_state(depot, depot->current, err);
    }
    int rc = cn_depot_read_state(depot->disk, &depot->current, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    depot->current = cn_depot_state_new();
    return write_state(depot, depot->current, err); /* the account stays what it is */
}

int cn_depot_open(struct cn_disk *disk, const char *root, const char *domain,
                  const struct cn_depot_common *common, struct cn_depot **out, struct cn_err *err)
{
    static const char *const folders[] = {"deployed", "deployed/versions", "deployed/code",
                                          "deployed/assets"};
    struct cn_depot *depot = CN_NEW(struct cn_depot);
    depot->disk = disk;
    depot->common = common;
    depot->root = cn_strdup(root);
    depot->domain = domain ? cn_strdup(domain) : NULL;
    pthread_mutex_init(&depot->turn, NULL);
    pthread_mutex_init(&depot->change, NULL);
    pthread_mutex_init(&depot->committing, NULL);
    pthread_mutex_init(&depot->lock, NULL);
    cn_map_init(&depot->verified);
    int rc = 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(folders) && rc == 0; i++) {
        rc = cn_disk_mkdirs(disk, folders[i]);
        if (rc < 0)
            cn_err_errno(err, -rc, "cannot make %s", folders[i]);
    }
    if (rc == 0)
        rc = load_key(depot, err);
    if (rc == 0)
        rc = load_state(depot, err);
    if (rc < 0) {
        cn_depot_close(depot);
        return rc;
    }
    sweep_all(depot, depot->current);
    remove_tree(depot, CN_DEPOT_TRANSFERS);
    *out = depot;
    return 0;
}

void cn_depot_close(struct cn_depot *depot)
{
    if (!depot)
        return;
    CN_ASSERT(!depot->next);
    cn_depot_state_unref(depot->left);
    cn_depot_state_unref(depot->current);
    OPENSSL_cleanse(depot->key, sizeof(depot->key));
    pthread_mutex_destroy(&depot->turn);
    pthread_mutex_destroy(&depot->change);
    pthread_mutex_destroy(&depot->committing);
    pthread_mutex_destroy(&depot->lock);
    cn_map_fini(&depot->verified);
    cn_free(depot->root);
    cn_free(depot->domain);
    cn_free(depot);
}

struct cn_disk *cn_depot_disk(const struct cn_depot *depot)
{
    return depot->disk;
}

const char *cn_depot_domain(const struct cn_depot *depot)
{
    return depot->domain;
}

char *cn_depot_transfers(struct cn_depot *depot, struct cn_err *err)
{
    int rc = cn_disk_mkdirs(depot->disk, CN_DEPOT_TRANSFERS);
    if (rc < 0) {
        cn_err_errno(err, -rc, "cannot make " CN_DEPOT_TRANSFERS);
        return NULL;
    }
    return cn_sprintf("%s/" CN_DEPOT_TRANSFERS, depot->root);
}

/* --- states ------------------------------------------------------------------------------------
 */

struct cn_depot_state *cn_depot_take(struct cn_depot *depot)
{
    pthread_mutex_lock(&depot->lock);
    struct cn_depot_state *state = cn_depot_state_ref(depot->current);
    pthread_mutex_unlock(&depot->lock);
    return state;
}

struct cn_depot_state *cn_depot_take_next(struct cn_depot *depot)
{
    pthread_mutex_lock(&depot->lock);
    struct cn_depot_state *state = cn_depot_state_ref(depot->next ? depot->next : depot->current);
    pthread_mutex_unlock(&depot->lock);
    return state;
}

static void make_current(struct cn_depot *depot)
{
    pthread_mutex_lock(&depot->lock);
    cn_depot_state_unref(depot->current);
    depot->current = cn_depot_state_ref(depot->next);
    depot->committed = true;
    pthread_mutex_unlock(&depot->lock);
}

/* DB: where all can see it, then here, as a copy. */
static int commit_together(struct cn_depot *depot, const struct cn_depot_state *next,
                           const struct cn_buf *classes, struct cn_err *err)
{
    struct cn_err copy = {0};
    int rc = depot->common->commit(depot->common->data, next, depot->deploys, classes, err);
    if (rc < 0)
        return rc;
    if (write_state(depot, next, &copy) < 0)
        cn_warn("%s; the next start fetches it again", copy.text);
    return 1;
}

int cn_depot_commit(struct cn_depot *depot, const struct cn_depot_state *started,
                    const struct cn_buf *classes, struct cn_err *err)
{
    pthread_mutex_lock(&depot->committing); /* D8 */
    pthread_mutex_lock(&depot->lock);
    /* Another deployment (SIGHUP) may have been made before the change began: it commits nothing.
     */
    const struct cn_depot_state *next =
        depot->committed || depot->rehearsing || depot->next != started ? NULL : depot->next;
    bool (*may)(void *data) = depot->may;
    void *may_data = depot->may_data;
    pthread_mutex_unlock(&depot->lock);
    int rc = !next ? 0
             : may && !may(may_data)
                 ? cn_err_set(err, CN_EDENIED, "the right to it was lost") /* DC */
             : depot->common ? commit_together(depot, next, classes, err)
                             : write_state(depot, next, err);
    if (rc >= 0 && next)
        make_current(depot);
    pthread_mutex_unlock(&depot->committing);
    return rc;
}

bool cn_depot_rehearses(struct cn_depot *depot)
{
    pthread_mutex_lock(&depot->lock);
    bool rehearses = depot->rehearsing;
    pthread_mutex_unlock(&depot->lock);
    return rehearses;
}

int cn_depot_need(struct cn_depot *depot, const char *version, const char *code, struct cn_err *err)
{
    return depot->common ? depot->common->need(depot->common->data, version, code, err)
                         : cn_err_set(err, CN_EUNSUPPORTED, "nobody else has it");
}

void cn_depot_revert(struct cn_depot *depot)
{
    struct cn_err err = {0};
    pthread_mutex_lock(&depot->committing);
    pthread_mutex_lock(&depot->lock);
    struct cn_depot_state *before = depot->committed ? depot->before : NULL;
    if (before) {
        cn_depot_state_unref(depot->current);
        depot->current = cn_depot_state_ref(before);
        depot->committed = false;
    }
    pthread_mutex_unlock(&depot->lock);
    if (before && write_state(depot, before, &err) < 0)
        cn_error("%s; a restart serves the version that was refused", err.text);
    pthread_mutex_unlock(&depot->committing);
}

struct cn_depot_state *cn_depot_change_begin(struct cn_depot *depot, struct cn_err *err)
{
    if (depot->common) {
        pthread_mutex_lock(&depot->turn);
        if (depot->common->begin(depot->common->data, err) < 0) {
            pthread_mutex_unlock(&depot->turn);
            return NULL;
        }
    }
    pthread_mutex_lock(&depot->change);
    struct cn_depot_state *now = cn_depot_take(depot);
    struct cn_depot_state *state = cn_depot_state_copy(now);
    cn_depot_state_unref(now);
    return state;
}

/* Versions that are no longer named go with their files. */
static void remove_dropped(struct cn_depot *depot, const struct cn_depot_state *before,
                           const struct cn_depot_state *after)
{
    for (size_t i = 0; i < before->script_count; i++) {
        const struct cn_depot_script *script = &before->scripts[i];
        for (size_t k = 0; k < script->version_count; k++) {
            const struct cn_depot_version *version = &script->versions[k];
            char *file = cn_sprintf("deployed/versions/%s.json", version->id);
            char *code = cn_depot_code_path(version->code);
            if (!names_version(after, version->id, false))
                (void)cn_disk_unlink(depot->disk, file);
            if (!names_version(after, version->code, true))
                remove_tree(depot, code);
            cn_free(file);
            cn_free(code);
        }
        if (!cn_depot_find(after, script->name)) {
            char *assets = cn_sprintf("deployed/assets/%s", script->name);
            remove_tree(depot, assets);
            cn_free(assets);
        }
    }
}

/* D1: everything at once, what was built too. */
static int sync_files(struct cn_depot *depot, struct cn_err *err)
{
    int rc = depot->unsynced ? cn_disk_sync_all(depot->disk) : 0;
    if (rc < 0)
        return cn_err_errno(err, -rc, "the version cannot be made durable");
    depot->unsynced = false;
    return 0;
}

static void set_rehearsing(struct cn_depot *depot, bool on)
{
    pthread_mutex_lock(&depot->lock);
    depot->rehearsing = on;
    pthread_mutex_unlock(&depot->lock);
}

/* DB: what is wrong with it is found here, before others are asked. A server that has come while
 * they were is asked, too. */
static int change_together(struct cn_depot *depot, const struct cn_depot_state *before,
                           const struct cn_depot_state *state,
                           int (*deploy)(void *data, struct cn_err *err), void *data,
                           struct cn_err *err)
{
    const struct cn_depot_common *common = depot->common;
    int rc = 0;
    if (deploy) {
        set_rehearsing(depot, true);
        rc = deploy(data, err);
        set_rehearsing(depot, false);
    }
    for (unsigned i = 0; rc == 0 && i < OFFERS_MAX; i++) {
        rc = common->offer(common->data, before, state, deploy != NULL, err);
        if (rc < 0)
            break;
        rc = deploy ? deploy(data, err) : cn_depot_commit(depot, state, NULL, err);
        if (rc != CN_EABORTED)
            break;
        rc = i + 1 < OFFERS_MAX ? 0 : rc;
    }
    return rc > 0 ? 0 : rc;
}

void cn_depot_change_guard(struct cn_depot *depot, bool (*may)(void *data), void *data)
{
    pthread_mutex_lock(&depot->lock);
    depot->may = may;
    depot->may_data = data;
    pthread_mutex_unlock(&depot->lock);
}

/* The change is over; who held it together with others is told. */
static void let_go(struct cn_depot *depot, bool committed)
{
    cn_depot_change_guard(depot, NULL, NULL);
    pthread_mutex_unlock(&depot->change);
    if (!depot->common)
        return;
    depot->common->end(depot->common->data, committed);
    pthread_mutex_unlock(&depot->turn);
}

int cn_depot_change_end(struct cn_depot *depot, struct cn_depot_state *state,
                        int (*deploy)(void *data, struct cn_err *err), void *data,
                        struct cn_err *err)
{
    struct cn_depot_state *before = cn_depot_take(depot);
    pthread_mutex_lock(&depot->lock);
    depot->next = state;
    depot->before = before;
    depot->committed = false;
    depot->deploys = deploy != NULL;
    pthread_mutex_unlock(&depot->lock);
    int rc = sync_files(depot, err);
    if (rc == 0)
        rc = depot->common ? change_together(depot, before, state, deploy, data, err)
             : deploy      ? deploy(data, err)
                           : cn_depot_commit(depot, state, NULL, err);
    pthread_mutex_lock(&depot->committing);
    pthread_mutex_lock(&depot->lock);
    bool committed = depot->committed;
    depot->next = depot->before = NULL;
    pthread_mutex_unlock(&depot->lock);
    pthread_mutex_unlock(&depot->committing);
    if (rc == 0 && !committed)
        rc = cn_err_set(err, CN_ECLOSED, "the server is stopping");
    if (committed)
        rc = 0; /* D8: whatever came after, it is deployed */
    if (committed)
        remove_dropped(depot, before, state);
    cn_depot_state_unref(before);
    let_go(depot, committed);
    cn_depot_state_unref(state);
    return rc;
}

bool cn_depot_follow_begin(struct cn_depot *depot)
{
    return pthread_mutex_trylock(&depot->change) == 0;
}

int cn_depot_adopt(struct cn_depot *depot, struct cn_depot_state *state, struct cn_err *err)
{
    int rc = write_state(depot, state, err);
    if (rc < 0) {
        cn_depot_state_unref(state);
        return rc;
    }
    pthread_mutex_lock(&depot->lock);
    struct cn_depot_state *before = depot->current;
    depot->current = state;
    pthread_mutex_unlock(&depot->lock);
    if (depot->left)
        cn_depot_state_unref(before); /* it never served */
    else
        depot->left = before;
    return 0;
}

int cn_depot_rehearse(struct cn_depot *depot, struct cn_depot_state *state,
                      int (*deploy)(void *data, struct cn_err *err), void *data, struct cn_err *err)
{
    pthread_mutex_lock(&depot->lock);
    depot->next = state;
    depot->rehearsing = true;
    pthread_mutex_unlock(&depot->lock);
    int rc = deploy(data, err);
    pthread_mutex_lock(&depot->lock);
    depot->next = NULL;
    depot->rehearsing = false;
    pthread_mutex_unlock(&depot->lock);
    return rc;
}

void cn_depot_follow_end(struct cn_depot *depot, bool served)
{
    if (depot->left && served) {
        struct cn_depot_state *now = cn_depot_take(depot);
        remove_dropped(depot, depot->left, now);
        cn_depot_state_unref(now);
        cn_depot_state_unref(depot->left);
        depot->left = NULL;
    }
    pthread_mutex_unlock(&depot->change);
}

void cn_depot_pause(struct cn_depot *depot, bool on)
{
    if (on)
        pthread_mutex_lock(&depot->change);
    else
        pthread_mutex_unlock(&depot->change);
}

void cn_depot_change_drop(struct cn_depot *depot, struct cn_depot_state *state)
{
    let_go(depot, false);
    cn_depot_state_unref(state);
}

/* --- files -------------------------------------------------------------------------------------
 */

/* Makes the folders on the way to the file. They are synced with everything else (D1): a sync for
 * each would take minutes where there are thousands of files. */
static int make_parents(struct cn_depot *depot, const char *path, struct cn_err *err)
{
    char *folder = cn_strdup(path);
    int rc = 0;
    for (char *slash = strchr(folder, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        rc = cn_disk_mkdir(depot->disk, folder);
        if (rc < 0)
            cn_err_errno(err, -rc, "cannot make %s", folder);
        *slash = '/';
    }
    cn_free(folder);
    return rc;
}

int cn_depot_write_file(struct cn_depot *depot, const char *path, const void *bytes, size_t size,
                        struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = make_parents(depot, path, err);
    if (rc < 0)
        return rc;
    rc = cn_disk_open(depot->disk, path, CN_DISK_CREATE | CN_DISK_TRUNCATE, &file);
    if (rc == 0) {
        rc = cn_disk_write_all(file, bytes, size, 0);
        cn_disk_close(file);
    }
    depot->unsynced = true;
    return rc < 0 ? cn_err_errno(err, -rc, "cannot write %s", path) : 0;
}

int cn_depot_put_file(struct cn_depot *depot, const char *code, const char *folder,
                      const char *path, const void *bytes, size_t size, struct cn_err *err)
{
    CN_ASSERT(cn_depot_path_is_good(path, strlen(path)));
    char *whole = cn_sprintf("deployed/code/%s/%s/%s", code, folder, path);
    int rc = cn_depot_write_file(depot, whole, bytes, size, err);
    cn_free(whole);
    return rc;
}

int cn_depot_read_module(struct cn_depot *depot, const char *code, const char *path,
                         struct cn_buf *out, struct cn_err *err)
{
    CN_ASSERT(cn_depot_path_is_good(path, strlen(path)));
    char *whole = cn_sprintf("deployed/code/%s/src/%s", code, path);
    struct cn_err missing = {0};
    int rc = read_file(depot->disk, whole, CN_DEPOT_MODULE_SIZE_MAX, out, err);
    if (rc == 0 && cn_depot_need(depot, code, code, &missing) == 0)
        rc = read_file(depot->disk, whole, CN_DEPOT_MODULE_SIZE_MAX, out, err);
    if (rc == 0)
        rc = cn_err_set(err, CN_ECORRUPT, "the module %.60s is gone", path);
    cn_free(whole);
    return rc < 0 ? rc : 0;
}

bool cn_depot_has_asset(struct cn_depot *depot, const char *worker, const char *hash)
{
    char *path = cn_sprintf("%s/deployed/assets/%s/%s", depot->root, worker, hash);
    bool is_there = access(path, R_OK) == 0;
    cn_free(path);
    return is_there;
}

int cn_depot_link_asset(struct cn_depot *depot, const char *code, const char *worker,
                        const char *path, const char *hash, struct cn_err *err)
{
    CN_ASSERT(cn_depot_path_is_good(path, strlen(path)));
    char *to = cn_sprintf("deployed/code/%s/assets/%s", code, path);
    char *from_whole = cn_sprintf("%s/deployed/assets/%s/%s", depot->root, worker, hash);
    char *to_whole = cn_sprintf("%s/%s", depot->root, to);
    int rc = make_parents(depot, to, err);
    if (rc == 0 && link(from_whole, to_whole) < 0) {
        rc = cn_err_errno(err, errno, "the asset %s cannot be kept", path);
        if (rc == -ENOENT)
            rc = cn_err_set(err, CN_ENOTFOUND, "the asset %s was not uploaded", path);
    }
    depot->unsynced = true;
    cn_free(to);
    cn_free(from_whole);
    cn_free(to_whole);
    return rc;
}

int cn_depot_put_version(struct cn_depot *depot, const char *id, struct cn_buf *json,
                         struct cn_err *err)
{
    char *path = cn_sprintf("deployed/versions/%s.json", id);
    cn_sealed_put(json);
    int rc = json->size > CN_DEPOT_VERSION_SIZE_MAX
                 ? cn_err_set(err, CN_ELIMIT, "the metadata is larger than %u MiB",
                              CN_DEPOT_VERSION_SIZE_MAX >> 20)
                 : cn_depot_write_file(depot, path, json->data, json->size, err);
    cn_free(path);
    return rc;
}

struct cn_json *cn_depot_read_version_of(struct cn_disk *disk, const char *id, struct cn_err *err)
{
    struct cn_buf text = {0};
    struct cn_json *json = NULL;
    char *path = cn_sprintf("deployed/versions/%s.json", id);
    int rc = cn_depot_read_sealed(disk, path, CN_DEPOT_VERSION_SIZE_MAX, &text, err);
    if (rc == 0)
        cn_err_set(err, CN_ECORRUPT, "%s is not there", path);
    if (rc == 1)
        json = cn_json_parse((const char *)text.data, text.size, err);
    cn_buf_fini(&text);
    cn_free(path);
    return json;
}

struct cn_json *cn_depot_read_version(struct cn_depot *depot, const char *id, struct cn_err *err)
{
    struct cn_err missing = {0};
    struct cn_json *version = cn_depot_read_version_of(depot->disk, id, err);
    if (version || cn_depot_need(depot, id, NULL, &missing) < 0)
        return version;
    *err = (struct cn_err){0};
    return cn_depot_read_version_of(depot->disk, id, err);
}

void cn_depot_hide_place(const struct cn_depot *depot, struct cn_err *err)
{
    static const char name[] = "/wrangler.json";
    size_t size = strlen(depot->root);
    if (strncmp(err->text, depot->root, size) != 0 ||
        strncmp(err->text + size, "/deployed/code/", 15) != 0)
        return;
    const char *at = strstr(err->text + size, name);
    if (!at)
        return;
    at += sizeof(name) - 1;
    at += strspn(at, ":0123456789 ");
    memmove(err->text, at, strlen(at) + 1);
}

char *cn_depot_code_folder(struct cn_depot *depot, const struct cn_depot_script *script,
                           const char *version)
{
    const struct cn_depot_version *found = cn_depot_find_version(script, version);
    return cn_sprintf("%s/deployed/code/%s", depot->root, found ? found->code : version);
}

/* --- secrets (D4) ------------------------------------------------------------------------------
 */

void cn_depot_hash(const void *bytes, size_t size, char digits[33])
{
    uint8_t sum[EVP_MAX_MD_SIZE];
    int good = EVP_Digest(bytes, size, sum, NULL, EVP_sha256(), NULL);
    CN_ASSERT(good == 1);
    cn_hex_encode(sum, 16, digits);
    digits[32] = 0;
}

static void add_context(EVP_CIPHER_CTX *cipher, bool encrypts, const char *worker, const char *name)
{
    int size;
    const char *const parts[] = {worker, name};
    for (size_t i = 0; i < CN_ARRAY_COUNT(parts); i++) {
        /* With its NUL, so that "a","bc" is not "ab","c". */
        int count = (int)strlen(parts[i]) + 1;
        int good = encrypts
                       ? EVP_EncryptUpdate(cipher, NULL, &size, (const uint8_t *)parts[i], count)
                       : EVP_DecryptUpdate(cipher, NULL, &size, (const uint8_t *)parts[i], count);
        CN_ASSERT(good == 1);
    }
}

void cn_depot_seal(struct cn_depot *depot, const char *worker, const char *name, const char *text,
                   size_t size, struct cn_buf *sealed)
{
    struct cn_buf bytes = {0};
    int count = 0;
    cn_buf_reserve(&bytes, NONCE_SIZE + size + TAG_SIZE);
    cn_rand_secure(bytes.data, NONCE_SIZE);
    uint8_t *out = bytes.data + NONCE_SIZE;
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    CN_ASSERT(cipher);
    int good = EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, depot->key, bytes.data);
    CN_ASSERT(good == 1);
    add_context(cipher, true, worker, name);
    good = EVP_EncryptUpdate(cipher, out, &count, (const uint8_t *)text, (int)size);
    CN_ASSERT(good == 1 && (size_t)count == size);
    good = EVP_EncryptFinal_ex(cipher, out + size, &count);
    CN_ASSERT(good == 1);
    good = EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, out + size);
    CN_ASSERT(good == 1);
    EVP_CIPHER_CTX_free(cipher);
    bytes.size = NONCE_SIZE + size + TAG_SIZE;
    cn_base64_encode(sealed, bytes.data, bytes.size);
    cn_buf_fini(&bytes);
}

bool cn_depot_unseal(struct cn_depot *depot, const char *worker, const char *name,
                     const char *sealed, size_t size, struct cn_buf *text)
{
    struct cn_buf bytes = {0};
    int count = 0, rest = 0;
    if (!cn_base64_decode(&bytes, sealed, size) || bytes.size < NONCE_SIZE + TAG_SIZE) {
        cn_buf_fini(&bytes);
        return false;
    }
    size_t plain = bytes.size - NONCE_SIZE - TAG_SIZE;
    const uint8_t *in = bytes.data + NONCE_SIZE;
    cn_buf_reserve(text, plain + TAG_SIZE);
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    CN_ASSERT(cipher);
    int good = EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, depot->key, bytes.data);
    CN_ASSERT(good == 1);
    add_context(cipher, false, worker, name);
    bool right =
        EVP_DecryptUpdate(cipher, text->data + text->size, &count, in, (int)plain) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, (void *)(in + plain)) == 1 &&
        EVP_DecryptFinal_ex(cipher, text->data + text->size + count, &rest) == 1;
    if (right)
        text->size += plain;
    EVP_CIPHER_CTX_free(cipher);
    cn_buf_fini(&bytes);
    return right;
}
