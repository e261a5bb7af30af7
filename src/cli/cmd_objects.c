/* SPDX-License-Identifier: Apache-2.0 */
/* cairn objects list|export|restore, on a data directory that no server uses.
 *
 *     objects list [NAMESPACE]                 what there is; without NAMESPACE, all of them
 *     objects export NAMESPACE OBJECT FILE     a plain SQLite file, of now or of a moment
 *     objects restore NAMESPACE OBJECT         the object becomes what it was at a moment
 *
 * A moment is --bookmark B or --time T (RFC 3339, or milliseconds since 1970). OBJECT is an id of
 * 64 hexadecimal digits or a name. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/disk.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/datadir.h"
#include "object/id.h"
#include "store/catalog.h"
#include "store/history.h"
#include "store/store.h"

enum { LIST_BATCH = 512 };

static int usage(void)
{
    fprintf(stderr, "cairn: objects needs one of: list [NAMESPACE] | export NAMESPACE OBJECT FILE |"
                    " restore NAMESPACE OBJECT; `cairn help objects` explains them\n");
    return 2;
}

static int fail(const struct cn_err *err)
{
    fprintf(stderr, "cairn: %s%s\n", err->text,
            err->code == CN_ELOCKED ? "; stop the server first" : "");
    return 1;
}

/* ---- list ---- */

struct listing {
    const char *namespace_name;
    bool json;
    int count;
    struct cn_object_key last;
};

static void print_time(int64_t time_ms)
{
    char text[32];
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
    printf("  %-20s", text);
}

static int print_entry(void *data, const struct cn_catalog_entry *entry)
{
    struct listing *listing = data;
    char id[CN_OBJECT_HEX_SIZE + 1];
    cn_id_to_hex(entry->key.id, id);
    listing->count++;
    listing->last = entry->key;
    if (listing->json) {
        struct cn_buf line = {0};
        cn_buf_append_str(&line, "{\"namespace\":");
        cn_buf_append_json(&line, listing->namespace_name, strlen(listing->namespace_name));
        cn_buf_printf(&line, ",\"id\":\"%s\",\"name\":", id);
        if (entry->name)
            cn_buf_append_json(&line, entry->name, entry->name_size);
        else
            cn_buf_append_str(&line, "null");
        cn_buf_printf(&line, ",\"size\":%" PRIu64 ",\"created\":%" PRId64 ",\"changed\":%" PRId64,
                      entry->size, entry->created_ms, entry->changed_ms);
        if (entry->alarm_ms == CN_ALARM_NONE)
            cn_buf_append_str(&line, ",\"alarm\":null}");
        else
            cn_buf_printf(&line, ",\"alarm\":%" PRId64 "}", entry->alarm_ms);
        puts(cn_buf_text(&line));
        cn_buf_fini(&line);
        return 0;
    }
    printf("%s  %s  %10" PRIu64, listing->namespace_name, id, entry->size);
    print_time(entry->changed_ms);
    if (entry->alarm_ms != CN_ALARM_NONE) {
        printf("  alarm");
        print_time(entry->alarm_ms);
    }
    if (entry->name)
        printf("  %.*s", entry->name_size, entry->name);
    putchar('\n');
    return 0;
}

static int list_namespace(struct cn_datadir *dir, uint32_t namespace_id, const char *name,
                          bool json, struct cn_err *err)
{
    struct listing listing = {.namespace_name = name, .json = json};
    bool first = true;
    do {
        listing.count = 0;
        int rc =
            cn_catalog_list(cn_store_catalog(dir->store), namespace_id,
                            first ? NULL : listing.last.id, LIST_BATCH, print_entry, &listing, err);
        if (rc < 0)
            return rc;
        first = false;
    } while (listing.count == LIST_BATCH);
    return 0;
}

static int run_list(struct cn_datadir *dir, const struct cn_args *args, struct cn_err *err)
{
    struct cn_catalog *catalog = cn_store_catalog(dir->store);
    uint32_t id, last;
    char name[CN_OBJECT_NAME_MAX + 1];
    if (args->rest_count > 1) {
        const char *wanted = args->rest[1];
        int rc = cn_catalog_namespace_find(catalog, wanted, strlen(wanted), &id, err);
        if (rc == 0)
            return cn_err_set(err, CN_ENOTFOUND, "there is no namespace %s", wanted);
        return rc < 0 ? rc : list_namespace(dir, id, wanted, args->json, err);
    }
    int rc = cn_catalog_namespace_last(catalog, &last, err);
    for (id = 1; rc >= 0 && id <= last; id++) {
        rc = cn_catalog_namespace_name(catalog, id, name, err);
        if (rc == 1)
            rc = list_namespace(dir, id, name, args->json, err);
    }
    return rc < 0 ? rc : 0;
}

/* ---- moments ---- */

