/* SPDX-License-Identifier: Apache-2.0 */
/* store/history_private.h - inside history: what is kept, and the walk back over it.
 *
 * history.c keeps archives, trims them and answers for moments; walk.c draws an object as it was.
 */
#ifndef CN_STORE_HISTORY_PRIVATE_H
#define CN_STORE_HISTORY_PRIVATE_H
#include <pthread.h>

#include "base/buf.h"
#include "store/archive.h"
#include "store/history.h"

struct cn_history_archive {
    uint64_t first_lsn, last_lsn;
    int64_t first_ms, last_ms;
    uint64_t size; /* of the file */
};

/* A database that was set aside. */
struct cn_history_aside {
    struct cn_object_key key;
    uint64_t lsn;
    uint64_t size;
};

struct cn_history {
    struct cn_history_config config;
    struct cn_store_history callbacks;
    pthread_mutex_t lock;                /* guards the rest */
    struct cn_history_archive *archives; /* owned */
    size_t archive_count, archive_room;
    struct cn_history_aside *asides; /* owned; in no order */
    size_t aside_count, aside_room;
    uint64_t total_size;
    uint64_t floor_lsn; /* retention has removed what lies below; 0: nothing yet */
    uint64_t serial;    /* of temporary files */
};

/* Where records of some range of LSNs are. */
struct cn_history_source {
    uint64_t first_lsn;
    bool live; /* a segment of the log, not an archive */
    char path[CN_ARCHIVE_PATH_MAX];
};

/* A database under construction in a file. */
struct cn_canvas {
    struct cn_disk *disk; /* where the file is */
    struct cn_disk_file *file;
    const char *path;
    uint32_t page_count;
    /* What the object had besides pages, as far as the records walked over tell. */
    bool alarm_known;
    int64_t alarm_ms;
    char *name; /* owned; NULL: no deletion was met that took one away */
    uint16_t name_size;
};

/* Opens the log segment with this file name; false if it is none, or gone. */
bool cn_history_open_segment(struct cn_disk *disk, const char *name, bool is_dir,
                             struct cn_segment_reader *reader);
int cn_history_find_source(struct cn_history *history, uint64_t lsn,
                           struct cn_history_source *source, struct cn_err *err);
/* Replaces `records` by the object's records in the source that holds `lsn`; *first_lsn is where
 * that source begins. Of a live segment nothing behind `lsn` is read. */
int cn_history_read_source(struct cn_history *history, const struct cn_object_key *key,
                           uint64_t lsn, uint64_t *first_lsn, struct cn_buf *records,
                           struct cn_err *err);

int cn_canvas_open(struct cn_canvas *canvas, struct cn_disk *disk, const char *path,
                   struct cn_err *err);
void cn_canvas_close(struct cn_canvas *canvas);
/* For struct cn_page_source. */
int cn_canvas_read(void *data, uint32_t page_no, uint8_t page[CN_PAGE_SIZE], struct cn_err *err);
/* Draws the object as of `lsn` on the canvas. */
int cn_history_draw(struct cn_history *history, struct cn_store *store,
                    const struct cn_object_key *key, uint64_t lsn, struct cn_canvas *canvas,
                    struct cn_err *err);

#endif
