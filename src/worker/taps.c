/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/taps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "text/hex.h"
#include "worker/script.h"
#include "worker/trace.h"

#define REDACTED "REDACTED"
#define WORD_HEX_MIN 32   /* digits that make a word an identifier, */
#define WORD_MIXED_MIN 21 /* and characters, of three kinds, twice each */

struct message {
    struct cn_list link;
    struct cn_buf text;
};

/* --- without secrets (L3)
 * ------------------------------------------------------------------------- */

static bool is_sensitive(const char *name)
{
    static const char *const parts[] = {"auth", "jwt", "key", "secret", "token"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(parts); i++) {
        if (strcasestr(name, parts[i]))
            return true;
    }
    return strcasecmp(name, "cookie") == 0 || strcasecmp(name, "set-cookie") == 0;
}

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '+' || c == '-';
}

static bool is_identifier(const char *word, size_t size)
{
    size_t digits = 0, lower = 0, upper = 0, hex = 0, other = 0;
    for (size_t i = 0; i < size; i++) {
        char c = word[i];
        digits += c >= '0' && c <= '9';
        lower += c >= 'a' && c <= 'z';
        upper += c >= 'A' && c <= 'Z';
        hex += (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        other += c == '_' || c == '+' || c == '-';
    }
    if (hex + other == size && hex >= WORD_HEX_MIN)
        return true;
    return size >= WORD_MIXED_MIN && upper >= 2 && lower >= 2 && digits >= 2;
}

static void append_url(struct cn_buf *out, const char *url)
{
    struct cn_buf text = {0};
    while (*url) {
        size_t size = 0;
        while (is_word(url[size]))
            size++;
        if (size && is_identifier(url, size))
            cn_buf_append_str(&text, REDACTED);
        else
            cn_buf_append(&text, url, size ? size : 1);
        url += size ? size : 1;
    }
    cn_buf_append_json(out, cn_buf_text(&text), text.size);
    cn_buf_fini(&text);
}

static void append_headers(struct cn_buf *out, const struct cn_json *headers)
{
    cn_buf_append_byte(out, '{');
    for (const struct cn_json *each = headers->first; each; each = each->next) {
        cn_buf_append_str(out, each == headers->first ? "" : ",");
        cn_buf_append_json(out, each->name, strlen(each->name));
        cn_buf_append_byte(out, ':');
        if (is_sensitive(each->name))
            cn_buf_append_str(out, "\"" REDACTED "\"");
        else
            cn_json_write(out, each);
    }
    cn_buf_append_byte(out, '}');
}

static void append_request(struct cn_buf *out, const struct cn_json *request)
{
    cn_buf_append_byte(out, '{');
    for (const struct cn_json *each = request->first; each; each = each->next) {
        cn_buf_append_str(out, each == request->first ? "" : ",");
        cn_buf_append_json(out, each->name, strlen(each->name));
        cn_buf_append_byte(out, ':');
        if (strcmp(each->name, "url") == 0 && each->kind == CN_JSON_STRING)
            append_url(out, each->text);
        else if (strcmp(each->name, "headers") == 0 && each->kind == CN_JSON_OBJECT)
            append_headers(out, each);
        else
            cn_json_write(out, each);
    }
    cn_buf_append_byte(out, '}');
}

/* --- a message ----------------------------------------------------------------------------------
 */

static struct cn_json *read_event(const struct cn_trace *trace)
{
    struct cn_buf text = {0};
    cn_buf_append_byte(&text, '{');
    if (trace->event.size)
        cn_buf_append(&text, trace->event.data, trace->event.size);
    cn_buf_append_byte(&text, '}');
    struct cn_json *event = cn_json_parse((const char *)text.data, text.size, NULL);
    cn_buf_fini(&text);
    return event;
}

static void append_event(const struct cn_trace *trace, const struct cn_json *event,
                         struct cn_buf *out)
{
    if (!event || (!event->first && !trace->status)) {
        cn_buf_append_str(out, "null");
        return;
    }
    cn_buf_append_byte(out, '{');
    for (const struct cn_json *each = event->first; each; each = each->next) {
        cn_buf_append_str(out, each == event->first ? "" : ",");
        cn_buf_append_json(out, each->name, strlen(each->name));
        cn_buf_append_byte(out, ':');
        if (strcmp(each->name, "request") == 0 && each->kind == CN_JSON_OBJECT)
            append_request(out, each);
        else
            cn_json_write(out, each);
    }
    if (trace->status)
        cn_buf_printf(out, "%s\"response\":{\"status\":%d}", event->first ? "," : "",
                      trace->status);
    cn_buf_append_byte(out, '}');
}

static void append_trace(const struct cn_trace *trace, const struct cn_json *event,
                         struct cn_buf *out)
{
    cn_trace_append_head(trace, out);
    cn_buf_append_str(out, ",\"event\":");
    append_event(trace, event, out);
    cn_trace_append_rest(trace, out);
}

void cn_taps_append_trace(const struct cn_trace *trace, struct cn_buf *out)
{
    struct cn_json *event = read_event(trace);
    append_trace(trace, event, out);
    cn_json_free(event);
}

/* --- filters ------------------------------------------------------------------------------------
 */

static bool has_item(const struct cn_json *list, const char *text)
{
    for (const struct cn_json *each = list->first; each; each = each->next) {
        if (each->kind == CN_JSON_STRING && strcasecmp(each->text, text) == 0)
            return true;
    }
    return false;
}

static const char *header_of(const struct cn_json *event, const char *name)
{
    const struct cn_json *headers = cn_json_find(cn_json_find(event, "request"), "headers");
    for (const struct cn_json *each = headers ? headers->first : NULL; each; each = each->next) {
        if (each->kind == CN_JSON_STRING && strcasecmp(each->name, name) == 0)
            return each->text;
    }
    return NULL;
}

/* Whether a text is in what was logged, as JSON has it. */
static bool is_logged(const struct cn_trace *trace, const char *text)
{
    struct cn_buf wanted = {0}, list = {0};
    bool found = false;
    cn_buf_append_json(&wanted, text, strlen(text));
    cn_buf_append_byte(&list, '[');
    if (trace->logs.size)
        cn_buf_append(&list, trace->logs.data, trace->logs.size);
    cn_buf_append_byte(&list, ']');
    struct cn_json *logs = cn_json_parse((const char *)list.data, list.size, NULL);
    for (const struct cn_json *each = logs ? logs->first : NULL; each && !found;
         each = each->next) {
        const struct cn_json *message = cn_json_find(each, "message");
        struct cn_buf said = {0};
        if (message)
            cn_json_write(&said, message);
        /* Without the quotes around it. */
        found = said.size && memmem(said.data, said.size, wanted.data + 1, wanted.size - 2);
        cn_buf_fini(&said);
    }
    cn_json_free(logs);
    cn_buf_fini(&wanted);
    cn_buf_fini(&list);
    return found;
}

static bool header_fits(const struct cn_json *wish, const struct cn_json *event)
{
    const char *key = cn_json_text(wish, "key"), *query = cn_json_text(wish, "query");
    const char *value = key ? header_of(event, key) : NULL;
    return value && (!query || strstr(value, query));
}

static bool address_fits(const struct cn_tap *tap, const struct cn_json *list,
                         const struct cn_json *event)
{
    const char *address = header_of(event, "cf-connecting-ip");
    if (!address)
        return false;
    return has_item(list, address) || (has_item(list, "self") && strcmp(address, tap->self) == 0);
}

static bool filter_fits(struct cn_taps *taps, const struct cn_tap *tap,
                        const struct cn_json *filter, const struct cn_trace *trace,
                        const struct cn_json *event)
{
    const struct cn_json *value;
    if ((value = cn_json_find(filter, "sampling_rate")))
        return (double)(cn_rand_next(&taps->rand) >> 11) * 0x1p-53 < value->number;
    if ((value = cn_json_find(filter, "outcome")))
        return has_item(value, trace->outcome);
    if ((value = cn_json_find(filter, "method"))) {
        const char *method = cn_json_text(cn_json_find(event, "request"), "method");
        return method && has_item(value, method);
    }
    if ((value = cn_json_find(filter, "header")))
        return header_fits(value, event);
    if ((value = cn_json_find(filter, "client_ip")))
        return address_fits(tap, value, event);
    if ((value = cn_json_find(filter, "query")))
        return is_logged(trace, value->text);
    value = cn_json_find(filter, "scriptVersion");
    CN_ASSERT(value); /* check_filter() */
    return trace->script->version && strcmp(trace->script->version, value->text) == 0;
}

static bool fits(struct cn_taps *taps, const struct cn_tap *tap, const struct cn_trace *trace,
                 const struct cn_json *event)
{
    for (const struct cn_json *each = tap->filters ? tap->filters->first : NULL; each;
         each = each->next) {
        if (!filter_fits(taps, tap, each, trace, event))
            return false;
    }
    return true;
}

/* A filter has one of these members, of this kind. */
static int check_filter(const struct cn_json *filter, struct cn_err *err)
{
    static const struct {
        const char *name;
        enum cn_json_kind kind;
    } known[] = {
        {"sampling_rate", CN_JSON_NUMBER}, {"outcome", CN_JSON_ARRAY},   {"method", CN_JSON_ARRAY},
        {"header", CN_JSON_OBJECT},        {"client_ip", CN_JSON_ARRAY}, {"query", CN_JSON_STRING},
        {"scriptVersion", CN_JSON_STRING},
    };
    const struct cn_json *member = filter->kind == CN_JSON_OBJECT ? filter->first : NULL;
    for (size_t i = 0; member && !member->next && i < CN_ARRAY_COUNT(known); i++) {
        bool whole = member->kind == CN_JSON_INT && known[i].kind == CN_JSON_NUMBER;
        if (strcmp(member->name, known[i].name) == 0 && (member->kind == known[i].kind || whole))
            return 0;
    }
    return cn_err_set(err, CN_EINVALID,
                      "a filter is one of sampling_rate, outcome, method, header, client_ip, query "
                      "and scriptVersion");
}

static int check_filters(const struct cn_json *filters, struct cn_err *err)
{
    size_t count = 0;
    int rc = 0;
    if (filters && filters->kind != CN_JSON_ARRAY)
        return cn_err_set(err, CN_EINVALID, "filters must be a list");
    for (const struct cn_json *each = filters ? filters->first : NULL; each && rc == 0;
         each = each->next)
        rc = ++count > CN_TAP_FILTER_MAX
                 ? cn_err_set(err, CN_ELIMIT, "there are more than %d filters", CN_TAP_FILTER_MAX)
                 : check_filter(each, err);
    return rc;
}

/* --- the table
 * ------------------------------------------------------------------------------------- */

void cn_taps_init(struct cn_taps *taps)
{
    uint64_t seed;
    *taps = (struct cn_taps){0};
    pthread_mutex_init(&taps->lock, NULL);
    cn_list_init(&taps->items);
    cn_rand_secure(&seed, sizeof(seed));
    cn_rand_init(&taps->rand, seed);
    atomic_init(&taps->count, 0);
}

static void tap_free(struct cn_tap *tap)
{
    struct cn_list *node;
    while ((node = cn_list_take_front(&tap->pending))) {
        struct message *message = CN_CONTAINER_OF(node, struct message, link);
        cn_buf_fini(&message->text);
        cn_free(message);
    }
    cn_json_free(tap->filters);
    cn_free(tap);
}

/* Out of the table; freed unless a reader has it. */
static void end_tap(struct cn_taps *taps, struct cn_tap *tap)
{
    cn_list_remove(&tap->link);
    atomic_fetch_sub(&taps->count, 1);
    tap->ended = true;
    if (!tap->attached)
        tap_free(tap);
}

void cn_taps_fini(struct cn_taps *taps)
{
    CN_ASSERT(taps->attached_count == 0);
    while (!cn_list_empty(&taps->items))
        end_tap(taps, CN_CONTAINER_OF(taps->items.next, struct cn_tap, link));
    pthread_mutex_destroy(&taps->lock);
}

void cn_taps_set_notify(struct cn_taps *taps, void (*notify)(void *data), void *data)
{
    pthread_mutex_lock(&taps->lock);
    taps->notify = notify;
    taps->notify_data = data;
    pthread_mutex_unlock(&taps->lock);
}

/* L4 */
static void drop_unread(struct cn_taps *taps, int64_t now_ms)
{
    CN_LIST_FOREACH(&taps->items, node)
    {
        struct cn_tap *tap = CN_CONTAINER_OF(node, struct cn_tap, link);
        if (!tap->attached && tap->unread_until_ms <= now_ms)
            end_tap(taps, tap);
    }
}

/* Those that were asked for here. */
static unsigned count_own(const struct cn_taps *taps, const char *worker)
{
    unsigned count = 0;
    CN_LIST_FOREACH(&taps->items, node)
    {
        const struct cn_tap *tap = CN_CONTAINER_OF(node, struct cn_tap, link);
        count += !tap->far && strcmp(tap->worker, worker) == 0;
    }
    return count;
}

static unsigned count_of(const struct cn_taps *taps, const char *worker)
{
    unsigned count = 0;
    CN_LIST_FOREACH(&taps->items, node)
    count += strcmp(CN_CONTAINER_OF(node, struct cn_tap, link)->worker, worker) == 0;
    return count;
}

static void random_digits(char text[33])
{
    uint8_t bytes[16];
    cn_rand_secure(bytes, sizeof(bytes));
    cn_hex_encode(bytes, sizeof(bytes), text);
    text[32] = 0;
}

static void append_time(struct cn_buf *out, int64_t time_ms)
{
    char text[40];
    struct tm tm;
    time_t seconds = (time_t)(time_ms / 1000);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &tm));
    cn_buf_printf(out, ",\"expires_at\":\"%s\"", text);
}

