/* SPDX-License-Identifier: Apache-2.0 */
/* admin/control_objects.c - finding objects, looking at them, going back in time, deleting. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin/handler.h"
#include "admin/relay.h"
#include "admin/spread.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/mem.h"
#include "object/access.h"
#include "object/id.h"
#include "object/object.h"
#include "object/shard.h"
#include "object/shard_list.h"
#include "object/socket.h"
#include "store/catalog.h"
#include "store/database.h"
#include "store/history.h"
#include "store/store.h"

enum { LIST_MAX = 1000, LIST_DEFAULT = 100, COPY_SIZE = 256 << 10, SOCKETS_MAX = 100 };

/* --- lists ----------------------------------------------------------------------------------- */

/* What all nodes know of a namespace. */
struct known {
    int64_t number;
    const char *name; /* of an answer */
    int64_t objects, bytes;
};

struct knowledge {
    struct cn_control_call *call;
    struct known *items; /* owned */
    size_t count;
    bool counting;
};

static struct known *know(struct knowledge *knowledge, int64_t number, const char *name)
{
    for (size_t i = 0; i < knowledge->count; i++) {
        if (knowledge->items[i].number == number)
            return &knowledge->items[i];
    }
    knowledge->items =
        cn_realloc(knowledge->items, (knowledge->count + 1) * sizeof(*knowledge->items));
    struct known *known = &knowledge->items[knowledge->count++];
    *known = (struct known){.number = number, .name = name};
    return known;
}

static int take_namespaces(void *data, const char *node, const struct cn_json *answer,
                           struct cn_err *err)
{
    const struct cn_json *list = cn_json_find(answer, "namespaces");
    (void)node;
    (void)err;
    for (const struct cn_json *each = list ? list->first : NULL; each; each = each->next) {
        const char *name = cn_json_text(each, "name");
        if (!name)
            continue;
        struct known *known = know(data, cn_json_int(each, "number"), name);
        known->objects += cn_json_int(each, "objects");
        known->bytes += cn_json_int(each, "bytes");
    }
    return 0;
}

static int compare_known(const void *a, const void *b)
{
    int64_t one = ((const struct known *)a)->number, two = ((const struct known *)b)->number;
    return one < two ? -1 : one > two;
}

static int append_known(void *data, struct cn_err *err)
{
    struct knowledge *knowledge = data;
    struct cn_buf *out = &knowledge->call->scratch;
    (void)err;
    if (knowledge->count)
        qsort(knowledge->items, knowledge->count, sizeof(*knowledge->items), compare_known);
    cn_buf_append_str(out, "{\"namespaces\":[");
    for (size_t i = 0; i < knowledge->count; i++) {
        const struct known *known = &knowledge->items[i];
        cn_buf_append_str(out, i ? ",{\"name\":" : "{\"name\":");
        cn_buf_append_json(out, known->name, strlen(known->name));
        if (knowledge->counting)
            cn_buf_printf(out, ",\"objects\":%" PRId64 ",\"bytes\":%" PRId64, known->objects,
                          known->bytes);
        cn_buf_append_byte(out, '}');
    }
    cn_buf_append_str(out, "]}");
    return 0;
}

static int spread_namespaces(struct cn_control_call *call, struct cn_err *err)
{
    struct knowledge knowledge = {.call = call,
                                  .counting = cn_control_param(call, "count") != NULL};
    int rc = cn_spread_get(call, call->target, take_namespaces, append_known, &knowledge, err);
    cn_free(knowledge.items);
    return rc < 0 ? rc : cn_control_answer(call, &call->scratch);
}

int cn_control_namespaces(struct cn_control_call *call, struct cn_err *err)
{
    if (cn_spread_is(call))
        return spread_namespaces(call, err);
    struct cn_spread_marks marks;
    cn_spread_marks_take(&marks, call);
    struct cn_shards *shards = call->control->shards;
    struct cn_buf *out = &call->scratch;
    char name[CN_OBJECT_NAME_MAX + 1];
    uint32_t last;
    bool counting = cn_control_param(call, "count") != NULL; /* reads every entry */
    int rc = cn_shards_namespace_last(shards, &last, err);
    cn_buf_append_str(out, "{\"namespaces\":[");
    bool first = true;
    for (uint32_t id = 1; rc >= 0 && id <= last; id++) {
        uint64_t count, size;
        rc = cn_shards_namespace_name(shards, id, name, err);
        if (rc != 1)
            continue;
        cn_buf_append_str(out, first ? "{\"name\":" : ",{\"name\":");
        first = false;
        cn_buf_append_json(out, name, strlen(name));
        if (call->relayed)
            cn_buf_printf(out, ",\"number\":%" PRIu32, id);
        if (counting)
            rc = cn_shards_count_objects(shards, id, &count, &size, err);
        if (rc < 0)
            break;
        if (counting)
            cn_buf_printf(out, ",\"objects\":%" PRIu64 ",\"bytes\":%" PRIu64, count, size);
        cn_buf_append_byte(out, '}');
    }
    if (rc < 0) {
        cn_spread_marks_fini(&marks);
        return rc;
    }
    cn_buf_append_byte(out, ']');
    cn_spread_marks_append(&marks, call, out);
    cn_buf_append_byte(out, '}');
    return cn_control_answer(call, out);
}

