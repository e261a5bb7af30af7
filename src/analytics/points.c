/* SPDX-License-Identifier: Apache-2.0 */
#include "analytics/points.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/crc32c.h"
#include "base/diag.h"
#include "base/disk.h"
#include "base/mem.h"

#define DAY_MS ((int64_t)86400000)
#define BLOCK_BYTES_MAX ((size_t)4 << 20)
#define NAME_SIZE_MAX 64
#define SWEEP_MS ((int64_t)3600000) /* between looks for segments that are too old */

/* A point in a lane's buffer: this, the sizes of its blobs (2 bytes each), its doubles, the text of
 * its index and of its blobs. Not aligned. */
struct row {
    uint32_t dataset;
    uint32_t size; /* of all that follows it */
    int64_t time_ms;
    uint32_t interval;
    uint16_t index_size;
    uint8_t blob_count, double_count;
};

struct lane_buffer {
    pthread_mutex_t lock; /* held to append a row, or to swap */
    struct cn_buf rows;
    uint64_t sampled, dropped;
    uint32_t turn; /* counts points while only some are kept */
    bool woken;    /* the flusher has been asked to come early */
};

/* A column that is being filled. */
struct column {
    struct cn_buf values; /* 8 bytes per row, or 4 with the end of a text */
    struct cn_buf bytes;  /* of texts */
    uint32_t count;       /* of rows that it has; those behind have the default */
};

struct dataset {
    char *name; /* owned */
    /* The flusher's: the segment it appends to, and the block that is being filled. */
    struct cn_disk_file *file; /* NULL: none is open */
    char *path;                /* of it; owned */
    uint64_t size;
    int64_t day;
    uint32_t row_count;
    size_t bytes;
    int64_t first_ms, last_ms;
    struct column columns[CN_POINTS_COLUMN_COUNT];
    bool wrote; /* since the last sync */
};

struct cn_points {
    struct cn_points_options options;
    struct lane_buffer *lanes; /* lane_count */
    pthread_mutex_t query_lock;
    pthread_t thread;
    pthread_mutex_t lock;    /* guards what follows */
    pthread_cond_t wake;     /* of the flusher */
    pthread_cond_t done;     /* a flush has ended */
    bool started, stopping;  /* the flusher */
    uint64_t asked, flushed; /* flushes */
    struct dataset *datasets[CN_POINTS_DATASET_MAX];
    uint32_t dataset_count;
    atomic_uint_least64_t written, lost; /* the flusher's */
    int64_t swept_ms;                    /* the flusher's */
    int64_t complained_ms;               /* the flusher's */
    uint64_t complained_of;
};

/* --- writing: on a lane ---------------------------------------------------------------------- */

/* One point in how many is kept at this fill (P2). 0: none. */
static uint32_t sample_interval(size_t used, size_t extra)
{
    if (used + extra > CN_POINTS_BUFFER_MAX)
        return 0;
    return used < CN_POINTS_BUFFER_MAX / 2 ? 1 : used < CN_POINTS_BUFFER_MAX / 4 * 3 ? 10 : 100;
}

static size_t row_size(const struct cn_point *point)
{
    size_t size = point->blob_count * 2 + point->double_count * 8 + point->index.size;
    for (unsigned i = 0; i < point->blob_count; i++)
        size += point->blobs[i].size;
    return size;
}

static void append_row(struct cn_buf *rows, const struct row *row, const struct cn_point *point)
{
    cn_buf_append(rows, row, sizeof(*row));
    for (unsigned i = 0; i < point->blob_count; i++) {
        uint16_t size = (uint16_t)point->blobs[i].size;
        cn_buf_append(rows, &size, sizeof(size));
    }
    cn_buf_append(rows, point->doubles, point->double_count * sizeof(double));
    cn_buf_append(rows, point->index.text, point->index.size);
    for (unsigned i = 0; i < point->blob_count; i++)
        cn_buf_append(rows, point->blobs[i].text, point->blobs[i].size);
}

