/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/cpuprofile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"

#define INTERVAL_US_DEFAULT 1000
#define IDLE_INTERVALS 4 /* without a sample: nothing ran */
#define DEPTH_MAX 256    /* of a stack */
#define VALUES_MAX (16u << 20)
#define ROOT 0
#define IDLE 1

struct function {
    char *name; /* owned */
    char *url;  /* owned: JSON */
    uint32_t line, column;
};

struct line {
    uint32_t line, ticks;
};

struct node {
    uint32_t function, parent;
    uint64_t hits;
    struct line *lines; /* owned */
    size_t line_count;
};

struct sample {
    int64_t time_us;
    uint32_t node;
};

struct cn_cpuprofile {
    cn_cpuprofile_resolve resolve;
    void *data;
    struct function *functions; /* owned */
    size_t function_count;
    struct cn_map function_ids; /* key -> number + 1 */
    struct node *nodes;         /* owned */
    size_t node_count;
    struct cn_map node_ids; /* struct { parent, function } -> number + 1 */
    struct sample *samples; /* owned */
    size_t sample_count, dropped;
    int64_t interval_us;
};

static uint32_t add_function(struct cn_cpuprofile *profile, const char *key, size_t key_size,
                             const char *name)
{
    uintptr_t known = (uintptr_t)cn_map_find(&profile->function_ids, key, key_size);
    if (known)
        return (uint32_t)known - 1;
    uint32_t number = (uint32_t)profile->function_count++;
    CN_GROW_COUNTED(profile->functions, number);
    profile->functions[number] = (struct function){.name = cn_strdup(name)};
    cn_map_set(&profile->function_ids, key, key_size, (void *)(uintptr_t)(number + 1));
    return number;
}

/* C2: the parent itself when there is no room. */
static uint32_t add_node(struct cn_cpuprofile *profile, uint32_t parent, uint32_t function)
{
    uint32_t key[] = {parent, function};
    uintptr_t known = (uintptr_t)cn_map_find(&profile->node_ids, key, sizeof(key));
    if (known)
        return (uint32_t)known - 1;
    if (profile->node_count == CN_CPUPROFILE_NODES_MAX)
        return parent;
    uint32_t number = (uint32_t)profile->node_count++;
    CN_GROW_COUNTED(profile->nodes, number);
    profile->nodes[number] = (struct node){.function = function, .parent = parent};
    cn_map_set(&profile->node_ids, key, sizeof(key), (void *)(uintptr_t)(number + 1));
    return number;
}

/* One that is no function of a script: "(root)". */
static uint32_t add_named(struct cn_cpuprofile *profile, uint32_t parent, const char *name)
{
    return add_node(profile, parent, add_function(profile, name, strlen(name), name));
}

struct cn_cpuprofile *cn_cpuprofile_new(cn_cpuprofile_resolve resolve, void *data)
{
    struct cn_cpuprofile *profile = CN_NEW(struct cn_cpuprofile);
    profile->resolve = resolve;
    profile->data = data;
    profile->interval_us = INTERVAL_US_DEFAULT;
    cn_map_init(&profile->function_ids);
    cn_map_init(&profile->node_ids);
    (void)add_named(profile, UINT32_MAX, "(root)"); /* ROOT */
    (void)add_named(profile, ROOT, "(idle)");       /* IDLE */
    return profile;
}

void cn_cpuprofile_free(struct cn_cpuprofile *profile)
{
    if (!profile)
        return;
    for (size_t i = 0; i < profile->function_count; i++) {
        cn_free(profile->functions[i].name);
        cn_free(profile->functions[i].url);
    }
    for (size_t i = 0; i < profile->node_count; i++)
        cn_free(profile->nodes[i].lines);
    cn_free(profile->functions);
    cn_free(profile->nodes);
    cn_free(profile->samples);
    cn_map_fini(&profile->function_ids);
    cn_map_fini(&profile->node_ids);
    cn_free(profile);
}

/* --- reading ----------------------------------------------------------------------------------
 */

static const char *find_url(const struct cn_json *sources, int64_t id)
{
    for (const struct cn_json *each = sources ? sources->first : NULL; each; each = each->next) {
        if (cn_json_int(each, "sourceID") == id)
            return cn_json_text(each, "url");
    }
    return NULL;
}

/* A line or column; the engine says UINT32_MAX where it does not know. */
static uint32_t read_number(const struct cn_json *frame, const char *name)
{
    int64_t value = cn_json_int(frame, name);
    return value > 0 && value < INT32_MAX ? (uint32_t)value : 0;
}