static struct cn_tap *tap_new(const struct cn_tap_wish *wish, int64_t now_ms)
{
    struct cn_tap *tap = CN_NEW(struct cn_tap);
    struct cn_buf text = {0};
    random_digits(tap->id);
    random_digits(tap->secret);
    snprintf(tap->worker, sizeof(tap->worker), "%s", wish->worker);
    snprintf(tap->by, sizeof(tap->by), "%s", wish->by);
    tap->far = wish->far;
    tap->until_ms = now_ms + CN_TAP_MS;
    tap->unread_until_ms = now_ms + CN_TAP_UNREAD_MS;
    cn_list_init(&tap->pending);
    if (wish->filters) {
        cn_json_write(&text, wish->filters);
        tap->filters = cn_json_parse((const char *)text.data, text.size, NULL);
        CN_ASSERT(tap->filters); /* what we write we can read */
    }
    cn_buf_fini(&text);
    return tap;
}

int cn_taps_add(struct cn_taps *taps, const struct cn_tap_wish *wish, int64_t now_ms,
                struct cn_buf *shown, struct cn_err *err)
{
    int rc = check_filters(wish->filters, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&taps->lock);
    drop_unread(taps, now_ms);
    if (atomic_load(&taps->count) >= CN_TAPS_MAX ||
        (!wish->far && count_own(taps, wish->worker) >= CN_TAPS_WORKER_MAX))
        rc = cn_err_set(err, CN_ELIMIT, "there are too many listeners (%d of a worker, %d in all)",
                        CN_TAPS_WORKER_MAX, CN_TAPS_MAX);
    if (rc == 0) {
        struct cn_tap *tap = tap_new(wish, now_ms);
        cn_list_push_back(&taps->items, &tap->link);
        atomic_fetch_add(&taps->count, 1);
        cn_buf_printf(shown, "{\"id\":\"%s\",\"url\":", tap->id);
        char *url = cn_sprintf("%s%s", wish->base, tap->secret);
        cn_buf_append_json(shown, url, strlen(url));
        cn_free(url);
        append_time(shown, tap->until_ms);
        cn_buf_append_byte(shown, '}');
    }
    pthread_mutex_unlock(&taps->lock);
    return rc;
}