void cn_points_write(struct cn_points *points, unsigned lane, uint32_t dataset,
                     const struct cn_point *point)
{
    CN_ASSERT(lane < points->options.lane_count && dataset < CN_POINTS_DATASET_MAX);
    CN_ASSERT(point->blob_count <= CN_POINT_BLOB_COUNT &&
              point->double_count <= CN_POINT_DOUBLE_COUNT);
    struct lane_buffer *buffer = &points->lanes[lane];
    struct row row = {
        .dataset = dataset,
        .size = (uint32_t)row_size(point),
        .time_ms = point->time_ms,
        .index_size = (uint16_t)point->index.size,
        .blob_count = (uint8_t)point->blob_count,
        .double_count = (uint8_t)point->double_count,
    };
    pthread_mutex_lock(&buffer->lock);
    row.interval = sample_interval(buffer->rows.size, sizeof(row) + row.size);
    if (row.interval == 0)
        buffer->dropped++;
    else if (row.interval > 1 && ++buffer->turn % row.interval != 0)
        buffer->sampled++;
    else
        append_row(&buffer->rows, &row, point);
    bool wake = buffer->rows.size >= CN_POINTS_WAKE && !buffer->woken;
    if (wake)
        buffer->woken = true;
    pthread_mutex_unlock(&buffer->lock);
    if (wake)
        pthread_cond_signal(&points->wake); /* one that is missed is made up a second later */
}

/* --- blocks: the flusher --------------------------------------------------------------------- */

static void pad_column(struct column *column, unsigned number, uint32_t row_count)
{
    static const uint64_t zero;
    uint64_t one = 1;
    uint32_t end = (uint32_t)column->bytes.size;
    for (; column->count < row_count; column->count++) {
        if (cn_points_is_text(number))
            cn_buf_append(&column->values, &end, sizeof(end));
        else
            cn_buf_append(&column->values, number == CN_POINTS_INTERVAL ? &one : &zero, 8);
    }
}

/* Sets a value of the row that is being added. */
static void put_number(struct dataset *dataset, unsigned number, const void *value)
{
    struct column *column = &dataset->columns[number];
    pad_column(column, number, dataset->row_count);
    cn_buf_append(&column->values, value, 8);
    column->count++;
}

static void put_text(struct dataset *dataset, unsigned number, const uint8_t *text, size_t size)
{
    if (size == 0)
        return;
    struct column *column = &dataset->columns[number];
    pad_column(column, number, dataset->row_count);
    cn_buf_append(&column->bytes, text, size);
    uint32_t end = (uint32_t)column->bytes.size;
    cn_buf_append(&column->values, &end, sizeof(end));
    column->count++;
}

static void add_row(struct dataset *dataset, const struct row *row, const uint8_t *at)
{
    const uint8_t *sizes = at;
    at += row->blob_count * 2;
    if (dataset->row_count == 0 || row->time_ms < dataset->first_ms)
        dataset->first_ms = row->time_ms;
    if (dataset->row_count == 0 || row->time_ms > dataset->last_ms)
        dataset->last_ms = row->time_ms;
    put_number(dataset, CN_POINTS_TIME, &row->time_ms);
    for (unsigned i = 0; i < row->double_count; i++, at += 8) {
        static const uint64_t zero;
        if (memcmp(at, &zero, 8) != 0)
            put_number(dataset, CN_POINTS_DOUBLE + i, at);
    }
    put_text(dataset, CN_POINTS_INDEX, at, row->index_size);
    at += row->index_size;
    for (unsigned i = 0; i < row->blob_count; i++) {
        uint16_t size;
        memcpy(&size, sizes + i * 2, 2);
        put_text(dataset, CN_POINTS_BLOB + i, at, size);
        at += size;
    }
    int64_t interval = row->interval;
    if (interval != 1)
        put_number(dataset, CN_POINTS_INTERVAL, &interval);
    dataset->row_count++;
    dataset->bytes += sizeof(*row) + row->size;
}

static void clear_block(struct dataset *dataset)
{
    for (unsigned i = 0; i < CN_POINTS_COLUMN_COUNT; i++) {
        struct column *column = &dataset->columns[i];
        column->values.size = column->bytes.size = column->count = 0;
        if (column->bytes.capacity > BLOCK_BYTES_MAX)
            cn_buf_fini(&column->bytes);
    }
    dataset->row_count = 0;
    dataset->bytes = 0;
}

