/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/version_files.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "membership/registry.h"
#include "text/base64.h"
#include "text/hex.h"
#include "v4/depot.h"

#define PIECE ((size_t)256 << 10)
#define QUESTION_BYTES ((size_t)1 << 20) /* of files, in one question */
#define QUESTION_FILES 400
#define FILE_SIZE_MAX ((int64_t)256 << 20)
#define VERSION_FILE "version.json"
#define SUMS "sums.json"
#define BUILT_SUMS "bundle.json"
#define JOB "bundle/job.json" /* depot_check.c: of no use to others */
#define SUM_SIZE 65           /* hexadecimal, and its NUL */

struct file {
    char *path; /* owned; in the bundle */
    char sum[SUM_SIZE];
    uint64_t size;
};

struct files {
    struct file *items; /* owned */
    size_t count;
};

/* --- words ------------------------------------------------------------------------------------ */

void cn_version_files_array_add(struct cn_buf *array, const char *text)
{
    cn_buf_append_str(array, array->size ? ",\"" : "{\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            cn_buf_append_byte(array, '\\');
        cn_buf_append_byte(array, (uint8_t)*text);
    }
    cn_buf_append_byte(array, '"');
}

char *cn_version_files_array_end(struct cn_buf *array)
{
    cn_buf_append_str(array, array->size ? "}" : "{}");
    return cn_buf_text(array);
}

static void array_add_number(struct cn_buf *array, uint64_t number)
{
    cn_buf_printf(array, "%c%" PRIu64, array->size ? ',' : '{', number);
}

/* What the engine answers; that it knows nothing of the change is an error. */
static int ask(const struct cn_version_files *version_files, const char *sql,
               const char *const *values, size_t count, struct cn_buf *text, struct cn_err *err)
{
    int rc = cn_registry_ask(version_files->registry, sql, values, count, text, err);
    if (rc < 0)
        return rc;
    if (strcmp(cn_buf_text(text), "lost") == 0)
        return cn_err_set(err, CN_ECLOSED,
                          "another node has taken this one for dead, and its deployment over");
    if (strcmp(cn_buf_text(text), "full") == 0)
        return cn_err_set(err, CN_ELIMIT,
                          "the files of all versions take more than %" PRIu64
                          " GiB: delete workers",
                          CN_VERSION_FILES_SIZE_MAX >> 30);
    return 0;
}

/* --- files ------------------------------------------------------------------------------------ */

static void fini_files(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        cn_free(files->items[i].path);
    cn_free(files->items);
}

static struct file *add_file(struct files *files, const char *path)
{
    CN_GROW_COUNTED(files->items, files->count);
    files->items[files->count] = (struct file){.path = cn_strdup(path)};
    return &files->items[files->count++];
}

/* Below the data directory; owned. */
static char *place_of(const char *id, const char *path)
{
    return strcmp(path, VERSION_FILE) == 0 ? cn_sprintf("deployed/versions/%s.json", id)
                                           : cn_sprintf("deployed/code/%s/%s", id, path);
}

static int read_whole(const struct cn_version_files *version_files, const char *path,
                      struct cn_buf *out, struct cn_err *err)
{
    struct cn_disk_file *file;
    int rc = cn_disk_open(version_files->disk, path, CN_DISK_READONLY, &file);
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot read %s", path);
    int64_t size = cn_disk_size(file), count = 0;
    if (size > FILE_SIZE_MAX) {
        rc = cn_err_set(err, CN_ELIMIT, "%s is too large", path);
    } else if (size > 0) {
        cn_buf_reserve(out, (size_t)size);
        count = cn_disk_read(file, out->data + out->size, (size_t)size, 0);
        if (count != size)
            rc = cn_err_errno(err, count < 0 ? (int)-count : EIO, "cannot read %s", path);
        else
            out->size += (size_t)count;
    }
    cn_disk_close(file);
    return rc;
}

static void sum_bytes(const struct cn_buf *bytes, char sum[SUM_SIZE])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    int good = EVP_Digest(bytes->size ? bytes->data : (const uint8_t *)"", bytes->size, digest,
                          NULL, EVP_sha256(), NULL);
    CN_ASSERT(good == 1);
    cn_hex_encode(digest, (SUM_SIZE - 1) / 2, sum);
    sum[SUM_SIZE - 1] = 0;
}

struct gathering {
    const struct cn_version_files *version_files;
    const char *id;
    struct files files;
    struct cn_err *err;
};

static int gather(struct gathering *gathering, const char *path)
{
    struct cn_buf bytes = {0};
    char *place = place_of(gathering->id, path);
    int rc = read_whole(gathering->version_files, place, &bytes, gathering->err);
    if (rc == 0) {
        struct file *file = add_file(&gathering->files, path);
        file->size = bytes.size;
        sum_bytes(&bytes, file->sum);
    }
    cn_buf_fini(&bytes);
    cn_free(place);
    return rc;
}

