/* SPDX-License-Identifier: Apache-2.0 */
#include "service/analytics/control_nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analytics/points.h"
#include "base/assert.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/wire.h"
#include "object/node.h"
#include "service/analytics/analytics.h"
#include "service/node_calls.h"
#include "service/service.h"

#define NAMES_MAX (1u << 20) /* segments of a dataset, datasets of a node */
#define NAME_MAX_SIZE 255
#define SEGMENT_SUFFIX ".seg"

/* --- as bytes -------------------------------------------------------------------------------- */

enum { ASK_LIST = 1, ASK_READ };

struct asked {
    uint32_t op;
    char *dataset; /* owned; NULL: datasets are listed */
    char *segment; /* owned; of ASK_READ */
    uint64_t offset, size;
};

static const struct cn_wire_field asked_fields[] = {
    CN_WIRE_UINT(1, struct asked, op, ASK_READ),
    CN_WIRE_TEXT(2, struct asked, dataset, NAME_MAX_SIZE),
    CN_WIRE_TEXT(3, struct asked, segment, NAME_MAX_SIZE),
    CN_WIRE_UINT(4, struct asked, offset, INT64_MAX),
    CN_WIRE_UINT(5, struct asked, size, CN_ANALYTICS_PIECE_MAX),
    CN_WIRE_END};

struct item {
    char *name; /* owned */
    bool is_dir;
};

struct answered {
    bool missing; /* there is no such dataset or segment */
    struct item *items;
    size_t count;
    uint64_t file_size;
    struct cn_buf bytes;
};

static const struct cn_wire_field item_fields[] = {
    CN_WIRE_TEXT(1, struct item, name, NAME_MAX_SIZE), CN_WIRE_BOOL(2, struct item, is_dir),
    CN_WIRE_END};

static const struct cn_wire_field answered_fields[] = {
    CN_WIRE_BOOL(1, struct answered, missing),
    CN_WIRE_LIST(2, struct answered, items, count, item_fields, NAMES_MAX),
    CN_WIRE_UINT(3, struct answered, file_size, INT64_MAX),
    CN_WIRE_BUF(4, struct answered, bytes, CN_ANALYTICS_PIECE_MAX), CN_WIRE_END};

/* --- answering ------------------------------------------------------------------------------- */

/* Digits, a dash, digits: as points.c names them. */
static bool is_segment(const char *name)
{
    size_t size = strlen(name), digits = strspn(name, "0123456789-");
    return digits >= 10 && digits + strlen(SEGMENT_SUFFIX) == size &&
           strcmp(name + digits, SEGMENT_SUFFIX) == 0;
}

static int answer_list(struct cn_disk *disk, const struct asked *asked, struct answered *answered,
                       struct cn_err *err)
{
    struct cn_disk_entries entries;
    char *folder =
        asked->dataset ? cn_sprintf(CN_POINTS_DIR "/%s", asked->dataset) : cn_strdup(CN_POINTS_DIR);
    int rc = cn_disk_entries(disk, folder, &entries);
    answered->missing = rc == -ENOENT;
    if (rc < 0 && rc != -ENOENT)
        cn_err_errno(err, -rc, "cannot list %s", folder);
    cn_free(folder);
    if (rc < 0)
        return answered->missing ? 0 : err->code;
    answered->items = cn_alloc_zero((entries.count + 1) * sizeof(*answered->items));
    for (size_t i = 0; i < entries.count && i < NAMES_MAX; i++) {
        if (asked->dataset && !is_segment(entries.items[i].name))
            continue;
        answered->items[answered->count++] =
            (struct item){cn_strdup(entries.items[i].name), entries.items[i].is_dir};
    }
    cn_disk_entries_fini(&entries);
    return 0;
}

static int answer_read(struct cn_disk *disk, const struct asked *asked, struct answered *answered,
                       struct cn_err *err)
{
    struct cn_disk_file *file;
    char *path = cn_sprintf(CN_POINTS_DIR "/%s/%s", asked->dataset, asked->segment);
    int rc = cn_disk_open(disk, path, CN_DISK_READONLY, &file);
    answered->missing = rc == -ENOENT;
    if (rc == 0) {
        int64_t size = cn_disk_size(file), got = 0;
        cn_buf_reserve(&answered->bytes, asked->size);
        if (asked->size)
            got = cn_disk_read(file, answered->bytes.data, asked->size, asked->offset);
        cn_disk_close(file);
        rc = size < 0 ? (int)size : got < 0 ? (int)got : 0;
        answered->file_size = rc < 0 ? 0 : (uint64_t)size;
        answered->bytes.size = rc < 0 ? 0 : (size_t)got;
    }
    if (rc < 0 && !answered->missing)
        cn_err_errno(err, -rc, "cannot read %s", path);
    cn_free(path);
    return rc < 0 && !answered->missing ? err->code : 0;
}