/* The part of "#EU60bJ:DFG:bc#48" that stands for the code. */
static size_t hash_size(const char *location)
{
    const char *colon = strchr(location, ':');
    return colon ? (size_t)(colon - location) : strlen(location);
}

static bool is_before(const struct cn_cpuprofile_place *place, const struct function *function)
{
    return place->line && (!function->line || place->line < function->line ||
                           (place->line == function->line && place->column < function->column));
}

static uint32_t read_frame(struct cn_cpuprofile *profile, const struct cn_json *frame,
                           const struct cn_json *sources, struct cn_cpuprofile_place *place)
{
    const char *name = cn_json_text(frame, "name"), *location = cn_json_text(frame, "location");
    const char *url = find_url(sources, cn_json_int(frame, "sourceID"));
    struct cn_buf key = {0};
    name = name ? name : "";
    location = location ? location : "";
    cn_buf_printf(&key, "%s\n%.*s\n", url ? url : "", (int)hash_size(location), location);
    cn_buf_append_str(&key, name);
    uint32_t number = add_function(profile, (char *)key.data, key.size, name);
    struct function *function = &profile->functions[number];
    cn_buf_clear(&place->url);
    place->line = place->column = 0;
    if (url)
        profile->resolve(profile->data, url, read_number(frame, "line"),
                         read_number(frame, "column"), place);
    if (place->url.size && (!function->url || is_before(place, function))) {
        cn_free(function->url);
        function->url = cn_strdup(cn_buf_text(&place->url));
        function->line = place->line;
        function->column = place->column;
    }
    cn_buf_fini(&key);
    return number;
}

static void count_line(struct node *node, uint32_t line)
{
    for (size_t i = 0; i < node->line_count; i++) {
        if (node->lines[i].line == line) {
            node->lines[i].ticks++;
            return;
        }
    }
    if (!line || node->line_count == CN_CPUPROFILE_LINES_MAX)
        return;
    node->lines = cn_realloc(node->lines, (node->line_count + 1) * sizeof(*node->lines));
    node->lines[node->line_count++] = (struct line){line, 1};
}

/* Frames come innermost first. */
static uint32_t read_stack(struct cn_cpuprofile *profile, uint32_t base,
                           const struct cn_json *frames, const struct cn_json *sources)
{
    uint32_t functions[DEPTH_MAX], top_line = 0;
    struct cn_cpuprofile_place place = {0};
    size_t count = 0;
    for (const struct cn_json *each = frames ? frames->first : NULL; each && count < DEPTH_MAX;
         each = each->next) {
        functions[count++] = read_frame(profile, each, sources, &place);
        if (count == 1)
            top_line = place.line;
    }
    uint32_t node = base;
    for (size_t i = count; i-- > 0;)
        node = add_node(profile, node, functions[i]);
    count_line(&profile->nodes[node], top_line);
    cn_buf_fini(&place.url);
    return node;
}

static void add_sample(struct cn_cpuprofile *profile, int64_t time_us, uint32_t node)
{
    if (profile->sample_count == CN_CPUPROFILE_SAMPLES_MAX) {
        profile->dropped++;
        return;
    }
    size_t count = profile->sample_count++;
    CN_GROW_COUNTED(profile->samples, count);
    profile->samples[count] = (struct sample){time_us, node};
    profile->nodes[node].hits++;
}

void cn_cpuprofile_add(struct cn_cpuprofile *profile, unsigned lane, const char *json, size_t size)
{
    struct cn_err err;
    char name[24];
    struct cn_json *root = cn_json_parse_some(json, size, VALUES_MAX, &err);
    const struct cn_json *traces = cn_json_find(root, "traces");
    const struct cn_json *sources = cn_json_find(root, "sources");
    const struct cn_json *interval = cn_json_find(root, "interval");
    if (interval && interval->number > 0 && interval->number < 1)
        profile->interval_us = (int64_t)(interval->number * 1e6);
    snprintf(name, sizeof(name), "lane %u", lane);
    uint32_t base = add_named(profile, ROOT, name);
    for (const struct cn_json *each = traces ? traces->first : NULL; each; each = each->next) {
        const struct cn_json *time = cn_json_find(each, "timestamp");
        if (time && (time->kind == CN_JSON_NUMBER || time->kind == CN_JSON_INT) &&
            time->number >= 0 && time->number < 1e12)
            add_sample(profile, (int64_t)(time->number * 1e6),
                       read_stack(profile, base, cn_json_find(each, "frames"), sources));
    }
    cn_json_free(root);
}