static void append_padding(struct cn_buf *out)
{
    static const uint64_t zero;
    cn_buf_append(out, &zero, -out->size & 7);
}

static void build_block(struct dataset *dataset, struct cn_buf *out)
{
    struct cn_points_block head = {.magic = CN_POINTS_MAGIC,
                                   .row_count = dataset->row_count,
                                   .first_ms = dataset->first_ms,
                                   .last_ms = dataset->last_ms};
    struct cn_points_part parts[CN_POINTS_COLUMN_COUNT];
    size_t part_count = 0;
    for (unsigned i = 0; i < CN_POINTS_COLUMN_COUNT; i++) {
        struct column *column = &dataset->columns[i];
        if (column->count == 0)
            continue;
        pad_column(column, i, dataset->row_count);
        head.columns |= (uint64_t)1 << i;
        uint32_t crc = cn_crc32c(0, column->values.data, column->values.size);
        parts[part_count++] = (struct cn_points_part){
            .size = (uint32_t)(column->values.size + column->bytes.size),
            .crc = cn_crc32c(crc, column->bytes.data, column->bytes.size),
        };
    }
    cn_buf_append(out, &head, sizeof(head));
    cn_buf_append(out, parts, part_count * sizeof(*parts));
    for (unsigned i = 0; i < CN_POINTS_COLUMN_COUNT; i++) {
        struct column *column = &dataset->columns[i];
        if (column->count == 0)
            continue;
        cn_buf_append(out, column->values.data, column->values.size);
        cn_buf_append(out, column->bytes.data, column->bytes.size);
        append_padding(out);
    }
    head.size = (uint32_t)out->size;
    memcpy(out->data, &head, sizeof(head));
    size_t skip = offsetof(struct cn_points_block, size);
    head.crc = cn_crc32c(0, out->data + skip, sizeof(head) + part_count * sizeof(*parts) - skip);
    memcpy(out->data, &head, sizeof(head));
}

/* --- segments: the flusher ------------------------------------------------------------------- */

static void close_segment(struct dataset *dataset)
{
    if (!dataset->file)
        return;
    cn_disk_close(dataset->file);
    cn_free(dataset->path);
    dataset->file = NULL;
    dataset->path = NULL;
    dataset->wrote = false;
}

static void day_text(int64_t day, char text[16])
{
    time_t seconds = (time_t)(day * 86400);
    struct tm tm;
    strftime(text, 16, "%Y%m%d", gmtime_r(&seconds, &tm));
}

/* One behind the largest number among the segments of the dataset. */
static int next_number(struct cn_disk *disk, const char *folder, unsigned long *number)
{
    struct cn_disk_entries entries;
    int rc = cn_disk_entries(disk, folder, &entries);
    if (rc < 0)
        return rc;
    *number = 1;
    for (size_t i = 0; i < entries.count; i++) {
        const char *dash = strchr(entries.items[i].name, '-');
        unsigned long here = dash ? strtoul(dash + 1, NULL, 10) : 0;
        if (here >= *number)
            *number = here + 1;
    }
    cn_disk_entries_fini(&entries);
    return 0;
}

static int open_segment(struct cn_points *points, struct dataset *dataset, int64_t day)
{
    struct cn_disk *disk = points->options.disk;
    unsigned long number = 0;
    char date[16];
    char *folder = cn_sprintf(CN_POINTS_DIR "/%s", dataset->name);
    int rc = next_number(disk, folder, &number);
    day_text(day, date);
    char *path = cn_sprintf("%s/%s-%08lu.seg", folder, date, number);
    if (rc == 0)
        rc = cn_disk_open(disk, path, CN_DISK_CREATE | CN_DISK_EXCLUSIVE, &dataset->file);
    if (rc == 0) {
        dataset->path = path;
        dataset->size = 0;
        dataset->day = day;
        path = NULL;
        rc = cn_disk_sync_dir(disk, folder);
        if (rc < 0)
            close_segment(dataset);
    }
    cn_free(path);
    cn_free(folder);
    return rc;
}