void cn_control_append_entry(struct cn_buf *out, const char *namespace_name,
                             const struct cn_catalog_entry *entry)
{
    char id[CN_OBJECT_HEX_SIZE + 1];
    cn_id_to_hex(entry->key.id, id);
    cn_buf_append_str(out, "{\"namespace\":");
    cn_buf_append_json(out, namespace_name, strlen(namespace_name));
    cn_buf_printf(out, ",\"id\":\"%s\",\"name\":", id);
    if (entry->name)
        cn_buf_append_json(out, entry->name, entry->name_size);
    else
        cn_buf_append_str(out, "null");
    cn_buf_printf(out, ",\"size\":%" PRIu64 ",\"created\":%" PRId64 ",\"changed\":%" PRId64,
                  entry->size, entry->created_ms, entry->changed_ms);
    if (entry->alarm_ms == CN_ALARM_NONE)
        cn_buf_append_str(out, ",\"alarm\":null}");
    else
        cn_buf_printf(out, ",\"alarm\":%" PRId64 "}", entry->alarm_ms);
}

/* How a list is asked for, and how far it has come. */
struct listing {
    struct cn_buf *out;
    const char *namespace_name, *prefix, *cursor;
    const char *id; /* beginning of the ids, or NULL */
    uint32_t namespace_id;
    int64_t limit;
    int order; /* enum cn_catalog_order, BY_ID or BY_NAME */
    int count;
    struct cn_object_key last;
    int64_t last_value; /* what the order is by */
    char last_name[CN_OBJECT_NAME_MAX + 1];
    struct cn_spread_marks marks;
};

enum { BY_ID = -1, BY_NAME = -2 };

static int append_listed(void *data, const struct cn_catalog_entry *entry)
{
    struct listing *listing = data;
    if (listing->id) {
        char hex[CN_OBJECT_HEX_SIZE + 1];
        cn_id_to_hex(entry->key.id, hex);
        if (strncasecmp(hex, listing->id, strlen(listing->id)) != 0)
            return 1; /* in order, so none follows */
    }
    if (listing->count++)
        cn_buf_append_byte(listing->out, ',');
    cn_control_append_entry(listing->out, listing->namespace_name, entry);
    listing->last = entry->key;
    listing->last_value =
        listing->order == CN_CATALOG_NEXT_ALARM ? entry->alarm_ms
        : listing->order == CN_CATALOG_OLDEST || listing->order == CN_CATALOG_LATEST
            ? entry->changed_ms
            : (int64_t)entry->size;
    if (entry->name)
        snprintf(listing->last_name, sizeof(listing->last_name), "%.*s", (int)entry->name_size,
                 entry->name);
    return 0;
}

static int parse_order(struct cn_control_call *call, struct listing *listing, struct cn_err *err)
{
    static const struct {
        const char *name;
        int ascending, descending;
    } orders[] = {{"id", BY_ID, BY_ID},
                  {"name", BY_NAME, BY_NAME},
                  {"size", CN_CATALOG_SMALLEST, CN_CATALOG_LARGEST},
                  {"changed", CN_CATALOG_OLDEST, CN_CATALOG_LATEST},
                  {"alarm", CN_CATALOG_NEXT_ALARM, CN_CATALOG_NEXT_ALARM}};
    const char *sort = cn_control_param(call, "sort");
    bool descending = cn_control_param(call, "desc") != NULL;
    listing->order = listing->prefix ? BY_NAME : BY_ID;
    if (listing->id && (listing->prefix || (sort && strcmp(sort, "id") != 0)))
        return cn_err_set(err, CN_EINVALID, "an id is only for lists in order of ids");
    if (!sort)
        return 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(orders); i++) {
        if (strcmp(orders[i].name, sort) != 0)
            continue;
        listing->order = descending ? orders[i].descending : orders[i].ascending;
        if (listing->prefix && listing->order != BY_NAME)
            return cn_err_set(err, CN_EINVALID, "a prefix is only for lists in order of names");
        return 0;
    }
    return cn_err_set(err, CN_EINVALID, "sort must be id, name, size, changed or alarm");
}