static int check(const struct asked *asked)
{
    if (asked->dataset && cn_points_name_check(asked->dataset, NULL) < 0)
        return CN_EPROTOCOL;
    if (asked->op == ASK_READ)
        return asked->dataset && asked->segment && is_segment(asked->segment) ? 0 : CN_EPROTOCOL;
    return asked->op == ASK_LIST ? 0 : CN_EPROTOCOL;
}

int cn_analytics_asked(struct cn_services *services, const uint8_t *bytes, size_t size,
                       struct cn_buf *answer, struct cn_err *err)
{
    struct asked asked = {0};
    struct answered answered = {0};
    int rc = cn_wire_get(asked_fields, &asked, bytes, size, NULL);
    if (rc == 0)
        rc = check(&asked);
    if (rc < 0) {
        cn_err_set(err, rc, "this is no question about data points");
        goto clear;
    }
    if (asked.op == ASK_LIST && services->points)
        cn_points_flush(services->points); /* F1 */
    rc = asked.op == ASK_LIST ? answer_list(services->disk, &asked, &answered, err)
                              : answer_read(services->disk, &asked, &answered, err);
    if (rc == 0)
        cn_wire_put(answered_fields, &answered, answer);
clear:
    cn_wire_clear(asked_fields, &asked);
    cn_wire_clear(answered_fields, &answered);
    return rc;
}

/* --- asking ---------------------------------------------------------------------------------- */

struct nodes {
    struct cn_analytics_nodes base;
    struct cn_disk *own;
    struct cn_node *node;
    struct cn_other others[CN_OTHERS_MAX];
    size_t count;
};

struct nodes_file {
    struct cn_disk_file base;
    struct cn_disk_file *own; /* owned; NULL: it is another's */
    size_t other;
    char *dataset, *segment; /* owned */
    uint64_t size;
    struct cn_buf piece; /* that was read last, */
    uint64_t piece_at;   /* and from where */
};

static struct nodes *nodes_of(struct cn_disk *disk)
{
    return CN_CONTAINER_OF(disk, struct nodes, base.disk);
}

static struct nodes_file *file_of(struct cn_disk_file *file)
{
    return CN_CONTAINER_OF(file, struct nodes_file, base);
}

/* 0, -ENOENT, or -EIO, and then F2 says why. `answered` is to be cleared. */
static int ask(struct nodes *nodes, size_t other, const struct asked *asked,
               struct answered *answered)
{
    struct cn_node_calls_question question = {.disk = nodes->others[other].disk,
                                              .def = &cn_service_analytics};
    struct cn_err err = {0};
    cn_wire_put(asked_fields, asked, &question.asked);
    int rc = cn_node_calls_wait(nodes->node, &question, &err);
    if (rc == 0) {
        rc = cn_wire_get(answered_fields, answered, question.answer.data, question.answer.size,
                         NULL);
        if (rc < 0)
            cn_err_set(&err, rc, "its answer cannot be read");
    }
    cn_buf_fini(&question.asked);
    cn_buf_fini(&question.answer);
    if (rc < 0 && !nodes->base.err.code)
        cn_err_set(&nodes->base.err, CN_ECLOSED, "the data points of node %s: %s",
                   nodes->others[other].name, err.text);
    return rc < 0 ? -EIO : answered->missing ? -ENOENT : 0;
}

/* "analytics", or "analytics/DATASET": then the dataset; NULL: the former. */
static const char *dataset_of(const char *folder)
{
    const char *slash = strchr(folder, '/');
    return slash ? slash + 1 : NULL;
}

struct listing {
    void (*each)(void *data, const char *name, bool is_dir);
    void *data;
    struct cn_map names; /* that were told */
};

static void tell(void *data, const char *name, bool is_dir)
{
    struct listing *listing = data;
    if (cn_map_find(&listing->names, name, strlen(name)))
        return;
    (void)cn_map_set(&listing->names, name, strlen(name), listing);
    listing->each(listing->data, name, is_dir);
}

/* Segments of others get names of their own. */
static void tell_others(struct listing *listing, size_t other, const char *dataset,
                        const struct answered *answered)
{
    for (size_t i = 0; i < answered->count; i++) {
        const struct item *item = &answered->items[i];
        if (!item->name || (dataset && !is_segment(item->name)))
            continue;
        if (!dataset) {
            if (cn_points_name_check(item->name, NULL) == 0)
                tell(listing, item->name, item->is_dir);
            continue;
        }
        int stem = (int)(strlen(item->name) - strlen(SEGMENT_SUFFIX));
        char *name = cn_sprintf("%.*s~%zu" SEGMENT_SUFFIX, stem, item->name, other);
        tell(listing, name, item->is_dir);
        cn_free(name);
    }
}