/* --- writing ----------------------------------------------------------------------------------
 */

static void write_lines(struct cn_buf *out, const struct node *node)
{
    cn_buf_append_str(out, ",\"positionTicks\":[");
    for (size_t i = 0; i < node->line_count; i++)
        cn_buf_printf(out, "%s{\"line\":%u,\"ticks\":%u}", i ? "," : "", node->lines[i].line,
                      node->lines[i].ticks);
    cn_buf_append_byte(out, ']');
}

/* The children of each node: the first, and for each the one after it; 0: none (ROOT is no child).
 */
struct children {
    uint32_t *first, *next; /* owned */
};

static struct children find_children(const struct cn_cpuprofile *profile)
{
    size_t count = profile->node_count;
    struct children children = {cn_alloc_zero(count * sizeof(uint32_t)),
                                cn_alloc_zero(count * sizeof(uint32_t))};
    for (size_t i = count; i-- > 1;) {
        uint32_t parent = profile->nodes[i].parent;
        children.next[i] = children.first[parent];
        children.first[parent] = (uint32_t)i;
    }
    return children;
}

static void write_children(struct cn_buf *out, const struct children *children, size_t node)
{
    cn_buf_append_str(out, ",\"children\":[");
    for (uint32_t at = children->first[node]; at; at = children->next[at])
        cn_buf_printf(out, "%s%u", at == children->first[node] ? "" : ",", at + 1);
    cn_buf_append_byte(out, ']');
}

/* Numbers of nodes count from 1 in the file. */
static void write_nodes(const struct cn_cpuprofile *profile, struct cn_buf *out)
{
    struct children children = find_children(profile);
    for (size_t i = 0; i < profile->node_count; i++) {
        const struct node *node = &profile->nodes[i];
        const struct function *function = &profile->functions[node->function];
        cn_buf_printf(out, "%s{\"id\":%zu,\"callFrame\":{\"functionName\":", i ? ",\n" : "", i + 1);
        cn_buf_append_json(out, function->name, strlen(function->name));
        cn_buf_printf(out,
                      ",\"scriptId\":\"0\",\"url\":%s,\"lineNumber\":%" PRId64
                      ",\"columnNumber\":%" PRId64 "},\"hitCount\":%" PRIu64,
                      function->url ? function->url : "\"\"", (int64_t)function->line - 1,
                      (int64_t)function->column - 1, node->hits);
        write_children(out, &children, i);
        if (node->line_count)
            write_lines(out, node);
        cn_buf_append_byte(out, '}');
    }
    cn_free(children.first);
    cn_free(children.next);
}

static int by_time(const void *a_, const void *b_)
{
    const struct sample *a = a_, *b = b_;
    return a->time_us < b->time_us ? -1 : a->time_us > b->time_us;
}

void cn_cpuprofile_write(struct cn_cpuprofile *profile, struct cn_buf *out)
{
    const struct sample *samples = profile->samples;
    size_t count = profile->sample_count;
    struct cn_buf deltas = {0};
    if (count)
        qsort(profile->samples, count, sizeof(*samples), by_time);
    int64_t start = count ? samples[0].time_us : 0, now = start;
    cn_buf_append_str(out, "{\"nodes\":[");
    write_nodes(profile, out);
    cn_buf_append_str(out, "],\"samples\":[");
    for (size_t i = 0; i < count; i++) {
        int64_t idle = now + profile->interval_us;
        if (i && samples[i].time_us - now > IDLE_INTERVALS * profile->interval_us) {
            cn_buf_printf(out, ",%d", IDLE + 1);
            cn_buf_printf(&deltas, ",%" PRId64, idle - now);
            now = idle;
        }
        cn_buf_printf(out, "%s%u", i ? "," : "", samples[i].node + 1);
        cn_buf_printf(&deltas, "%s%" PRId64, i ? "," : "", samples[i].time_us - now);
        now = samples[i].time_us;
    }
    cn_buf_append_str(out, "],\"timeDeltas\":[");
    cn_buf_append(out, deltas.data, deltas.size);
    cn_buf_printf(out, "],\"startTime\":%" PRId64 ",\"endTime\":%" PRId64 "}", start,
                  now + profile->interval_us);
    cn_buf_fini(&deltas);
}