/* The points of the block are lost; the next one begins a segment, for this one's end is unknown.
 */
static void block_failed(struct cn_points *points, struct dataset *dataset, int code)
{
    atomic_fetch_add(&points->lost, dataset->row_count);
    cn_error("analytics: %u points of %s are lost: %s", dataset->row_count, dataset->name,
             strerror(-code));
    close_segment(dataset);
    clear_block(dataset);
}

static void write_block(struct cn_points *points, struct dataset *dataset)
{
    if (dataset->row_count == 0)
        return;
    int64_t day = cn_clock_wall_ms(points->options.clock) / DAY_MS;
    if (dataset->file && (dataset->day != day || dataset->size > CN_POINTS_SEGMENT_MAX)) {
        int synced = dataset->wrote ? cn_disk_sync_data(dataset->file) : 0;
        if (synced < 0)
            cn_error("analytics: %s cannot be synced: %s", dataset->path, strerror(-synced));
        close_segment(dataset);
    }
    int rc = dataset->file ? 0 : open_segment(points, dataset, day);
    struct cn_buf block = {0};
    if (rc == 0) {
        build_block(dataset, &block);
        rc = cn_disk_write_all(dataset->file, block.data, block.size, dataset->size);
    }
    if (rc < 0) {
        block_failed(points, dataset, rc);
    } else {
        dataset->size += block.size;
        dataset->wrote = true;
        atomic_fetch_add(&points->written, dataset->row_count);
        clear_block(dataset);
    }
    cn_buf_fini(&block);
}

static void sync_segment(struct dataset *dataset)
{
    if (!dataset->wrote)
        return;
    int rc = cn_disk_sync_data(dataset->file);
    if (rc < 0) {
        /* What the kernel could not write it may have dropped: nothing more goes here. */
        cn_error("analytics: %s cannot be synced: %s", dataset->path, strerror(-rc));
        close_segment(dataset);
    }
    dataset->wrote = false;
}

/* Removes the segments of days that are over for longer than they are kept. */
static void sweep(struct cn_points *points, int64_t now_ms)
{
    struct cn_disk *disk = points->options.disk;
    struct cn_disk_entries datasets, segments;
    char oldest[16];
    day_text(now_ms / DAY_MS - (int64_t)points->options.retention_days, oldest);
    if (cn_disk_entries(disk, CN_POINTS_DIR, &datasets) < 0)
        return; /* tried again in an hour */
    for (size_t i = 0; i < datasets.count; i++) {
        char *folder = cn_sprintf(CN_POINTS_DIR "/%s", datasets.items[i].name);
        int rc = datasets.items[i].is_dir ? cn_disk_entries(disk, folder, &segments) : -ENOTDIR;
        for (size_t k = 0; rc == 0 && k < segments.count; k++) {
            const char *name = segments.items[k].name;
            if (strlen(name) < 9 || name[8] != '-' || memcmp(name, oldest, 8) >= 0)
                continue;
            char *path = cn_sprintf("%s/%s", folder, name);
            (void)cn_disk_unlink(disk, path); /* one that stays is tried again */
            cn_free(path);
        }
        if (rc == 0)
            cn_disk_entries_fini(&segments);
        cn_free(folder);
    }
    cn_disk_entries_fini(&datasets);
}

/* --- the flusher ----------------------------------------------------------------------------- */

static void take_rows(struct cn_points *points, struct lane_buffer *lane, struct cn_buf *spare)
{
    pthread_mutex_lock(&lane->lock);
    struct cn_buf rows = lane->rows;
    lane->rows = *spare;
    lane->woken = false;
    pthread_mutex_unlock(&lane->lock);
    for (size_t at = 0; at < rows.size;) {
        struct row row;
        memcpy(&row, rows.data + at, sizeof(row));
        /* Set before its number was given to anyone who writes; a made-up one is nobody's. */
        struct dataset *dataset = points->datasets[row.dataset];
        if (dataset)
            add_row(dataset, &row, rows.data + at + sizeof(row));
        at += sizeof(row) + row.size;
        if (!dataset)
            continue;
        if (dataset->row_count == CN_POINTS_BLOCK_ROWS_MAX || dataset->bytes > BLOCK_BYTES_MAX)
            write_block(points, dataset);
    }
    rows.size = 0;
    if (rows.capacity > CN_POINTS_WAKE * 2)
        cn_buf_fini(&rows);
    *spare = rows;
}

