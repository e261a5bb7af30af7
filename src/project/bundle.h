/* SPDX-License-Identifier: Apache-2.0 */
/* project/bundle.h - a project as one script, built when needed.
 *
 * The output lies in a folder of the data directory: the script, its source
 * map, a file per data or wasm import, and manifest.json, which names them and
 * every input with its size and time. While no input and no setting changed,
 * the output is used as it is and no other program runs.
 *
 * Threads:   any, one call at a time per bundler.
 * Ownership: struct cn_bundle owns what it points to. */
#ifndef CN_PROJECT_BUNDLE_H
#define CN_PROJECT_BUNDLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct cn_bundler;
struct cn_config;
struct cn_confnode;
struct cn_err;

#define CN_BUNDLE_SIZE_MAX (256u << 20)

struct cn_bundle_file {
    char *name; /* as the script asks for it */
    uint8_t *bytes;
    size_t size;
};

struct cn_bundle {
    struct cn_buf source; /* "(function(__cairn){...})", NUL-terminated */
    char *map_path;       /* of the source map */
    struct cn_bundle_file *files;
    size_t file_count;
    bool cached; /* nothing had to be built */
    struct cn_confnode *manifest;
};

struct cn_bundle_options {
    const char *dir;    /* output folder, absolute; made if absent */
    bool development;   /* process.env.NODE_ENV, and colours in messages */
    bool rebuild;       /* do not look at what is there */
    bool stored;        /* its inputs never change; what is there is taken if it cannot be built */
    const char *inside; /* absolute: nothing outside of this folder gets in; NULL: anything may */
    bool upload;        /* modules for another server (tools/bundler/upload.mjs), no script */
    bool as_is;         /* with stored: nothing is built, whoever built what is there */
    unsigned limit_ms;  /* how long the bundler may take; 0: as long as it needs */
    bool built;         /* take what is there: it was built a moment ago, by another process */
};

/* Builds or finds the bundle. What the bundler has to say, warnings or (on
 * failure) the errors in its own words, is appended to `messages`. */
int cn_bundle_make(struct cn_bundler *bundler, const struct cn_config *config,
                   const struct cn_bundle_options *options, struct cn_bundle *bundle,
                   struct cn_buf *messages, struct cn_err *err);
void cn_bundle_fini(struct cn_bundle *bundle);

/* An input of the manifest that has changed since; NULL: none has. */
const char *cn_bundle_changed_input(const struct cn_confnode *manifest);

#endif