static int far_list(struct cn_disk *disk, const char *path,
                    void (*each)(void *data, const char *name, bool is_dir), void *data)
{
    struct nodes *nodes = nodes_of(disk);
    struct listing listing = {.each = each, .data = data};
    cn_map_init(&listing.names);
    int rc = cn_disk_list(nodes->own, path, tell, &listing);
    bool found = rc == 0;
    for (size_t i = 0; i < nodes->count && (rc == 0 || rc == -ENOENT); i++) {
        struct asked asked = {.op = ASK_LIST, .dataset = (char *)dataset_of(path)};
        struct answered answered = {0};
        rc = ask(nodes, i, &asked, &answered);
        if (rc == 0)
            tell_others(&listing, i, asked.dataset, &answered);
        found |= rc == 0;
        cn_wire_clear(answered_fields, &answered);
    }
    cn_map_fini(&listing.names);
    return found && rc == -ENOENT ? 0 : rc;
}

static int read_piece(struct nodes *nodes, struct nodes_file *file, uint64_t offset, size_t size)
{
    struct asked asked = {.op = ASK_READ,
                          .dataset = file->dataset,
                          .segment = file->segment,
                          .offset = offset,
                          .size = size};
    struct answered answered = {0};
    int rc = ask(nodes, file->other, &asked, &answered);
    if (rc == 0) {
        cn_buf_fini(&file->piece);
        file->piece = answered.bytes;
        file->piece_at = offset;
        file->size = answered.file_size;
        answered.bytes = (struct cn_buf){0};
    }
    cn_wire_clear(answered_fields, &answered);
    return rc;
}

static void far_close(struct cn_disk_file *base)
{
    struct nodes_file *file = file_of(base);
    if (file->own)
        cn_disk_close(file->own);
    cn_free(file->dataset);
    cn_free(file->segment);
    cn_buf_fini(&file->piece);
    cn_free(file);
}

/* The other whose segment it is; -1: it is ours. */
static long other_of(const struct nodes *nodes, const char *path)
{
    const char *mark = strrchr(path, '~');
    char *end;
    unsigned long other = mark ? strtoul(mark + 1, &end, 10) : 0;
    return mark && strcmp(end, SEGMENT_SUFFIX) == 0 && other < nodes->count ? (long)other : -1;
}

static int far_open(struct cn_disk *disk, const char *path, int flags, struct cn_disk_file **out)
{
    struct nodes *nodes = nodes_of(disk);
    long other = other_of(nodes, path);
    struct nodes_file *file = CN_NEW(struct nodes_file);
    file->base.disk = disk;
    int rc;
    if (other < 0) {
        rc = cn_disk_open(nodes->own, path, flags, &file->own);
    } else {
        const char *dataset = dataset_of(path), *name = strchr(dataset, '/') + 1;
        file->other = (size_t)other;
        file->dataset = cn_strndup(dataset, (size_t)(name - 1 - dataset));
        file->segment = cn_sprintf("%.*s" SEGMENT_SUFFIX, (int)(strrchr(name, '~') - name), name);
        rc = read_piece(nodes, file, 0, CN_ANALYTICS_PIECE_MAX);
    }
    if (rc < 0)
        far_close(&file->base);
    else
        *out = &file->base;
    return rc;
}

static int64_t far_size(struct cn_disk_file *base)
{
    struct nodes_file *file = file_of(base);
    return file->own ? cn_disk_size(file->own) : (int64_t)file->size;
}

static int64_t far_read(struct cn_disk_file *base, void *bytes, size_t size, uint64_t offset)
{
    struct nodes_file *file = file_of(base);
    if (file->own)
        return cn_disk_read(file->own, bytes, size, offset);
    size_t done = 0;
    while (done < size) {
        uint64_t at = offset + done;
        if (at < file->piece_at || at >= file->piece_at + file->piece.size) {
            int rc = read_piece(nodes_of(base->disk), file, at, CN_ANALYTICS_PIECE_MAX);
            if (rc < 0)
                return rc;
            if (!file->piece.size)
                break; /* the end */
        }
        size_t skip = (size_t)(at - file->piece_at), left = file->piece.size - skip;
        size_t take = left < size - done ? left : size - done;
        memcpy((uint8_t *)bytes + done, file->piece.data + skip, take);
        done += take;
    }
    return (int64_t)done;
}

static const struct cn_disk_ops ops = {
    .open = far_open, .close = far_close, .read = far_read, .size = far_size, .list = far_list};

struct cn_analytics_nodes *cn_analytics_nodes_new(struct cn_node *node, struct cn_disk *own)
{
    struct nodes *nodes = CN_NEW(struct nodes);
    nodes->base.disk.ops = &ops;
    nodes->own = own;
    nodes->node = node;
    nodes->count = node ? cn_node_calls_list(cn_node_data(node), nodes->others, CN_OTHERS_MAX) : 0;
    if (nodes->count)
        return &nodes->base;
    cn_free(nodes);
    return NULL;
}

void cn_analytics_nodes_free(struct cn_analytics_nodes *nodes)
{
    cn_free(nodes ? CN_CONTAINER_OF(nodes, struct nodes, base) : NULL);
}