static int gather_code(void *data, const char *place)
{
    struct gathering *gathering = data;
    const char *path = place + strlen("deployed/code/") + strlen(gathering->id) + 1;
    return strcmp(path, JOB) == 0 ? 0 : gather(gathering, path);
}

/* --- out -------------------------------------------------------------------------------------- */

/* Files to be sent, until they are enough for a question. */
struct parcel {
    struct cn_buf sums, parts, bodies;
    size_t size;
};

static int send_parcel(const struct cn_version_files *version_files, const char *who,
                       struct parcel *parcel, struct cn_err *err)
{
    struct cn_buf told = {0};
    char limit[24];
    if (!parcel->size)
        return 0;
    snprintf(limit, sizeof(limit), "%" PRIu64, CN_VERSION_FILES_SIZE_MAX);
    const char *values[] = {who, cn_version_files_array_end(&parcel->sums),
                            cn_version_files_array_end(&parcel->parts),
                            cn_version_files_array_end(&parcel->bodies), limit};
    int rc = ask(version_files,
                 "cairn.depot_put($1::text, $2::text[], $3::int[], $4::text[], $5::bigint)", values,
                 CN_ARRAY_COUNT(values), &told, err);
    cn_buf_clear(&parcel->sums);
    cn_buf_clear(&parcel->parts);
    cn_buf_clear(&parcel->bodies);
    parcel->size = 0;
    cn_buf_fini(&told);
    return rc;
}

static int send_file(const struct cn_version_files *version_files, const char *who, const char *id,
                     const struct file *file, struct parcel *parcel, struct cn_err *err)
{
    struct cn_buf bytes = {0}, body = {0};
    char *place = place_of(id, file->path);
    char sum[SUM_SIZE];
    int rc = read_whole(version_files, place, &bytes, err);
    sum_bytes(&bytes, sum);
    if (rc == 0 && strcmp(sum, file->sum) != 0)
        rc = cn_err_set(err, CN_ECORRUPT, "%s changes while it is read", place);
    for (size_t at = 0, part = 0; rc == 0 && (at < bytes.size || part == 0); at += PIECE, part++) {
        size_t size = bytes.size - at < PIECE ? bytes.size - at : PIECE;
        cn_buf_clear(&body);
        cn_base64_encode(&body, bytes.data + at, size);
        cn_version_files_array_add(&parcel->sums, sum);
        array_add_number(&parcel->parts, part);
        cn_version_files_array_add(&parcel->bodies, cn_buf_text(&body));
        parcel->size += size + SUM_SIZE;
        if (parcel->size >= QUESTION_BYTES)
            rc = send_parcel(version_files, who, parcel, err);
    }
    cn_buf_fini(&bytes);
    cn_buf_fini(&body);
    cn_free(place);
    return rc;
}

/* Names some files, and sends those whose bytes are not there. */
static int put_some(const struct cn_version_files *version_files, const char *who, const char *id,
                    const struct file *files, size_t count, struct cn_err *err)
{
    struct cn_buf ids = {0}, paths = {0}, sums = {0}, sizes = {0}, want = {0};
    struct parcel parcel = {0};
    for (size_t i = 0; i < count; i++) {
        cn_version_files_array_add(&ids, id);
        cn_version_files_array_add(&paths, files[i].path);
        cn_version_files_array_add(&sums, files[i].sum);
        array_add_number(&sizes, files[i].size);
    }
    const char *values[] = {who, cn_version_files_array_end(&ids),
                            cn_version_files_array_end(&paths), cn_version_files_array_end(&sums),
                            cn_version_files_array_end(&sizes)};
    int rc = ask(version_files,
                 "cairn.depot_file($1::text, $2::text[], $3::text[], $4::text[], $5::bigint[])",
                 values, CN_ARRAY_COUNT(values), &want, err);
    for (size_t i = 0; i < count && rc == 0; i++) {
        char *found = strstr(cn_buf_text(&want), files[i].sum);
        if (!found)
            continue;
        memset(found, '-', SUM_SIZE - 1); /* the same bytes go once */
        rc = send_file(version_files, who, id, &files[i], &parcel, err);
    }
    if (rc == 0)
        rc = send_parcel(version_files, who, &parcel, err);
    struct cn_buf *const all[] = {&ids,  &paths,       &sums,         &sizes,
                                  &want, &parcel.sums, &parcel.parts, &parcel.bodies};
    for (size_t i = 0; i < CN_ARRAY_COUNT(all); i++)
        cn_buf_fini(all[i]);
    return rc;
}