/* The id before the first that begins so: 1; or 0 if there is none, for it is all zeros. */
static int before_first(const char *beginning, uint8_t id[CN_OBJECT_ID_SIZE], struct cn_err *err)
{
    char hex[CN_OBJECT_HEX_SIZE + 1];
    size_t size = strlen(beginning);
    memset(hex, '0', CN_OBJECT_HEX_SIZE);
    if (size <= CN_OBJECT_HEX_SIZE)
        memcpy(hex, beginning, size);
    if (size > CN_OBJECT_HEX_SIZE || !cn_id_from_hex(hex, CN_OBJECT_HEX_SIZE, id))
        return cn_err_set(err, CN_EINVALID, "id must be up to 64 hexadecimal digits");
    for (int i = CN_OBJECT_ID_SIZE - 1; i >= 0; i--) {
        if (id[i]-- != 0)
            return 1;
    }
    return 0;
}

static struct cn_catalog_listing listing_asked(struct listing *listing)
{
    return (struct cn_catalog_listing){.namespace_id = listing->namespace_id,
                                       .limit = (int)listing->limit,
                                       .each = append_listed,
                                       .data = listing};
}

static int list_by_id(struct cn_shards *shards, struct listing *listing, struct cn_err *err)
{
    uint8_t after[CN_OBJECT_ID_SIZE];
    const char *cursor = listing->cursor;
    int rc = cursor != NULL;
    if (cursor && !cn_id_from_hex(cursor, strlen(cursor), after))
        return cn_err_set(err, CN_EINVALID, "the cursor is not one of this list");
    if (!cursor && listing->id)
        rc = before_first(listing->id, after, err);
    if (rc < 0)
        return rc;
    struct cn_catalog_listing asked = listing_asked(listing);
    return cn_shards_list(shards, &asked, rc ? after : NULL, err);
}

static int list_by_name(struct cn_shards *shards, struct listing *listing, struct cn_err *err)
{
    const char *prefix = listing->prefix ? listing->prefix : "", *cursor = listing->cursor;
    struct cn_catalog_listing asked = listing_asked(listing);
    return cn_shards_list_names(shards, &asked, prefix, strlen(prefix), cursor,
                                cursor ? strlen(cursor) : 0, err);
}

/* The cursor is the value and the id of the last one: "4096.<64 hex>". */
static int list_sorted(struct cn_shards *shards, struct listing *listing, struct cn_err *err)
{
    struct cn_catalog_cursor after;
    const char *cursor = listing->cursor;
    char *end = NULL;
    if (cursor) {
        after.value = strtoll(cursor, &end, 10);
        if (end == cursor || *end != '.' || !cn_id_from_hex(end + 1, strlen(end + 1), after.id))
            return cn_err_set(err, CN_EINVALID, "the cursor is not one of this list");
    }
    struct cn_catalog_listing asked = listing_asked(listing);
    return cn_shards_list_sorted(shards, &asked, (enum cn_catalog_order)listing->order,
                                 cursor ? &after : NULL, err);
}

static void append_cursor(const struct listing *listing)
{
    char text[CN_OBJECT_HEX_SIZE + 32], hex[CN_OBJECT_HEX_SIZE + 1];
    cn_buf_append_str(listing->out, "],\"cursor\":");
    cn_id_to_hex(listing->last.id, hex);
    if (listing->count == 0 || listing->count < listing->limit) {
        cn_buf_append_str(listing->out, "null");
        return;
    }
    if (listing->order >= 0)
        snprintf(text, sizeof(text), "%" PRId64 ".%s", listing->last_value, hex);
    else
        snprintf(text, sizeof(text), "%s", hex);
    const char *cursor = listing->order == BY_NAME ? listing->last_name : text;
    cn_buf_append_json(listing->out, cursor, strlen(cursor));
}

/* --- a list of all nodes --- */

struct found {
    const struct cn_json *entry; /* of an answer */
    const char *id, *name;
    int64_t value; /* what the order is by */
    const char *node;
};