/* 2026-01-31T12:00:00[.123]Z, or milliseconds since 1970. */
static int parse_time(const char *text, int64_t *time_ms, struct cn_err *err)
{
    char *end;
    *time_ms = strtoll(text, &end, 10);
    if (*text && !*end)
        return 0;
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    double fraction = 0;
    if (rest && *rest == '.') {
        fraction = strtod(rest, &end);
        rest = end;
    }
    if (!rest || strcmp(rest, "Z") != 0)
        return cn_err_set(err, CN_EINVALID,
                          "\"%s\" is no time: write 2026-01-31T12:00:00Z or milliseconds", text);
    *time_ms = (int64_t)timegm(&tm) * 1000 + (int64_t)(fraction * 1000 + 0.5);
    return 0;
}

/* The bookmark that --bookmark or --time mean; *found is false if neither was given. */
static int find_bookmark(struct cn_datadir *dir, const struct cn_args *args,
                         const struct cn_object_key *key, char text[CN_BOOKMARK_SIZE], bool *found,
                         struct cn_err *err)
{
    *found = args->bookmark || args->time;
    if (args->bookmark && args->time)
        return cn_err_set(err, CN_EINVALID, "--bookmark and --time exclude each other");
    if (args->bookmark) {
        snprintf(text, CN_BOOKMARK_SIZE, "%s", args->bookmark);
        return strlen(args->bookmark) < CN_BOOKMARK_SIZE
                   ? 0
                   : cn_err_set(err, CN_EINVALID, "not a bookmark");
    }
    int64_t time_ms;
    int rc = args->time ? parse_time(args->time, &time_ms, err) : 0;
    if (rc == 0 && args->time)
        rc = cn_history_bookmark_at(dir->history, dir->store, key, time_ms, text, err);
    return rc;
}

/* ---- export and restore ---- */

static int run_export(struct cn_datadir *dir, const struct cn_args *args, struct cn_err *err)
{
    struct cn_object_key key;
    char bookmark[CN_BOOKMARK_SIZE];
    bool has_bookmark;
    const char *file = args->rest[3], *slash = strrchr(file, '/');
    char *folder =
        slash ? cn_strndup(file, slash == file ? 1 : (size_t)(slash - file)) : cn_strdup(".");
    struct cn_disk *to = cn_disk_system_new(folder);
    int rc = to ? 0 : cn_err_errno(err, errno, "cannot open the folder %s", folder);
    if (rc == 0)
        rc = cn_datadir_find(dir, args->rest[1], args->rest[2], &key, err);
    if (rc == 0)
        rc = find_bookmark(dir, args, &key, bookmark, &has_bookmark, err);
    if (rc == 0)
        rc = cn_history_copy(dir->history, dir->store, &key, has_bookmark ? bookmark : NULL, to,
                             slash ? slash + 1 : file, err);
    cn_disk_system_free(to);
    cn_free(folder);
    return rc;
}

static int run_restore(struct cn_datadir *dir, const struct cn_args *args, struct cn_err *err)
{
    struct cn_object_key key;
    char bookmark[CN_BOOKMARK_SIZE], undo[CN_BOOKMARK_SIZE];
    bool has_bookmark;
    uint64_t lsn;
    int rc = cn_datadir_find(dir, args->rest[1], args->rest[2], &key, err);
    if (rc == 0)
        rc = find_bookmark(dir, args, &key, bookmark, &has_bookmark, err);
    if (rc == 0 && !has_bookmark)
        rc = cn_err_set(err, CN_EINVALID, "to which moment? --bookmark B or --time T");
    if (rc == 0)
        rc = cn_history_restore(dir->history, dir->store, &key, bookmark, &lsn, undo, err);
    if (rc == 0)
        rc = cn_store_wait(dir->store, lsn, err);
    if (rc == 0)
        printf("restored; this bookmark undoes it: %s\n", undo);
    return rc;
}

int cn_cmd_objects(const struct cn_args *args)
{
    static const struct {
        const char *name;
        size_t rest_min, rest_max;
        bool writes;
        int (*run)(struct cn_datadir *dir, const struct cn_args *args, struct cn_err *err);
    } verbs[] = {{"list", 1, 2, false, run_list},
                 {"export", 4, 4, false, run_export},
                 {"restore", 3, 3, true, run_restore}};
    for (size_t i = 0; args->rest_count > 0 && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(args->rest[0], verbs[i].name) != 0)
            continue;
        if (args->rest_count < verbs[i].rest_min || args->rest_count > verbs[i].rest_max)
            return usage();
        struct cn_err err = {0};
        struct cn_datadir dir;
        if (cn_datadir_open(&dir, cn_datadir_path(args), !verbs[i].writes, &err) < 0)
            return fail(&err);
        int rc = verbs[i].run(&dir, args, &err);
        cn_datadir_close(&dir);
        return rc < 0 ? fail(&err) : 0;
    }
    return usage();
}
