/* SPDX-License-Identifier: Apache-2.0 */
/* base/account.h - the memory of the process: how much there may be, who has it, what gives way.
 *
 * Every queue, body and cache has a bound of its own; this is the bound of their sum. A watcher
 * (worker/watchdog.h) tells the account many times a second how much memory the process has; the
 * account says how short it is, and those who hold memory act on that.
 *
 *     share of the limit   level       what gives way, besides what did before
 *     below 70 %           CALM        nothing
 *     70 %                 CACHES      caches are emptied, freed memory goes back to the system
 *     76 %                 IDLE        idle objects leave memory, the heaps are collected
 *     82 %                 SOCKETS     the slowest readers: WebSockets with 1013, answers are cut
 *     86 %                 BODIES      request bodies that are being gathered: 503
 *     90 %                 REQUESTS    new requests of those who hold much: 503 with Retry-After
 *     95 %                 RESET       the largest script or object starts anew, and is named
 *     100 %                            all new requests; a turn that still allocates is ended
 *
 * A1  `used` is what the kernel counts as the process's own (resident, not of files): nothing is
 *     forgotten in it. The kinds explain it; what they do not explain is "other".
 * A2  Levels are in order: on a level everything that belongs to the lower ones is done too.
 * A3  A level is entered as soon as its share is reached, and left only when `used` is
 *     CN_ACCOUNT_SLACK percent below it: a server at a threshold does not flap.
 * A4  Bodies that are being gathered get no more than a quarter of the limit once half of the
 *     limit is used, whatever the level: the next piece is refused, not the next second.
 * A5  What is taken from a kind is given back exactly: no kind is ever below zero.
 * A6  Without a limit (0) the level is always CALM; counting goes on.
 *
 * Threads:   any; sources are named before the threads start.
 * Ownership: one account per process. */
#ifndef CN_BASE_ACCOUNT_H
#define CN_BASE_ACCOUNT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cn_account_kind {
    CN_ACCOUNT_HEAP,    /* of JavaScript: what the engine keeps from the system */
    CN_ACCOUNT_BODIES,  /* of requests, gathered for a script or a call of the admin listener */
    CN_ACCOUNT_ANSWERS, /* waiting for HTTP clients */
    CN_ACCOUNT_SOCKETS, /* messages waiting for WebSockets, or for those behind them */
    CN_ACCOUNT_SQLITE,  /* SQLite: pages, statements, schemas */
    CN_ACCOUNT_LOG,     /* the log's buffers, and committed pages that are not in their files yet */
    CN_ACCOUNT_CACHES,  /* what could be forgotten */
    CN_ACCOUNT_KIND_COUNT
};
extern const char *const cn_account_kind_names[CN_ACCOUNT_KIND_COUNT];

enum cn_account_level {
    CN_ACCOUNT_CALM,
    CN_ACCOUNT_RELIEVE_CACHES,
    CN_ACCOUNT_RELIEVE_IDLE,
    CN_ACCOUNT_RELIEVE_SOCKETS,
    CN_ACCOUNT_RELIEVE_BODIES,
    CN_ACCOUNT_RELIEVE_REQUESTS,
    CN_ACCOUNT_RELIEVE_RESET,
    CN_ACCOUNT_LEVEL_COUNT
};
extern const char *const cn_account_level_names[CN_ACCOUNT_LEVEL_COUNT];
/* Percent of the limit at which each begins. */
extern const unsigned cn_account_level_shares[CN_ACCOUNT_LEVEL_COUNT];
#define CN_ACCOUNT_SLACK 3 /* A3 */

/* Three quarters of what the machine has, or of what the process's cgroup may have if that is less.
 * `root` is "" (tests have a file system of their own). */
uint64_t cn_account_default(const char *root);
/* Before the threads start. */
void cn_account_set_limit(uint64_t bytes);
uint64_t cn_account_limit(void);

/* Somebody has, or has no longer, so many bytes of a kind (A5). */
void cn_account_add(enum cn_account_kind kind, int64_t bytes);
/* The same for bytes that may be refused: false, and nothing was taken (A4, or level BODIES). */
bool cn_account_take(enum cn_account_kind kind, size_t bytes);
uint64_t cn_account_kind_bytes(enum cn_account_kind kind);
/* What the kinds do not explain (A1): stacks, code, memory that allocators keep. */
uint64_t cn_account_other_bytes(void);

/* Something that knows its own bytes, and may be able to forget them. */
struct cn_account_source {
    enum cn_account_kind kind;
    uint64_t (*bytes)(void *data);
    void (*forget)(void *data); /* NULL: it cannot */
    void *data;
};
#define CN_ACCOUNT_SOURCE_MAX 8
void cn_account_source_add(const struct cn_account_source *source);
/* Nobody watches any more, and the sources go. */
void cn_account_sources_clear(void);
/* On the watcher's thread: asks the sources how much they have. */
void cn_account_sources_ask(void);
/* Lets every source forget. */
void cn_account_sources_forget(void);

/* What the kernel says that the process has; 0: it does not say. */
uint64_t cn_account_read_used(void);
/* The watcher tells it; returns the level that follows (A2, A3). */
enum cn_account_level cn_account_look(uint64_t used);
enum cn_account_level cn_account_level(void);
uint64_t cn_account_used(void);
/* How much has to go until the share of `level` is left: 0 if it has not been reached. */
uint64_t cn_account_excess(enum cn_account_level level);

/* What has given way, counted for the metrics: `count` things on a level. */
void cn_account_relieved(enum cn_account_level level, uint64_t count);
uint64_t cn_account_relief_count(enum cn_account_level level);

#endif
