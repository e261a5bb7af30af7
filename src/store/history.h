/* SPDX-License-Identifier: Apache-2.0 */
/* store/history.h - the past of every object: keeping it, naming moments in it, going back to them.
 *
 * Give cn_history_callbacks() to the store when it opens; from then on log
 * segments are archived (store/archive.h) when recovery no longer needs them,
 * and go when they are older than the retention time or when the archives
 * exceed their size limit, the oldest first.
 *
 * An object as of an LSN is found by walking backwards from its present pages:
 * every later commit's differences are applied once more, newest first, which
 * takes them away (R5 of store/record.h). Where a commit took the whole
 * database away, the walk continues from the file that was set aside.
 *
 * Restoring writes the old state as one new commit. So it can be undone: the
 * bookmark of the moment before it is as good as any other.
 *
 * Threads:   any. The callbacks run on the store's keeper thread.
 * Ownership: cn_history_open() before cn_store_open(), cn_history_close() after cn_store_close().
 */
#ifndef CN_STORE_HISTORY_H
#define CN_STORE_HISTORY_H
#include <stdint.h>

#include "store/bookmark.h"
#include "store/store.h"

struct cn_clock;
struct cn_history;

#define CN_HISTORY_RETENTION_MS_DEFAULT (30ll * 24 * 60 * 60 * 1000)

struct cn_history_config {
    struct cn_disk *disk;   /* borrowed; the data directory is its root */
    struct cn_clock *clock; /* borrowed; NULL: the machine's */
    int64_t retention_ms;   /* 0: 30 days; negative: keep nothing */
    uint64_t size_max;      /* bytes of archives, without what the log still has; 0: no limit */
};

int cn_history_open(const struct cn_history_config *config, struct cn_history **history,
                    struct cn_err *err);
void cn_history_close(struct cn_history *history);
/* For cn_store_config.history; borrowed. */
const struct cn_store_history *cn_history_callbacks(struct cn_history *history);

/* The bookmark of this moment. `lsn` is that of the object's last commit if the caller has it
 * open (cn_database_lsn()), else 0. */
void cn_history_bookmark_now(struct cn_history *history, struct cn_store *store,
                             const struct cn_object_key *key, uint64_t lsn,
                             char text[CN_BOOKMARK_SIZE]);
/* The bookmark of the last moment at or before a time. CN_ENOTFOUND if it lies before what is
 * kept; a time to come is CN_EINVALID. */
int cn_history_bookmark_at(struct cn_history *history, struct cn_store *store,
                           const struct cn_object_key *key, int64_t time_ms,
                           char text[CN_BOOKMARK_SIZE], struct cn_err *err);
/* The bookmark that will undo the object's next restore. */
void cn_history_bookmark_undo(struct cn_history *history, struct cn_store *store,
                              const struct cn_object_key *key, uint64_t lsn,
                              char text[CN_BOOKMARK_SIZE]);
/* Is the bookmark one of this object, and within what is kept? */
int cn_history_check(struct cn_history *history, struct cn_store *store,
                     const struct cn_object_key *key, const char *bookmark, struct cn_err *err);

/* Had the object a database at the bookmark? 0: it was not there yet, or deleted, or emptied by
 * deleteAll(). */
int cn_history_was_there(struct cn_history *history, struct cn_store *store,
                         const struct cn_object_key *key, const char *bookmark, struct cn_err *err);

/* Makes the object what it was at the bookmark. It must not be open (CN_ELOCKED). Returns the
 * LSN of the restoring commit, which is not durable yet, and the bookmark that undoes it;
 * both may be NULL. The alarm of that moment comes back, due or not, and a name that a deletion
 * took away. */
int cn_history_restore(struct cn_history *history, struct cn_store *store,
                       const struct cn_object_key *key, const char *bookmark, uint64_t *lsn,
                       char undo[CN_BOOKMARK_SIZE], struct cn_err *err);
/* An object as it was; it may be open. */
struct cn_history_moment {
    const struct cn_object_key *key;
    const char *bookmark; /* one of its own */
};
/* The database alone, as it was or as another object's was. Alarm and name stay as they are. */
int cn_history_restore_from(struct cn_history *history, struct cn_store *store,
                            const struct cn_object_key *key, const struct cn_history_moment *source,
                            uint64_t *lsn, char undo[CN_BOOKMARK_SIZE], struct cn_err *err);

/* Writes the object as of the bookmark (NULL: now) to the new file `path` of `disk`: a plain
 * SQLite database, complete and synced. The object may be open. CN_ENOTFOUND if it had no
 * database then. */
int cn_history_copy(struct cn_history *history, struct cn_store *store,
                    const struct cn_object_key *key, const char *bookmark, struct cn_disk *disk,
                    const char *path, struct cn_err *err);

/* Writes pages of the object that the disk has spoilt anew, from the commits since they were last
 * logged whole; *healed counts them. Restores and exports do it by themselves. */
int cn_history_heal(struct cn_history *history, struct cn_store *store,
                    const struct cn_object_key *key, uint32_t *healed, struct cn_err *err);

struct cn_history_commit {
    uint64_t lsn;
    int64_t time_ms;
    uint32_t page_count; /* that it changed */
    uint32_t pages_before, pages_after;
    uint16_t flags; /* enum cn_commit_flags */
    char bookmark[CN_BOOKMARK_SIZE];
};
struct cn_history_listing {
    const struct cn_object_key *key;
    uint64_t before_lsn; /* 0: all */
    int limit;
    int (*each)(void *data, const struct cn_history_commit *commit); /* nonzero ends it */
    void *data;
};
/* Commits of an object, the latest first, as far back as history is kept. Returns how many. */
int cn_history_commits(struct cn_history *history, struct cn_store *store,
                       const struct cn_history_listing *listing, struct cn_err *err);

struct cn_history_stats {
    uint64_t oldest_lsn; /* bookmarks reach back to the one before it; 0: nothing archived */
    int64_t oldest_ms;   /* time of its record */
    uint64_t archive_count, archive_bytes; /* with the databases set aside */
};
void cn_history_stats(struct cn_history *history, struct cn_history_stats *stats);

#endif