/* Says at most once a minute that points go missing. */
static void complain(struct cn_points *points, int64_t now_ms)
{
    struct cn_points_stats stats;
    cn_points_stats(points, &stats);
    uint64_t missing = stats.dropped + stats.sampled;
    if (missing == points->complained_of || now_ms < points->complained_ms + 60000)
        return;
    cn_warn("analytics: the disk does not keep up: %llu points sampled away, %llu lost",
            (unsigned long long)stats.sampled, (unsigned long long)stats.dropped);
    points->complained_of = missing;
    points->complained_ms = now_ms;
}

static void flush(struct cn_points *points, uint32_t dataset_count)
{
    struct cn_buf spare = {0};
    for (unsigned i = 0; i < points->options.lane_count; i++)
        take_rows(points, &points->lanes[i], &spare);
    cn_buf_fini(&spare);
    for (uint32_t i = 0; i < dataset_count; i++) {
        write_block(points, points->datasets[i]);
        sync_segment(points->datasets[i]);
    }
    int64_t now_ms = cn_clock_wall_ms(points->options.clock);
    complain(points, now_ms);
    if (points->swept_ms == 0 || now_ms >= points->swept_ms + SWEEP_MS) {
        points->swept_ms = now_ms;
        sweep(points, now_ms);
    }
}

static void wait_for_work(struct cn_points *points)
{
    if (!points->stopping && points->asked == points->flushed)
        (void)cn_cond_wait_ms(&points->wake, &points->lock, CN_POINTS_FLUSH_MS);
}

static void *flusher_main(void *arg)
{
    struct cn_points *points = arg;
    pthread_mutex_lock(&points->lock);
    for (bool last = false; !last;) {
        wait_for_work(points);
        last = points->stopping;
        uint64_t asked = points->asked;
        uint32_t dataset_count = points->dataset_count;
        pthread_mutex_unlock(&points->lock);
        flush(points, dataset_count);
        pthread_mutex_lock(&points->lock);
        points->flushed = asked;
        pthread_cond_broadcast(&points->done);
    }
    pthread_mutex_unlock(&points->lock);
    return NULL;
}

void cn_points_flush(struct cn_points *points)
{
    pthread_mutex_lock(&points->lock);
    uint64_t mine = ++points->asked;
    pthread_cond_signal(&points->wake);
    while (points->started && points->flushed < mine)
        pthread_cond_wait(&points->done, &points->lock);
    pthread_mutex_unlock(&points->lock);
}

void cn_points_query_begin(struct cn_points *points)
{
    pthread_mutex_lock(&points->query_lock);
}

void cn_points_query_end(struct cn_points *points)
{
    pthread_mutex_unlock(&points->query_lock);
}

void cn_points_stats(struct cn_points *points, struct cn_points_stats *stats)
{
    *stats = (struct cn_points_stats){.written = atomic_load(&points->written),
                                      .dropped = atomic_load(&points->lost)};
    for (unsigned i = 0; i < points->options.lane_count; i++) {
        struct lane_buffer *lane = &points->lanes[i];
        pthread_mutex_lock(&lane->lock);
        stats->sampled += lane->sampled;
        stats->dropped += lane->dropped;
        pthread_mutex_unlock(&lane->lock);
    }
}

/* --- datasets -------------------------------------------------------------------------------- */

int cn_points_name_check(const char *name, struct cn_err *err)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t size = strlen(name);
    if (size == 0 || size > NAME_SIZE_MAX || strspn(name, allowed) != size)
        return cn_err_set(err, CN_EINVALID,
                          "\"%.80s\" cannot name a dataset: letters, digits, _ and -, at most %d",
                          name, NAME_SIZE_MAX);
    return 0;
}

