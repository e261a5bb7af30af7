/* SPDX-License-Identifier: Apache-2.0 */
/* assets/assets.h - the static files of a project, and which of them answers a request.
 *
 * A deployment reads the folder once: names, sizes, checksums (which are the ETags), the files
 * `_headers`, `_redirects` and `.assetsignore`. Small files are kept in memory, up to a bound;
 * large ones are copied into one unnamed file of the deployment's own, and read from there as the
 * client takes them.
 *
 *     cn_assets_load()                      deploying thread
 *     cn_assets_prefer_worker() no ──► cn_assets_answer() ──► assets/http.c, or bindings/assets.c
 *                               yes ─► the worker         false ──► the worker, if there is one
 *
 * A1  A request's path is only ever looked up among the names found by the walk; it never reaches
 *     the file system. A file outside the folder is not served, whatever the path says, unless a
 *     symbolic link in the folder names it and it is the project's, behind no name that begins with
 *     a dot; other links that lead out of the folder are left out.
 * A2  An ETag is sent only with the bytes it was computed from. Without a copy (`copy_fd`), a file
 *     that has changed on the disk since the deployment goes out as it is, and without one.
 * A3  A deployment that has its copy does not depend on the folder: whoever builds there changes
 *     nothing that is served until the next deployment.
 * A4  A file goes out under one spelling of its address only: answer.c.
 *
 * Threads:   immutable once loaded, shared by all lanes.
 * Ownership: counted references, atomic. */
#ifndef CN_ASSETS_ASSETS_H
#define CN_ASSETS_ASSETS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/err.h"
#include "net/http.h"

struct cn_assets;

#define CN_ASSET_SIZE_MAX (25u << 20) /* AS-3 */
#define CN_ASSET_COUNT_MAX 100000
#define CN_ASSET_MEMORY_FILE_MAX (128u << 10) /* a file larger than this stays on disk, */
#define CN_ASSET_MEMORY_MAX (32u << 20)       /* and so do those past this sum */

enum cn_asset_html {
    CN_ASSET_HTML_AUTO,  /* /a.html is /a, /a/index.html is /a/ */
    CN_ASSET_HTML_FORCE, /* both are /a/ */
    CN_ASSET_HTML_DROP,  /* both are /a */
    CN_ASSET_HTML_NONE,  /* a file is its path */
};
enum cn_asset_missing {
    CN_ASSET_MISSING_NONE,
    CN_ASSET_MISSING_404_PAGE, /* the nearest 404.html */
    CN_ASSET_MISSING_SPA,      /* /index.html, 200 */
};

struct cn_assets_options {
    const char *directory; /* absolute */
    const char *project;   /* absolute: where links may lead, too; NULL: nowhere */
    enum cn_asset_html html;
    enum cn_asset_missing missing;
    bool has_worker;
    bool worker_first; /* run_worker_first = true */
    const char *const
        *first; /* run_worker_first = [...]: patterns, "!" before those that are not */
    size_t first_count;
    const char *base; /* where the folder is seen, "/docs/"; NULL or "/": at the top */
    bool pages;       /* of a Pages project: its worker lies among them, and is none of them */
    bool navigation;  /* assets_navigation_prefers_asset_serving */
    int copy_fd;      /* an empty file for the copy (A3), which becomes the assets'; -1: none */
};

struct cn_asset {
    char *path; /* owned: "/a/b.html" */
    uint64_t size;
    int64_t mtime_ns;
    char etag[40];    /* with its quotes */
    const char *type; /* Content-Type, static; NULL: unknown */
    uint8_t *bytes;   /* owned; NULL: on disk */
    uint64_t copied;  /* where it begins in the copy, if there is one */
};

/* A base path without "." and "..", runs of slashes and a slash at its end; NULL if it is none.
 * Owned. */
char *cn_asset_base(const char *path);
/* Reads the folder. What is odd but can be lived with is logged. */
int cn_assets_load(const struct cn_assets_options *options, struct cn_assets **assets,
                   struct cn_err *err);
/* A number that changes when a name, size or time below the folder does. `newest_ns` (may be NULL)
 * becomes the latest time that was seen, if that is later. */
uint64_t cn_assets_stamp(const char *directory, int64_t *newest_ns);
struct cn_assets *cn_assets_ref(struct cn_assets *assets);
void cn_assets_unref(struct cn_assets *assets);
const char *cn_assets_directory(const struct cn_assets *assets);
size_t cn_assets_count(const struct cn_assets *assets);
const struct cn_asset *cn_assets_find(const struct cn_assets *assets, const char *path,
                                      size_t path_size);

/* One after the other: start with *cursor = 0; NULL at the end. */
const struct cn_asset *cn_assets_next(const struct cn_assets *assets, size_t *cursor);

struct cn_asset_request {
    struct cn_http_text method, host, target;
    /* The value of a field by its lower-case name, or {NULL, 0}. */
    struct cn_http_text (*header)(void *data, const char *lower_name);
    void *data;
    bool from_worker; /* through the binding: what is missing is answered here */
};

struct cn_asset_answer {
    int status;
    struct cn_http_header *headers; /* owned array */
    size_t header_count;
    char **texts; /* owned: names and values that were made for this answer */
    size_t text_count;
    const struct cn_asset *asset; /* the body, or NULL: none */
    uint64_t offset, size;        /* the part of it to be sent */
};

/* Whether the configuration wants the script to see this path before any asset. */
bool cn_assets_prefer_worker(const struct cn_assets *assets, const char *path, size_t path_size);
/* False: no asset answers it. Otherwise `answer` is to be released with cn_asset_answer_fini(). */
bool cn_assets_answer(const struct cn_assets *assets, const struct cn_asset_request *request,
                      struct cn_asset_answer *answer);
void cn_asset_answer_fini(struct cn_asset_answer *answer);

/* Opens a file that stays on disk: a descriptor to be closed; its bytes begin at *begin. False in
 * *same: it has changed since (A2); *size is its size now. */
int cn_asset_open(const struct cn_assets *assets, const struct cn_asset *asset, bool *same,
                  uint64_t *begin, uint64_t *size);

/* Makes the answer one of a file that is now other than it was (A2). */
void cn_asset_answer_changed(struct cn_asset_answer *answer, uint64_t size);

/* http.c: answers the request if the assets have something for it, or, with `alone` (no script
 * stands behind them), in any case. True: it is taken care of. */
struct cn_http_request;
bool cn_assets_respond(struct cn_assets *assets, bool alone, uv_loop_t *loop,
                       struct cn_http_request *http);

#endif