void cn_taps_append(struct cn_taps *taps, const char *worker, struct cn_buf *json)
{
    bool first = true;
    cn_buf_append_byte(json, '[');
    pthread_mutex_lock(&taps->lock);
    CN_LIST_FOREACH(&taps->items, node)
    {
        const struct cn_tap *tap = CN_CONTAINER_OF(node, struct cn_tap, link);
        if (strcmp(tap->worker, worker) != 0 || tap->far)
            continue;
        cn_buf_printf(json, "%s{\"id\":\"%s\",\"url\":\"\"", first ? "" : ",", tap->id);
        append_time(json, tap->until_ms);
        cn_buf_append_byte(json, '}');
        first = false;
    }
    pthread_mutex_unlock(&taps->lock);
    cn_buf_append_byte(json, ']');
}

static void notify(struct cn_taps *taps)
{
    if (taps->notify)
        taps->notify(taps->notify_data);
}

bool cn_taps_remove(struct cn_taps *taps, const char *worker, const char *id)
{
    struct cn_tap *found = NULL;
    pthread_mutex_lock(&taps->lock);
    CN_LIST_FOREACH(&taps->items, node)
    {
        struct cn_tap *tap = CN_CONTAINER_OF(node, struct cn_tap, link);
        if (strcmp(tap->worker, worker) == 0 && strcmp(tap->id, id) == 0)
            found = tap;
    }
    if (found) {
        end_tap(taps, found);
        notify(taps);
    }
    pthread_mutex_unlock(&taps->lock);
    return found != NULL;
}