struct merge {
    struct listing *listing;
    struct found *items; /* owned */
    size_t count, capacity;
};

static int take_objects(void *data, const char *node, const struct cn_json *answer,
                        struct cn_err *err)
{
    struct merge *merge = data;
    const char *by =
        merge->listing->order == CN_CATALOG_NEXT_ALARM ? "alarm"
        : merge->listing->order == CN_CATALOG_OLDEST || merge->listing->order == CN_CATALOG_LATEST
            ? "changed"
            : "size";
    const struct cn_json *list = cn_json_find(answer, "objects");
    for (const struct cn_json *each = list ? list->first : NULL; each; each = each->next) {
        const char *id = cn_json_text(each, "id"), *name = cn_json_text(each, "name");
        if (!id || strlen(id) != CN_OBJECT_HEX_SIZE || each->kind != CN_JSON_OBJECT)
            return cn_err_set(err, CN_EPROTOCOL, "node %s: its list cannot be read", node);
        CN_GROW(merge->items, merge->count, merge->capacity);
        merge->items[merge->count++] =
            (struct found){each, id, name ? name : "", cn_json_int(each, by), node};
    }
    return 0;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(((const struct found *)a)->id, ((const struct found *)b)->id);
}

static int compare_names(const void *a, const void *b)
{
    int order = strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
    return order ? order : compare_ids(a, b);
}

static int compare_values(const void *a, const void *b)
{
    int64_t one = ((const struct found *)a)->value, two = ((const struct found *)b)->value;
    return one < two ? -1 : one > two ? 1 : compare_ids(a, b);
}

static int compare_values_down(const void *a, const void *b)
{
    return compare_values(b, a);
}

/* As the catalogs' own orders: object/shard_list.c. */
static int append_merged(void *data, struct cn_err *err)
{
    struct merge *merge = data;
    struct listing *listing = merge->listing;
    bool down = listing->order == CN_CATALOG_LARGEST || listing->order == CN_CATALOG_LATEST;
    const char *last = "";
    (void)err;
    if (merge->count)
        qsort(merge->items, merge->count, sizeof(*merge->items),
              listing->order == BY_ID     ? compare_ids
              : listing->order == BY_NAME ? compare_names
              : down                      ? compare_values_down
                                          : compare_values);
    for (size_t i = 0; i < merge->count && listing->count < listing->limit; i++) {
        const struct found *found = &merge->items[i];
        if (strcmp(found->id, last) == 0)
            continue; /* P2 of spread.h */
        last = found->id;
        cn_buf_append_str(listing->out, listing->count++ ? "," : "");
        cn_json_write(listing->out, found->entry);
        listing->out->size--; /* the brace */
        cn_buf_append_str(listing->out, ",\"node\":");
        cn_buf_append_json(listing->out, found->node, strlen(found->node));
        cn_buf_append_byte(listing->out, '}');
        (void)cn_id_from_hex(found->id, CN_OBJECT_HEX_SIZE, listing->last.id);
        listing->last_value = found->value;
        snprintf(listing->last_name, sizeof(listing->last_name), "%s", found->name);
    }
    return 0;
}

static int spread_list(struct cn_control_call *call, struct listing *listing, struct cn_err *err)
{
    struct merge merge = {.listing = listing};
    int rc = cn_spread_get(call, call->target, take_objects, append_merged, &merge, err);
    cn_free(merge.items);
    return rc;
}

static int list_here(struct cn_control_call *call, struct listing *listing, struct cn_err *err)
{
    struct cn_shards *shards = call->control->shards;
    cn_spread_marks_take(&listing->marks, call);
    if (call->relayed && !listing->namespace_id)
        return 0; /* nothing of it is here */
    return listing->order == BY_ID     ? list_by_id(shards, listing, err)
           : listing->order == BY_NAME ? list_by_name(shards, listing, err)
                                       : list_sorted(shards, listing, err);
}