int cn_version_files_put(const struct cn_version_files *version_files, const char *who,
                         const char *id, struct cn_err *err)
{
    struct gathering gathering = {.version_files = version_files, .id = id, .err = err};
    char *code = cn_sprintf("deployed/code/%s", id);
    int rc = gather(&gathering, VERSION_FILE);
    if (rc == 0)
        rc = cn_disk_walk(version_files->disk, code, gather_code, &gathering);
    if (rc < 0 && !err->code)
        cn_err_errno(err, -rc, "cannot read %s", code);
    const struct files *files = &gathering.files;
    for (size_t i = 0; i < files->count && rc == 0; i += QUESTION_FILES) {
        size_t left = files->count - i;
        rc = put_some(version_files, who, id, files->items + i,
                      left < QUESTION_FILES ? left : QUESTION_FILES, err);
    }
    fini_files(&gathering.files);
    cn_free(code);
    return rc;
}

/* --- in --------------------------------------------------------------------------------------- */

bool cn_version_files_has(const struct cn_version_files *version_files, const char *id, bool code)
{
    char *path = place_of(id, code ? SUMS : VERSION_FILE);
    bool has = cn_disk_has(version_files->disk, path);
    cn_free(path);
    return has;
}

/* F1: "ID SUM SIZE PATH". */
static bool read_line(char *line, const char *id, struct files *files)
{
    size_t size = strlen(id);
    char *end;
    if (strncmp(line, id, size) != 0 || line[size] != ' ')
        return false;
    const char *sum = line + size + 1;
    if (strspn(sum, "0123456789abcdef") != SUM_SIZE - 1 || sum[SUM_SIZE - 1] != ' ')
        return false;
    uint64_t bytes = strtoull(sum + SUM_SIZE, &end, 10);
    if (*end != ' ' || bytes > (uint64_t)FILE_SIZE_MAX ||
        !cn_depot_path_is_good(end + 1, strlen(end + 1)))
        return false;
    struct file *file = add_file(files, end + 1);
    snprintf(file->sum, sizeof(file->sum), "%.*s", SUM_SIZE - 1, sum);
    file->size = bytes;
    return true;
}

static int list_bundle(const struct cn_version_files *version_files, const char *id,
                       struct files *files, struct cn_err *err)
{
    struct cn_buf ids = {0}, text = {0};
    cn_version_files_array_add(&ids, id);
    const char *values[] = {cn_version_files_array_end(&ids)};
    int rc = ask(version_files, "cairn.depot_list($1::text[])", values, 1, &text, err);
    char *state = NULL;
    for (char *line = rc == 0 ? strtok_r(cn_buf_text(&text), "\n", &state) : NULL; line && rc == 0;
         line = strtok_r(NULL, "\n", &state)) {
        if (!read_line(line, id, files))
            rc = cn_err_set(err, CN_EPROTOCOL, "the engine's list of version %s is none", id);
    }
    if (rc == 0 && !files->count)
        rc = cn_err_set(err, CN_ENOTFOUND, "the engine does not have version %s", id);
    cn_buf_fini(&ids);
    cn_buf_fini(&text);
    return rc;
}

/* Pieces of files that are asked for together, in the order of the files. */
struct order {
    struct cn_buf sums, parts, told;
};

static void order_clear(struct order *order)
{
    cn_buf_clear(&order->sums);
    cn_buf_clear(&order->parts);
    cn_buf_clear(&order->told);
}

static int order_send(const struct cn_version_files *version_files, struct order *order,
                      struct cn_err *err)
{
    const char *values[] = {cn_version_files_array_end(&order->sums),
                            cn_version_files_array_end(&order->parts)};
    return ask(version_files, "cairn.depot_get($1::text[], $2::int[])", values, 2, &order->told,
               err);
}

/* Appends the piece to `bytes`. */
static bool order_take(struct order *order, const char *sum, size_t part, struct cn_buf *bytes)
{
    char key[SUM_SIZE + 24];
    int size = snprintf(key, sizeof(key), "%s %zu ", sum, part);
    for (const char *line = cn_buf_text(&order->told); line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, (size_t)size) == 0)
            return cn_base64_decode(bytes, line + size, strcspn(line + size, "\n"));
    }
    return false;
}