/* --- lanes --------------------------------------------------------------------------------------
 */

bool cn_taps_want(struct cn_taps *taps, const char *worker)
{
    if (!taps || !atomic_load_explicit(&taps->count, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&taps->lock);
    bool wants = count_of(taps, worker) > 0;
    pthread_mutex_unlock(&taps->lock);
    return wants;
}

static void push(struct cn_tap *tap, const struct cn_buf *text)
{
    if (tap->pending_bytes + text->size > CN_TAP_PENDING_MAX) {
        tap->dropped++; /* L2 */
        return;
    }
    struct message *message = CN_NEW(struct message);
    cn_buf_append(&message->text, text->data, text->size);
    cn_list_push_back(&tap->pending, &message->link);
    tap->pending_bytes += text->size;
}

void cn_taps_give(struct cn_taps *taps, const struct cn_trace *trace)
{
    struct cn_json *event = read_event(trace);
    struct cn_buf text = {0};
    if (taps->node[0]) {
        cn_buf_append_str(&text, "{\"node\":");
        cn_buf_append_json(&text, taps->node, strlen(taps->node));
        size_t size = text.size;
        append_trace(trace, event, &text);
        CN_ASSERT(text.data[size] == '{');
        text.data[size] = ',';
    } else {
        append_trace(trace, event, &text);
    }
    pthread_mutex_lock(&taps->lock);
    bool given = false;
    CN_LIST_FOREACH(&taps->items, node)
    {
        struct cn_tap *tap = CN_CONTAINER_OF(node, struct cn_tap, link);
        if (strcmp(tap->worker, trace->script->name) != 0 || !fits(taps, tap, trace, event))
            continue;
        push(tap, &text);
        given = true;
    }
    if (given)
        notify(taps);
    pthread_mutex_unlock(&taps->lock);
    cn_buf_fini(&text);
    cn_json_free(event);
}

/* --- readers ------------------------------------------------------------------------------------
 */

/* In a time that does not tell how much of it is right. */
static bool same_secret(const char *secret, const char *given, size_t size)
{
    unsigned char differs = 0;
    if (size != strlen(secret))
        return false;
    for (size_t i = 0; i < size; i++)
        differs |= (unsigned char)(secret[i] ^ given[i]);
    return differs == 0;
}

struct cn_tap *cn_taps_attach(struct cn_taps *taps, const char *secret, size_t size,
                              const char *self, int64_t now_ms)
{
    struct cn_tap *found = NULL;
    pthread_mutex_lock(&taps->lock);
    CN_LIST_FOREACH(&taps->items, node)
    {
        struct cn_tap *tap = CN_CONTAINER_OF(node, struct cn_tap, link);
        if (!tap->attached && now_ms < tap->unread_until_ms &&
            same_secret(tap->secret, secret, size))
            found = tap;
    }
    if (found) {
        found->attached = true;
        snprintf(found->self, sizeof(found->self), "%s", self);
        taps->attached_count++;
    }
    pthread_mutex_unlock(&taps->lock);
    return found;
}

/* What the platform's clients show when a tail cannot keep up. */
static void append_sentence(const struct cn_tap *tap, int64_t now_ms, const char *text,
                            struct cn_buf *message)
{
    cn_buf_append_str(message, "{\"scriptName\":");
    cn_buf_append_json(message, tap->worker, strlen(tap->worker));
    cn_buf_printf(
        message,
        ",\"eventTimestamp\":%" PRId64 ",\"event\":{\"type\":\"overload\",\"message\":", now_ms);
    cn_buf_append_json(message, text, strlen(text));
    cn_buf_append_str(message, "},\"logs\":[],\"exceptions\":[],\"diagnosticsChannelEvents\":[],"
                               "\"outcome\":\"unknown\"}");
}

/* L2 */
static void append_dropped(struct cn_tap *tap, int64_t now_ms, struct cn_buf *message)
{
    char text[100];
    snprintf(text, sizeof(text), "%" PRIu64 " events were dropped: this listener reads too slowly",
             tap->dropped);
    append_sentence(tap, now_ms, text, message);
    tap->dropped = 0;
}

int cn_tap_take(struct cn_taps *taps, struct cn_tap *tap, int64_t now_ms, struct cn_buf *message)
{
    int rc = 0;
    pthread_mutex_lock(&taps->lock);
    CN_ASSERT(tap->attached);
    struct cn_list *node = tap->ended ? NULL : cn_list_take_front(&tap->pending);
    if (tap->ended || now_ms >= tap->until_ms) {
        rc = CN_ECLOSED;
        if (node)
            cn_list_push_front(&tap->pending, node);
    } else if (node) {
        struct message *first = CN_CONTAINER_OF(node, struct message, link);
        tap->pending_bytes -= first->text.size;
        cn_buf_fini(message);
        *message = first->text;
        cn_free(first);
        rc = 1;
    } else if (tap->dropped) {
        append_dropped(tap, now_ms, message);
        rc = 1;
    }
    pthread_mutex_unlock(&taps->lock);
    return rc;
}

void cn_taps_detach(struct cn_taps *taps, struct cn_tap *tap)
{
    pthread_mutex_lock(&taps->lock);
    CN_ASSERT(tap->attached && taps->attached_count > 0);
    taps->attached_count--;
    tap->attached = false;
    if (tap->ended)
        tap_free(tap);
    else
        end_tap(taps, tap);
    pthread_mutex_unlock(&taps->lock);
}

/* --- a cluster (L5) -----------------------------------------------------------------------------
 */

void cn_taps_set_node(struct cn_taps *taps, const char *node)
{
    snprintf(taps->node, sizeof(taps->node), "%s", node);
}

/* With the lock held. */
static struct cn_tap *find(struct cn_taps *taps, const char *id)
{
    CN_LIST_FOREACH(&taps->items, node)
    {
        struct cn_tap *tap = CN_CONTAINER_OF(node, struct cn_tap, link);
        if (strcmp(tap->id, id) == 0)
            return tap;
    }
    return NULL;
}

/* Whether it wants what comes from the address of its reader. */
static bool wants_self(const struct cn_tap *tap)
{
    for (const struct cn_json *each = tap->filters ? tap->filters->first : NULL; each;
         each = each->next) {
        const struct cn_json *addresses = cn_json_find(each, "client_ip");
        if (addresses && has_item(addresses, "self"))
            return true;
    }
    return false;
}

unsigned cn_taps_wanted(struct cn_taps *taps, const char *id)
{
    pthread_mutex_lock(&taps->lock);
    const struct cn_tap *tap = find(taps, id);
    unsigned wanted = !tap ? 0 : tap->attached && wants_self(tap) ? 2 : 1;
    pthread_mutex_unlock(&taps->lock);
    return wanted;
}

void cn_taps_append_wish(struct cn_taps *taps, const char *id, struct cn_buf *json)
{
    pthread_mutex_lock(&taps->lock);
    const struct cn_tap *tap = find(taps, id);
    cn_buf_append_str(json, "{\"worker\":");
    cn_buf_append_json(json, tap ? tap->worker : "", tap ? strlen(tap->worker) : 0);
    cn_buf_append_str(json, ",\"self\":");
    cn_buf_append_json(json, tap ? tap->self : "", tap ? strlen(tap->self) : 0);
    if (tap && tap->filters) {
        cn_buf_append_str(json, ",\"filters\":");
        cn_json_write(json, tap->filters);
    }
    cn_buf_append_byte(json, '}');
    pthread_mutex_unlock(&taps->lock);
}

void cn_taps_pass(struct cn_taps *taps, const char *id, const char *text, size_t size)
{
    struct cn_buf message = {0};
    cn_buf_append(&message, text, size);
    pthread_mutex_lock(&taps->lock);
    struct cn_tap *tap = find(taps, id);
    if (tap) {
        push(tap, &message);
        notify(taps);
    }
    pthread_mutex_unlock(&taps->lock);
    cn_buf_fini(&message);
}

void cn_taps_pass_note(struct cn_taps *taps, const char *id, const char *text, int64_t now_ms)
{
    struct cn_buf message = {0};
    pthread_mutex_lock(&taps->lock);
    struct cn_tap *tap = find(taps, id);
    if (tap) {
        append_sentence(tap, now_ms, text, &message);
        push(tap, &message);
        notify(taps);
    }
    pthread_mutex_unlock(&taps->lock);
    cn_buf_fini(&message);
}