int cn_control_list(struct cn_control_call *call, struct cn_err *err)
{
    struct listing listing = {.out = &call->scratch,
                              .namespace_name = cn_control_param(call, "namespace"),
                              .prefix = cn_control_param(call, "prefix"),
                              .id = cn_control_param(call, "id"),
                              .cursor = cn_control_param(call, "cursor")};
    if (!listing.namespace_name)
        return cn_err_set(err, CN_EINVALID, "which namespace? The parameter is missing");
    int rc = cn_control_namespace(call, listing.namespace_name, &listing.namespace_id, err);
    if (rc == CN_ENOTFOUND && call->relayed)
        rc = 0; /* another node has some */
    if (rc == 0)
        rc = cn_control_param_number(call, "limit", LIST_MAX, LIST_DEFAULT, &listing.limit, err);
    if (rc == 0)
        rc = parse_order(call, &listing, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(listing.out, "{\"objects\":[");
    rc = cn_spread_is(call) ? spread_list(call, &listing, err) : list_here(call, &listing, err);
    if (rc >= 0) {
        append_cursor(&listing);
        cn_spread_marks_append(&listing.marks, call, listing.out);
        cn_buf_append_byte(listing.out, '}');
        return cn_control_answer(call, listing.out);
    }
    cn_spread_marks_fini(&listing.marks);
    return rc;
}

/* --- one object ------------------------------------------------------------------------------ */

struct inspection {
    struct cn_buf *out;
    bool live;
};

static int count_rows(struct cn_database *db, const char *table, size_t size, int64_t *count,
                      struct cn_err *err)
{
    struct cn_buf sql = {0};
    cn_buf_append_str(&sql, "SELECT count(*) FROM \"");
    for (size_t i = 0; i < size; i++) {
        if (table[i] == '"')
            cn_buf_append_byte(&sql, '"');
        cn_buf_append_byte(&sql, (uint8_t)table[i]);
    }
    cn_buf_append_byte(&sql, '"');
    int rc = cn_database_number(db, (char *)sql.data, sql.size, count, err);
    cn_buf_fini(&sql);
    return rc;
}

/* The tables with their sizes; key-value pairs are one more table, shown as `keys`. */
static int inspect_database(struct cn_object *object, struct cn_database *db, void *data,
                            struct cn_err *err)
{
    static const char sql[] = "SELECT name, coalesce(sql, '') FROM sqlite_schema WHERE type = "
                              "'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    struct inspection *inspection = data;
    struct cn_buf *out = inspection->out;
    struct cn_statement *statement;
    size_t used;
    int64_t keys = 0;
    inspection->live = object != NULL;
    int rc = cn_database_prepare(db, sql, sizeof(sql) - 1, 0, &statement, &used, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(out, ",\"tables\":[");
    bool first = true;
    while ((rc = cn_statement_step(statement, err)) == 1) {
        size_t name_size, sql_size;
        int64_t count = 0;
        const char *name = cn_statement_column_text(statement, 0, &name_size);
        bool hidden = name_size >= 4 && strncasecmp(name, "_cf_", 4) == 0;
        bool is_kv = name_size == 6 && strncasecmp(name, "_cf_KV", 6) == 0;
        if (!hidden || is_kv)
            rc = count_rows(db, name, name_size, is_kv ? &keys : &count, err);
        if (rc < 0)
            break;
        if (hidden)
            continue;
        cn_buf_append_str(out, first ? "{\"name\":" : ",{\"name\":");
        cn_buf_append_json(out, name, name_size);
        cn_buf_printf(out, ",\"rows\":%" PRId64 ",\"sql\":", count);
        const char *text = cn_statement_column_text(statement, 1, &sql_size);
        cn_buf_append_json(out, text, sql_size);
        cn_buf_append_byte(out, '}');
        first = false;
    }
    cn_statement_release(statement);
    cn_buf_printf(out, "],\"keys\":%" PRId64, keys);
    return rc;
}

/* What the lane knows: who is connected. */
struct survey {
    struct cn_buf *out;
    bool first;
};

static void append_socket(const struct cn_object_socket *socket, void *data)
{
    struct survey *survey = data;
    cn_buf_printf(survey->out, "%s{\"since\":%" PRId64 ",\"hibernatable\":%s,\"tags\":[",
                  survey->first ? "" : ",", socket->accepted_ms, socket->holder ? "false" : "true");
    survey->first = false;
    for (unsigned i = 0; i < socket->tag_count; i++) {
        struct cn_text tag = cn_object_socket_tag_name(socket->tags[i].tag);
        cn_buf_append_str(survey->out, i ? "," : "");
        cn_buf_append_json(survey->out, tag.data, tag.size);
    }
    cn_buf_append_str(survey->out, "]}");
}

static void survey_sockets(struct cn_object_lane *lane, const struct cn_object_key *key, void *data)
{
    struct survey *survey = data;
    bool hibernated;
    cn_buf_append_str(survey->out, ",\"sockets\":{\"connections\":[");
    size_t count =
        cn_object_socket_survey(lane, key, &hibernated, SOCKETS_MAX, append_socket, survey);
    cn_buf_printf(survey->out, "],\"count\":%zu,\"hibernated\":%s}", count,
                  hibernated ? "true" : "false");
}

int cn_control_inspect(struct cn_control_call *call, struct cn_err *err)
{
    const struct cn_control *control = call->control;
    struct cn_buf *out = &call->scratch;
    struct cn_object_key key;
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1], bookmark[CN_BOOKMARK_SIZE];
    int rc = cn_control_object(call, 2, &key, err);
    if (rc == 0)
        rc = cn_control_hold(call, &key, err);
    if (rc == 0)
        rc = cn_shards_find(control->shards, &key, &entry, name, err);
    if (rc == 0)
        return cn_err_set(err, CN_ENOTFOUND, "%s has no object %s", call->path[2], call->path[3]);
    if (rc < 0)
        return rc;
    cn_control_append_entry(out, call->path[2], &entry);
    out->size--; /* the closing brace: more follows */
    struct inspection inspection = {.out = out};
    rc = cn_control_with_database(call, &key, inspect_database, &inspection, err);
    if (rc < 0)
        return rc;
    struct survey survey = {out, true};
    rc = control->node ? cn_access_lane(control->node, &key, survey_sockets, &survey, err) : 0;
    if (rc < 0)
        return rc;
    if (!control->node)
        cn_buf_append_str(out,
                          ",\"sockets\":{\"connections\":[],\"count\":0,\"hibernated\":false}");
    cn_history_bookmark_now(call->shard->history, call->shard->store, &key, 0, bookmark);
    struct cn_history_stats history;
    cn_history_stats(call->shard->history, &history);
    cn_buf_printf(out, ",\"live\":%s,\"bookmark\":\"%s\",\"historySince\":",
                  inspection.live ? "true" : "false", bookmark);
    if (history.oldest_lsn)
        cn_buf_printf(out, "%" PRId64 "}", history.oldest_ms);
    else
        cn_buf_append_str(out, "null}");
    return cn_control_answer(call, out);
}

/* --- moments --------------------------------------------------------------------------------- */

int cn_control_moment(struct cn_control_call *call, const struct cn_object_key *key,
                      const char *bookmark, const char *time, char text[CN_BOOKMARK_SIZE],
                      struct cn_err *err)
{
    int64_t time_ms;
    if (bookmark && time)
        return cn_err_set(err, CN_EINVALID, "a bookmark and a time exclude each other");
    if (bookmark) {
        if (strlen(bookmark) >= CN_BOOKMARK_SIZE)
            return cn_err_set(err, CN_EINVALID, "not a bookmark");
        snprintf(text, CN_BOOKMARK_SIZE, "%s", bookmark);
        return 1;
    }
    if (!time)
        return 0;
    int rc = cn_clock_parse(time, &time_ms, err);
    if (rc == 0)
        rc = cn_control_hold(call, key, err);
    if (rc == 0)
        rc = cn_history_bookmark_at(call->shard->history, call->shard->store, key, time_ms, text,
                                    err);
    return rc < 0 ? rc : 1;
}

int cn_control_had_data(struct cn_control_call *call, const struct cn_object_key *key,
                        const char *bookmark, struct cn_err *err)
{
    int rc = cn_control_hold(call, key, err);
    if (rc == 0)
        rc = cn_history_was_there(call->shard->history, call->shard->store, key, bookmark, err);
    if (rc == 0)
        return cn_err_set(
            err, CN_ENOTFOUND,
            "there was no data at that time: it was not there yet, or had been deleted");
    return rc < 0 ? rc : 0;
}

/* Of a moment that was found by its time: nobody has seen what was there. */
static int check_time(struct cn_control_call *call, const struct cn_object_key *key,
                      const char *bookmark, struct cn_err *err)
{
    const struct cn_json *empty = cn_json_find(call->json, "empty");
    if (empty && empty->kind != CN_JSON_BOOL)
        return cn_err_set(err, CN_EINVALID, "\"empty\" must be true or false");
    if (!cn_json_text(call->json, "time") || (empty && empty->boolean))
        return 0;
    return cn_control_had_data(call, key, bookmark, err);
}

struct restoring {
    const char *bookmark;
    char undo[CN_BOOKMARK_SIZE];
};

static int restore_now(struct cn_control_call *call, const struct cn_object_key *key, void *data,
                       struct cn_err *err)
{
    struct restoring *restoring = data;
    const struct cn_shard *shard = call->shard;
    uint64_t lsn;
    int rc = cn_history_restore(shard->history, shard->store, key, restoring->bookmark, &lsn,
                                restoring->undo, err);
    return rc < 0 ? rc : cn_store_wait(shard->store, lsn, err);
}

int cn_control_restore(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    char bookmark[CN_BOOKMARK_SIZE];
    struct restoring restoring = {.bookmark = bookmark};
    int rc = cn_control_object(call, 2, &key, err);
    if (rc == 0)
        rc = cn_control_moment(call, &key, cn_json_text(call->json, "bookmark"),
                               cn_json_text(call->json, "time"), bookmark, err);
    if (rc == 0)
        return cn_err_set(err, CN_EINVALID, "to which moment? A bookmark or a time is missing");
    if (rc > 0)
        rc = cn_control_hold(call, &key, err);
    if (rc == 0)
        rc = check_time(call, &key, bookmark, err);
    if (rc == 0)
        rc = cn_history_check(call->shard->history, call->shard->store, &key, bookmark, err);
    if (rc == 0) /* only now that it can succeed is a live instance ended */
        rc = cn_control_exclusive(call, &key, "Durable Object reset because it was restored.",
                                  restore_now, &restoring, err);
    if (rc < 0)
        return rc;
    cn_buf_printf(&call->scratch, "{\"undo\":\"%s\"}", restoring.undo);
    return cn_control_answer(call, &call->scratch);
}

/* --- history --------------------------------------------------------------------------------- */

struct commits {
    struct cn_buf *out;
    int count;
    uint64_t last_lsn;
};

static int append_commit(void *data, const struct cn_history_commit *commit)
{
    struct commits *commits = data;
    const char *kind = commit->flags & CN_COMMIT_DELETED   ? "delete"
                       : commit->flags & CN_COMMIT_RESTORE ? "restore"
                       : commit->flags & CN_COMMIT_RESET   ? "reset"
                                                           : "write";
    cn_buf_printf(commits->out,
                  "%s{\"lsn\":%" PRIu64 ",\"time\":%" PRId64
                  ",\"bookmark\":\"%s\",\"pages\":%" PRIu32 ",\"size\":%" PRIu64
                  ",\"kind\":\"%s\"}",
                  commits->count++ ? "," : "", commit->lsn, commit->time_ms, commit->bookmark,
                  commit->page_count, (uint64_t)commit->pages_after * CN_PAGE_SIZE, kind);
    commits->last_lsn = commit->lsn;
    return 0;
}

int cn_control_history(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    struct commits commits = {.out = &call->scratch};
    int64_t limit, cursor;
    int rc = cn_control_object(call, 2, &key, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "limit", LIST_MAX, LIST_DEFAULT, &limit, err);
    if (rc == 0)
        rc = cn_control_param_number(call, "cursor", INT64_MAX, 0, &cursor, err);
    if (rc == 0)
        rc = cn_control_hold(call, &key, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(commits.out, "{\"commits\":[");
    struct cn_history_listing listing = {.key = &key,
                                         .before_lsn = (uint64_t)cursor,
                                         .limit = (int)limit,
                                         .each = append_commit,
                                         .data = &commits};
    rc = cn_history_commits(call->shard->history, call->shard->store, &listing, err);
    if (rc < 0)
        return rc;
    if (commits.count > 0 && commits.count == limit)
        cn_buf_printf(commits.out, "],\"cursor\":\"%" PRIu64 "\"}", commits.last_lsn);
    else
        cn_buf_append_str(commits.out, "],\"cursor\":null}");
    return cn_control_answer(call, commits.out);
}

/* --- export ---------------------------------------------------------------------------------- */

static int send_file(struct cn_control_call *call, struct cn_disk_file *file, struct cn_err *err)
{
    int64_t size = cn_disk_size(file), count;
    if (size < 0)
        return cn_err_errno(err, (int)-size, "cannot read the copy");
    uint8_t *bytes = cn_alloc(COPY_SIZE);
    call->type = "application/vnd.sqlite3";
    call->length = size;
    for (int64_t at = 0; at < size; at += count) {
        count = cn_disk_read(file, bytes, COPY_SIZE, (uint64_t)at);
        /* Past the first piece the reader finds out by the length that it is not whole. */
        if (count <= 0 || call->write(call, bytes, (size_t)count) < 0)
            break;
    }
    cn_free(bytes);
    return 0;
}

int cn_control_export(struct cn_control_call *call, struct cn_err *err)
{
    const struct cn_control *control = call->control;
    struct cn_object_key key;
    struct cn_disk_file *file;
    char bookmark[CN_BOOKMARK_SIZE], path[64];
    int rc = cn_control_object(call, 2, &key, err);
    if (rc == 0)
        rc = cn_control_moment(call, &key, cn_control_param(call, "bookmark"),
                               cn_control_param(call, "time"), bookmark, err);
    bool has_moment = rc == 1;
    if (rc >= 0)
        rc = cn_control_hold(call, &key, err);
    if (rc < 0)
        return rc;
    /* Files that end so are removed when the directory is opened, and no backup has them. */
    snprintf(path, sizeof(path), "history/export-%p.tmp", (void *)call);
    rc = cn_disk_mkdirs(control->disk, "history");
    if (rc < 0)
        return cn_err_errno(err, -rc, "cannot make the folder history");
    (void)cn_disk_unlink(control->disk, path); /* of a process before; usually there is none */
    rc = cn_history_copy(call->shard->history, call->shard->store, &key,
                         has_moment ? bookmark : NULL, control->disk, path, err);
    cn_control_release(call); /* the reader may be slow */
    if (rc < 0)
        return rc;
    rc = cn_disk_open(control->disk, path, CN_DISK_READONLY, &file);
    if (rc < 0) {
        rc = cn_err_errno(err, -rc, "cannot open the copy");
    } else {
        rc = send_file(call, file, err);
        cn_disk_close(file);
    }
    (void)cn_disk_unlink(control->disk, path); /* as above */
    return rc;
}

/* --- delete and alarm ------------------------------------------------------------------------ */

static int delete_now(struct cn_control_call *call, const struct cn_object_key *key, void *data,
                      struct cn_err *err)
{
    struct restoring *restoring = data;
    const struct cn_shard *shard = call->shard;
    uint64_t lsn;
    cn_history_bookmark_now(shard->history, shard->store, key, 0, restoring->undo);
    int rc = cn_store_delete(shard->store, key, &lsn, err);
    return rc < 0 ? rc : cn_store_wait(shard->store, lsn, err);
}

int cn_control_delete(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    struct cn_catalog_entry entry;
    char name[CN_OBJECT_NAME_MAX + 1];
    struct restoring restoring;
    int rc = cn_control_object(call, 2, &key, err);
    if (rc == 0)
        rc = cn_control_hold(call, &key, err);
    if (rc == 0)
        rc = cn_shards_find(call->control->shards, &key, &entry, name, err);
    if (rc == 0)
        return cn_err_set(err, CN_ENOTFOUND, "%s has no object %s", call->path[2], call->path[3]);
    if (rc > 0)
        rc = cn_control_exclusive(call, &key, "Durable Object reset because it was deleted.",
                                  delete_now, &restoring, err);
    if (rc < 0)
        return rc;
    cn_buf_printf(&call->scratch, "{\"undo\":\"%s\"}", restoring.undo);
    return cn_control_answer(call, &call->scratch);
}

static int set_alarm(struct cn_object *object, struct cn_database *db, void *data,
                     struct cn_err *err)
{
    int64_t time_ms = *(const int64_t *)data;
    return object ? cn_object_alarm_set(object, time_ms, err)
                  : cn_database_set_alarm(db, time_ms, err);
}

/* PUT {"time": milliseconds} or DELETE. */
int cn_control_alarm(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_object_key key;
    int64_t time_ms = CN_ALARM_NONE;
    int rc = cn_control_object(call, 2, &key, err);
    if (rc < 0)
        return rc;
    if (strcmp(call->method, "PUT") == 0) {
        const struct cn_json *time = cn_json_find(call->json, "time");
        if (!time || time->kind != CN_JSON_INT || time->integer < 0)
            return cn_err_set(err, CN_EINVALID, "\"time\" must be milliseconds since 1970");
        time_ms = time->integer;
    }
    rc = cn_control_with_database(call, &key, set_alarm, &time_ms, err);
    if (rc < 0)
        return rc;
    if (time_ms == CN_ALARM_NONE)
        cn_buf_append_str(&call->scratch, "{\"alarm\":null}");
    else
        cn_buf_printf(&call->scratch, "{\"alarm\":%" PRId64 "}", time_ms);
    return cn_control_answer(call, &call->scratch);
}
