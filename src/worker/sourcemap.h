/* SPDX-License-Identifier: Apache-2.0 */
/* worker/sourcemap.h - from a place in the bundle to the user's own file and line.
 *
 * Reads source maps of version 3 (without sections) as esbuild writes them, and
 * rewrites texts in which JavaScript places occur: error messages with stacks.
 *
 * Texts of sources stay in the file until a line of one is asked for. Bounds:
 * CN_SOURCEMAP_SIZE_MAX bytes of text, CN_SOURCEMAP_SEGMENT_MAX segments.
 *
 * Threads:   a parsed map is immutable; any thread may look things up.
 * Ownership: the caller's. */
#ifndef CN_WORKER_SOURCEMAP_H
#define CN_WORKER_SOURCEMAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf;
struct cn_err;
struct cn_sourcemap;

#define CN_SOURCEMAP_SIZE_MAX (256u << 20)
#define CN_SOURCEMAP_SEGMENT_MAX (64u << 20)

/* A place in a source: line and column count from 1. Texts are borrowed from the map. */
struct cn_sourcemap_place {
    const char *source;
    const char *name; /* of what stands there, if the map tells; else NULL */
    uint32_t line, column;
};

/* Maps the file into memory and parses it. NULL on failure. */
struct cn_sourcemap *cn_sourcemap_open(const char *path, struct cn_err *err);
/* Parses a copy of the JSON text; `name` stands for it in errors. NULL on failure. */
struct cn_sourcemap *cn_sourcemap_parse(const char *name, const char *json, size_t length,
                                        struct cn_err *err);
void cn_sourcemap_free(struct cn_sourcemap *map); /* NULL is fine */

/* The place that generated `line`, `column` (from 1) comes from; false if it comes from none. */
bool cn_sourcemap_find(const struct cn_sourcemap *map, uint32_t line, uint32_t column,
                       struct cn_sourcemap_place *place);
/* Appends the source lines around a place, the place marked; nothing if the map has no text. */
void cn_sourcemap_frame(const struct cn_sourcemap *map, const struct cn_sourcemap_place *place,
                        struct cn_buf *out);

/* The first place of a source of the map that a text of lines "    at name (PLACE)" or "    at
 * PLACE" names; false if there is none. */
bool cn_sourcemap_locate(const struct cn_sourcemap *map, const char *text, size_t length,
                         struct cn_sourcemap_place *place);

/* Appends `text` with every "URL:LINE:COLUMN" (`url` is the bundle's) replaced by the place it
 * comes from. JavaScriptCore's own stack lines, "name@URL:LINE:COLUMN", become "    at name
 * (PLACE)". The first place found is stored in *first unless that is NULL; first->source is NULL
 * if there was none. */
void cn_sourcemap_rewrite(const struct cn_sourcemap *map, const char *url, const char *text,
                          size_t length, struct cn_sourcemap_place *first, struct cn_buf *out);

#endif