static int keep_file(const struct cn_version_files *version_files, const char *id,
                     const struct file *file, const struct cn_buf *bytes, bool last,
                     struct cn_err *err)
{
    char sum[SUM_SIZE];
    sum_bytes(bytes, sum);
    if (bytes->size != file->size || strcmp(sum, file->sum) != 0)
        return cn_err_set(err, CN_ECORRUPT,
                          "%s of version %s does not match its checksum in the engine", file->path,
                          id);
    char *place = place_of(id, file->path);
    struct cn_disk_file *out;
    int rc = 0;
    for (char *slash = strchr(place, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        rc = cn_disk_mkdir(version_files->disk, place); /* synced with all the rest */
        *slash = '/';
    }
    if (rc == 0 && last) {
        rc = cn_disk_replace(version_files->disk, place, bytes->data, bytes->size);
    } else if (rc == 0) {
        (void)cn_disk_unlink(version_files->disk,
                             place); /* it may be a link to what others have, too */
        rc = cn_disk_open(version_files->disk, place, CN_DISK_CREATE | CN_DISK_TRUNCATE, &out);
        if (rc == 0) {
            rc = cn_disk_write_all(out, bytes->data, bytes->size, 0);
            cn_disk_close(out);
        }
    }
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot write %s", place);
    cn_free(place);
    return rc;
}

/* One file, however large. */
static int fetch_file(const struct cn_version_files *version_files, const char *id,
                      const struct file *file, bool last, struct cn_err *err)
{
    struct order order = {0};
    struct cn_buf bytes = {0};
    size_t parts = (size_t)((file->size + PIECE - 1) / PIECE);
    int rc = 0;
    if (!parts)
        parts = 1;
    for (size_t part = 0; part < parts && rc == 0;) {
        size_t first = part;
        order_clear(&order);
        for (; part < parts && (part - first) * PIECE < QUESTION_BYTES; part++) {
            cn_version_files_array_add(&order.sums, file->sum);
            array_add_number(&order.parts, part);
        }
        rc = order_send(version_files, &order, err);
        for (size_t i = first; i < part && rc == 0; i++) {
            if (!order_take(&order, file->sum, i, &bytes))
                rc = cn_err_set(err, CN_ENOTFOUND, "the engine lacks %s of version %s", file->path,
                                id);
        }
    }
    if (rc == 0)
        rc = keep_file(version_files, id, file, &bytes, last, err);
    cn_buf_fini(&order.sums);
    cn_buf_fini(&order.parts);
    cn_buf_fini(&order.told);
    cn_buf_fini(&bytes);
    return rc;
}

/* Files of one piece, as many as a question takes: from files[i] on. How many; negative: an error.
 */
static int fetch_some(const struct cn_version_files *version_files, const char *id,
                      const struct file *files, size_t count, struct cn_err *err)
{
    struct order order = {0};
    size_t size = 0, taken = 0;
    int rc = 0;
    for (; taken < count && taken < QUESTION_FILES && size < QUESTION_BYTES &&
           files[taken].size <= PIECE;
         taken++) {
        cn_version_files_array_add(&order.sums, files[taken].sum);
        array_add_number(&order.parts, 0);
        size += files[taken].size;
    }
    if (!taken)
        return fetch_file(version_files, id, &files[0], false, err) < 0 ? err->code : 1;
    rc = order_send(version_files, &order, err);
    for (size_t i = 0; i < taken && rc == 0; i++) {
        struct cn_buf bytes = {0};
        rc = order_take(&order, files[i].sum, 0, &bytes)
                 ? keep_file(version_files, id, &files[i], &bytes, false, err)
                 : cn_err_set(err, CN_ENOTFOUND, "the engine lacks %s of version %s", files[i].path,
                              id);
        cn_buf_fini(&bytes);
    }
    cn_buf_fini(&order.sums);
    cn_buf_fini(&order.parts);
    cn_buf_fini(&order.told);
    return rc < 0 ? rc : (int)taken;
}

/* F2: those that say that the others are there come after them, the version's own at the end. */
static int rank(const struct file *file)
{
    return strcmp(file->path, VERSION_FILE) == 0 ? 3
           : strcmp(file->path, SUMS) == 0       ? 2
           : strcmp(file->path, BUILT_SUMS) == 0 ? 1
                                                 : 0;
}

static int by_rank(const void *a, const void *b)
{
    return rank(a) - rank(b);
}

int cn_version_files_fetch(const struct cn_version_files *version_files, const char *id, bool code,
                           struct cn_err *err)
{
    struct files files = {0};
    int rc = list_bundle(version_files, id, &files, err);
    if (files.count)
        qsort(files.items, files.count, sizeof(*files.items), by_rank);
    size_t i = 0;
    while (rc >= 0 && code && i < files.count && rank(&files.items[i]) == 0) {
        size_t plain = i;
        while (plain < files.count && rank(&files.items[plain]) == 0)
            plain++;
        rc = fetch_some(version_files, id, files.items + i, plain - i, err);
        i += rc > 0 ? (size_t)rc : 0;
    }
    if (rc >= 0 && i > 0) {
        rc = cn_disk_sync_all(version_files->disk);
        if (rc < 0)
            cn_err_errno(err, -rc, "version %s cannot be made durable", id);
    }
    for (i = 0; i < files.count && rc >= 0; i++) {
        int order = rank(&files.items[i]);
        if (order == 3 || (order > 0 && code))
            rc = fetch_file(version_files, id, &files.items[i], true, err);
    }
    fini_files(&files);
    return rc < 0 ? rc : 0;
}