static int make_folder(struct cn_disk *disk, const char *name, struct cn_err *err)
{
    char *folder = cn_sprintf(CN_POINTS_DIR "/%s", name);
    struct cn_disk_entries entries;
    bool there = cn_disk_entries(disk, folder, &entries) == 0;
    int rc = 0;
    if (there)
        cn_disk_entries_fini(&entries);
    else
        rc = cn_disk_mkdirs(disk, folder);
    if (rc < 0)
        cn_err_errno(err, -rc, "cannot make the folder %s", folder);
    else if (!there)
        cn_info("analytics dataset \"%s\" is new here", name);
    cn_free(folder);
    return rc;
}

/* With the first dataset: a server without any has no such thread. */
static int start_flusher(struct cn_points *points, struct cn_err *err)
{
    int rc = points->started ? 0 : pthread_create(&points->thread, NULL, flusher_main, points);
    if (rc)
        return cn_err_errno(err, rc, "cannot start a thread");
    points->started = true;
    return 0;
}

int cn_points_dataset(struct cn_points *points, const char *name, uint32_t *number,
                      struct cn_err *err)
{
    int rc = cn_points_name_check(name, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&points->lock);
    uint32_t i = 0;
    while (i < points->dataset_count && strcmp(points->datasets[i]->name, name) != 0)
        i++;
    if (i == CN_POINTS_DATASET_MAX)
        rc = cn_err_set(err, CN_ELIMIT, "more than %d analytics datasets", CN_POINTS_DATASET_MAX);
    else if (i == points->dataset_count)
        rc = make_folder(points->options.disk, name, err);
    if (rc == 0)
        rc = start_flusher(points, err);
    if (rc == 0 && i == points->dataset_count) {
        points->datasets[i] = CN_NEW(struct dataset);
        points->datasets[i]->name = cn_strdup(name);
        points->dataset_count++;
    }
    pthread_mutex_unlock(&points->lock);
    if (rc == 0)
        *number = i;
    return rc;
}

/* --- life ------------------------------------------------------------------------------------ */

static void free_points(struct cn_points *points)
{
    for (uint32_t i = 0; i < points->dataset_count; i++) {
        struct dataset *dataset = points->datasets[i];
        close_segment(dataset);
        for (unsigned k = 0; k < CN_POINTS_COLUMN_COUNT; k++) {
            cn_buf_fini(&dataset->columns[k].values);
            cn_buf_fini(&dataset->columns[k].bytes);
        }
        cn_free(dataset->name);
        cn_free(dataset);
    }
    for (unsigned i = 0; i < points->options.lane_count; i++) {
        pthread_mutex_destroy(&points->lanes[i].lock);
        cn_buf_fini(&points->lanes[i].rows);
    }
    pthread_mutex_destroy(&points->lock);
    pthread_mutex_destroy(&points->query_lock);
    pthread_cond_destroy(&points->wake);
    pthread_cond_destroy(&points->done);
    cn_free(points->lanes);
    cn_free(points);
}

struct cn_points *cn_points_new(const struct cn_points_options *options)
{
    struct cn_points *points = CN_NEW(struct cn_points);
    points->options = *options;
    if (!points->options.clock)
        points->options.clock = cn_clock_system();
    if (!points->options.retention_days)
        points->options.retention_days = CN_POINTS_RETENTION_DAYS;
    points->lanes = cn_alloc_zero(options->lane_count * sizeof(*points->lanes));
    for (unsigned i = 0; i < options->lane_count; i++)
        pthread_mutex_init(&points->lanes[i].lock, NULL);
    pthread_mutex_init(&points->lock, NULL);
    pthread_mutex_init(&points->query_lock, NULL);
    cn_cond_init(&points->wake);
    pthread_cond_init(&points->done, NULL);
    return points;
}

void cn_points_free(struct cn_points *points)
{
    if (!points)
        return;
    pthread_mutex_lock(&points->lock);
    points->stopping = true;
    pthread_cond_signal(&points->wake);
    pthread_mutex_unlock(&points->lock);
    if (points->started)
        pthread_join(points->thread, NULL);
    free_points(points);
}
