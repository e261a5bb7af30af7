/* SPDX-License-Identifier: Apache-2.0 */
/* admin/cpuprofile.h - from the engine's samples (js/profile.h) to a .cpuprofile, as DevTools reads
 * it.
 *
 *     sample: time, stack  ──►  a tree of calls, a node per function and way to it
 *                               (root) ─ lane 0 ─ fetch ─ render ─ escape   hits, lines
 *                               a list: which node at which time; between them (idle)
 *
 *   C1  A function is known by its name, its source and the engine's own hash of its code, so that
 *       the same one is the same node whichever tier of the compiler ran it. Its place is the first
 *       line of it that was seen: the engine does not say where it begins.
 *   C2  Bounded: CN_CPUPROFILE_NODES_MAX and _SAMPLES_MAX; what comes after is counted and dropped.
 *   C3  Whatever the text is, it is read or refused: nothing in it is trusted.
 *
 * Threads:   one at a time.
 * Ownership: the owner's. */
#ifndef CN_ADMIN_CPUPROFILE_H
#define CN_ADMIN_CPUPROFILE_H
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cn_cpuprofile;

#define CN_CPUPROFILE_NODES_MAX 50000
#define CN_CPUPROFILE_SAMPLES_MAX 600000 /* ten minutes */
#define CN_CPUPROFILE_LINES_MAX 50       /* of a node that are counted */

/* Where the user wrote it. */
struct cn_cpuprofile_place {
    struct cn_buf url;     /* as JSON: a string with its quotes; empty: it is nobody's file */
    uint32_t line, column; /* from 1; 0: not known */
};

/* Finds the place of a line and column (from 1; 0: not known) of a script by its URL. */
typedef void (*cn_cpuprofile_resolve)(void *data, const char *url, uint32_t line, uint32_t column,
                                      struct cn_cpuprofile_place *place);

struct cn_cpuprofile *cn_cpuprofile_new(cn_cpuprofile_resolve resolve, void *data);
void cn_cpuprofile_free(struct cn_cpuprofile *profile); /* NULL is fine */
/* Adds what a lane has sampled. */
void cn_cpuprofile_add(struct cn_cpuprofile *profile, unsigned lane, const char *json, size_t size);
/* {"nodes","startTime","endTime","samples","timeDeltas"} */
void cn_cpuprofile_write(struct cn_cpuprofile *profile, struct cn_buf *out);

#endif
