/* SPDX-License-Identifier: Apache-2.0 */
/* html/rewriter.c - the stack of open elements and what comes out.
 *
 * R1  input[0, emitted) has been dealt with; input[emitted, at) is passed on as it is when somebody
 *     asks (flush()), or dropped while `dropping`.
 * R2  Between two calls of next() either no token is current (event NEED_INPUT) or its handlers
 *     are being called one by one; it is settled, emitted and passed by the call after the last.
 * R3  handlers[i].open is the number of frames whose matched set contains a selector of i.
 * R4  Work grows with the document, however it is made and cut into chunks, and with what the
 *     selectors have to look at in each tag. It is counted; after so much of it the owner is asked
 *     (CN_HTML_PAUSE), so whoever holds the thread for too long can be ended.
 *
 * Elements nest by their tags alone: a start tag opens, unless the element is void, and an end tag
 * closes the nearest open element of its name and all inside it. That is not the tree of the
 * standard, which would need the whole tree builder; the platform's rewriter does the same. */
#include "html/rewriter.h"

#include <string.h>

#include "base/assert.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rand.h"

enum namespace { NS_HTML, NS_SVG, NS_MATHML };

struct cn_html_frame {
    uint64_t name_hash;
    uint32_t child_count;
    uint8_t ns;         /* of the element */
    uint8_t content_ns; /* of its children */
    bool drops_content;
    bool tags_off; /* the end tag is not passed on */
    bool has_end;  /* what follows is set */
    bool has_end_changes;
    char *new_name;
    struct cn_html_changes end_changes;
    int64_t end_handler;
    uint32_t outer;               /* the next open element of the same name, 0: none */
    struct cn_html_numbers types; /* children of each name, where a selector asks */
};

/* ---- small things ---- */

static void changes_clear(struct cn_html_changes *changes)
{
    cn_buf_clear(&changes->before);
    cn_buf_clear(&changes->after);
    cn_buf_clear(&changes->replacement);
    changes->removed = false;
}

static void changes_fini(struct cn_html_changes *changes)
{
    cn_buf_fini(&changes->before);
    cn_buf_fini(&changes->after);
    cn_buf_fini(&changes->replacement);
}

/* The buffer goes from its end to its beginning, so that what comes first is added last. */
static void prepend(struct cn_buf *reversed, const struct cn_buf *what)
{
    cn_buf_append(reversed, what->data, what->size);
    uint8_t *at = reversed->data + reversed->size - what->size;
    for (size_t i = 0; i < what->size; i++)
        at[i] = what->data[what->size - 1 - i];
}

/* Names are compared as numbers that the compiler knows. */
#define IS(name) (hash == CN_HTML_NAME(name))
#define IS_LONG(name) (hash >> 63 && hash == CN_HTML_LONG_NAME(name))

static bool is_void(uint64_t hash)
{
    return IS("area") || IS("base") || IS("basefont") || IS("bgsound") || IS("br") || IS("col") ||
           IS("embed") || IS("frame") || IS("hr") || IS("img") || IS("input") || IS("keygen") ||
           IS("link") || IS("meta") || IS("param") || IS("source") || IS("track") || IS("wbr");
}

static bool is_raw_text(uint64_t hash)
{
    return IS("style") || IS("textarea") || IS("title") || IS("xmp") || IS("iframe") ||
           IS("noembed") || IS("noframes") || IS("noscript");
}

static enum cn_html_content content_of(uint64_t hash)
{
    if (IS("script"))
        return CN_HTML_SCRIPT;
    if (IS_LONG("plaintext"))
        return CN_HTML_PLAIN_TEXT;
    return is_raw_text(hash) ? CN_HTML_RAW_TEXT : CN_HTML_DATA;
}

/* Elements of SVG and MathML whose content is HTML again. */
static bool is_integration_point(enum namespace ns, uint64_t hash)
{
    if (ns == NS_SVG)
        return IS_LONG("foreignobject") || IS("desc") || IS("title");
    return IS("mi") || IS("mo") || IS("mn") || IS("ms") || IS("mtext") || IS_LONG("annotation-xml");
}

/* HTML elements that end foreign content: the standard's list. */
static bool breaks_out(uint64_t hash)
{
    return IS("b") || IS("big") || IS_LONG("blockquote") || IS("body") || IS("br") ||
           IS("center") || IS("code") || IS("dd") || IS("div") || IS("dl") || IS("dt") ||
           IS("em") || IS("embed") || IS("h1") || IS("h2") || IS("h3") || IS("h4") || IS("h5") ||
           IS("h6") || IS("head") || IS("hr") || IS("i") || IS("img") || IS("li") ||
           IS("listing") || IS("menu") || IS("meta") || IS("nobr") || IS("ol") || IS("p") ||
           IS("pre") || IS("ruby") || IS("s") || IS("small") || IS("span") || IS("strong") ||
           IS("strike") || IS("sub") || IS("sup") || IS("table") || IS("tt") || IS("u") ||
           IS("ul") || IS("var");
}

/* ---- frames ---- */

static struct cn_html_frame *top(struct cn_html_rewriter *rewriter)
{
    return &rewriter->frames[rewriter->depth - 1];
}

static uint64_t *frame_set(struct cn_html_rewriter *rewriter, size_t frame, int which)
{
    size_t words = cn_html_selectors_words(&rewriter->selectors);
    return words ? rewriter->sets + (frame * 2 + (size_t)which) * words : NULL;
}

/* ---- numbers by name ---- */

static struct cn_html_number *find_slot(struct cn_html_rewriter *rewriter,
                                        const struct cn_html_numbers *numbers, uint64_t hash)
{
    size_t mask = numbers->capacity - 1;
    size_t at = cn_hash_bytes(rewriter->seed, &hash, sizeof(hash)) & mask;
    for (; numbers->slots[at].used && numbers->slots[at].name_hash != hash; at = (at + 1) & mask)
        rewriter->work++;
    return &numbers->slots[at];
}

/* Makes room for one more; those that are 0 go. */
static void grow_numbers(struct cn_html_rewriter *rewriter, struct cn_html_numbers *numbers)
{
    struct cn_html_numbers old = *numbers;
    size_t kept = 0;
    for (size_t i = 0; i < old.capacity; i++)
        kept += old.slots[i].number != 0;
    numbers->capacity = 16;
    while (numbers->capacity < kept * 4)
        numbers->capacity *= 2;
    numbers->count = kept;
    numbers->slots = cn_alloc_zero(numbers->capacity * sizeof(*numbers->slots));
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].number)
            *find_slot(rewriter, numbers, old.slots[i].name_hash) = old.slots[i];
    rewriter->work += old.capacity;
    cn_free(old.slots);
}

/* The number of a name, 0 at first; valid until the next call. */
static uint32_t *number_of(struct cn_html_rewriter *rewriter, struct cn_html_numbers *numbers,
                           uint64_t hash)
{
    if (numbers->count >= numbers->capacity / 2)
        grow_numbers(rewriter, numbers);
    struct cn_html_number *slot = find_slot(rewriter, numbers, hash);
    numbers->count += !slot->used;
    slot->used = true;
    slot->name_hash = hash;
    return &slot->number;
}

/* ---- the stack ---- */

static struct cn_html_frame *push_frame(struct cn_html_rewriter *rewriter)
{
    if (rewriter->depth == rewriter->frame_capacity) {
        rewriter->frame_capacity = rewriter->frame_capacity * 2 + 32;
        rewriter->frames =
            cn_realloc(rewriter->frames, rewriter->frame_capacity * sizeof(*rewriter->frames));
        size_t words = cn_html_selectors_words(&rewriter->selectors);
        if (words)
            rewriter->sets = cn_realloc(rewriter->sets, rewriter->frame_capacity * 2 * words *
                                                            sizeof(*rewriter->sets));
    }
    struct cn_html_frame *frame = &rewriter->frames[rewriter->depth++];
    *frame = (struct cn_html_frame){.end_handler = -1};
    return frame;
}

/* R3: counts a frame's handlers up or down. */
static void count_handlers(struct cn_html_rewriter *rewriter, const uint64_t *matched, int change)
{
    for (size_t word = 0; word < cn_html_selectors_words(&rewriter->selectors); word++) {
        for (uint64_t bits = matched[word]; bits; bits &= bits - 1) {
            size_t compound = word * 64 + (size_t)__builtin_ctzll(bits);
            int handler = cn_html_selectors_handler(&rewriter->selectors, compound);
            if (handler >= 0)
                rewriter->handlers[handler].open += (uint32_t)change;
        }
    }
}

static void pop_frame(struct cn_html_rewriter *rewriter)
{
    CN_ASSERT(rewriter->depth > 1);
    struct cn_html_frame *frame = top(rewriter);
    count_handlers(rewriter, frame_set(rewriter, rewriter->depth - 1, 0), -1);
    *number_of(rewriter, &rewriter->open_names, frame->name_hash) = frame->outer;
    if (frame->drops_content)
        rewriter->dropping--;
    if (frame->has_end) {
        changes_fini(&frame->end_changes);
        cn_free(frame->new_name);
    }
    cn_free(frame->types.slots);
    rewriter->depth--;
}

/* ---- life ---- */

void cn_html_rewriter_init(struct cn_html_rewriter *rewriter)
{
    memset(rewriter, 0, sizeof(*rewriter));
    rewriter->event = CN_HTML_NEED_INPUT;
    rewriter->end_handler = -1;
    cn_rand_secure(&rewriter->seed, sizeof(rewriter->seed));
}

static void clear_edits(struct cn_html_rewriter *rewriter)
{
    for (size_t i = 0; i < rewriter->edit_count; i++)
        cn_free(rewriter->edits[i].owned);
    rewriter->edit_count = 0;
    rewriter->edits_valid = rewriter->edited = false;
}

void cn_html_rewriter_fini(struct cn_html_rewriter *rewriter)
{
    while (rewriter->depth > 1)
        pop_frame(rewriter);
    if (rewriter->depth)
        cn_free(rewriter->frames[0].types.slots);
    cn_free(rewriter->open_names.slots);
    clear_edits(rewriter);
    cn_free(rewriter->edits);
    cn_free(rewriter->frames);
    cn_free(rewriter->sets);
    cn_free(rewriter->due);
    cn_free(rewriter->matched);
    cn_free(rewriter->new_name);
    cn_free(rewriter->handlers);
    cn_buf_fini(&rewriter->input);
    cn_buf_fini(&rewriter->output);
    cn_buf_fini(&rewriter->inner);
    cn_buf_fini(&rewriter->new_text);
    changes_fini(&rewriter->changes);
    changes_fini(&rewriter->end_changes);
    cn_html_selectors_fini(&rewriter->selectors);
    cn_html_tokenizer_fini(&rewriter->tokenizer);
    memset(rewriter, 0, sizeof(*rewriter));
}

int cn_html_rewriter_on(struct cn_html_rewriter *rewriter, const char *selector, size_t size,
                        unsigned wants, struct cn_err *err)
{
    CN_ASSERT(rewriter->depth == 0);
    if (selector) {
        int rc = cn_html_selectors_add(&rewriter->selectors, selector, size,
                                       (unsigned)rewriter->handler_count, err);
        if (rc < 0)
            return rc;
    }
    CN_GROW(rewriter->handlers, rewriter->handler_count, rewriter->handler_capacity);
    rewriter->handlers[rewriter->handler_count++] =
        (struct cn_html_handler){.wants = wants, .document = !selector};
    return 0;
}

/* The first input: the document becomes the outermost frame. */
static void begin(struct cn_html_rewriter *rewriter)
{
    size_t words = cn_html_selectors_words(&rewriter->selectors);
    rewriter->due_words = (rewriter->handler_count + 63) / 64;
    rewriter->due = cn_alloc_zero((rewriter->due_words + 1) * sizeof(uint64_t));
    rewriter->matched = cn_alloc_zero((words + 1) * sizeof(uint64_t));
    push_frame(rewriter);
    if (words)
        memset(rewriter->sets, 0, 2 * words * sizeof(uint64_t));
}

void cn_html_rewriter_feed(struct cn_html_rewriter *rewriter, const void *bytes, size_t size)
{
    CN_ASSERT(rewriter->event == CN_HTML_NEED_INPUT && !rewriter->finished);
    if (rewriter->depth == 0)
        begin(rewriter);
    /* What is behind us goes; the rest is the beginning of a token, and short. */
    cn_buf_consume(&rewriter->input, rewriter->emitted);
    rewriter->at -= rewriter->emitted;
    rewriter->emitted = 0;
    cn_buf_append(&rewriter->input, bytes, size);
    rewriter->closes |= size && memchr(bytes, '>', size);
    if (rewriter->closes && rewriter->input.size - rewriter->at >= rewriter->enough)
        rewriter->starved = false;
}

void cn_html_rewriter_finish(struct cn_html_rewriter *rewriter)
{
    if (rewriter->depth == 0)
        begin(rewriter);
    rewriter->finished = true;
    rewriter->starved = false;
}

/* ---- output ---- */

/* R1: passes on or drops what lies before `end`. */
static void flush(struct cn_html_rewriter *rewriter, size_t end)
{
    CN_ASSERT(rewriter->emitted <= end && end <= rewriter->input.size);
    if (!rewriter->dropping && end > rewriter->emitted)
        cn_buf_append(&rewriter->output, rewriter->input.data + rewriter->emitted,
                      end - rewriter->emitted);
    rewriter->emitted = end;
}

static void put(struct cn_html_rewriter *rewriter, const void *bytes, size_t size)
{
    if (!rewriter->dropping)
        cn_buf_append(&rewriter->output, bytes, size);
}

static void put_buf(struct cn_html_rewriter *rewriter, const struct cn_buf *buf)
{
    put(rewriter, buf->data, buf->size);
}

/* What was prepended; it is used once. */
static void put_reversed(struct cn_html_rewriter *rewriter, struct cn_buf *buf)
{
    for (size_t i = 0; i < buf->size / 2; i++) {
        uint8_t byte = buf->data[i];
        buf->data[i] = buf->data[buf->size - 1 - i];
        buf->data[buf->size - 1 - i] = byte;
    }
    put(rewriter, buf->data, buf->size);
    cn_buf_clear(buf);
}

static bool is_changed(const struct cn_html_changes *changes)
{
    return changes->removed || changes->before.size || changes->after.size;
}

static size_t token_end(const struct cn_html_rewriter *rewriter)
{
    return rewriter->at + rewriter->token.raw.size;
}

static void put_start_tag(struct cn_html_rewriter *rewriter)
{
    const struct cn_html_token *token = &rewriter->token;
    if (!rewriter->edited && !rewriter->new_name) {
        put(rewriter, token->raw.at, token->raw.size);
        return;
    }
    put(rewriter, "<", 1);
    struct cn_html_span name = cn_html_tag_name(rewriter);
    put(rewriter, name.at, name.size);
    const struct cn_html_edit *edits;
    size_t count = cn_html_attributes(rewriter, &edits);
    for (size_t i = 0; i < count; i++) {
        put(rewriter, " ", 1);
        if (edits[i].raw.at) {
            put(rewriter, edits[i].raw.at, edits[i].raw.size);
            continue;
        }
        put(rewriter, edits[i].name.at, edits[i].name.size);
        put(rewriter, "=\"", 2);
        const uint8_t *at = edits[i].value.at, *end = at + edits[i].value.size;
        for (const uint8_t *quote; (quote = memchr(at, '"', (size_t)(end - at))); at = quote + 1) {
            put(rewriter, at, (size_t)(quote - at));
            put(rewriter, "&quot;", 6);
        }
        put(rewriter, at, (size_t)(end - at));
        put(rewriter, "\"", 1);
    }
    if (token->self_closing)
        put(rewriter, " />", 3);
    else
        put(rewriter, ">", 1);
}

/* ---- settling a token whose handlers have been called ---- */

/* Does the current start tag open an element that has content and an end tag? */
static bool has_content(struct cn_html_rewriter *rewriter, enum namespace ns)
{
    if (ns != NS_HTML)
        return !rewriter->token.self_closing;
    return !is_void(rewriter->token.name_hash);
}

static enum namespace element_namespace(struct cn_html_rewriter *rewriter)
{
    uint64_t hash = rewriter->token.name_hash;
    enum namespace inside = (enum namespace)top(rewriter)->content_ns;
    if (inside != NS_HTML && !breaks_out(hash))
        return inside;
    if (IS("svg"))
        return NS_SVG;
    return IS("math") ? NS_MATHML : NS_HTML;
}

static void settle_element(struct cn_html_rewriter *rewriter)
{
    struct cn_html_changes *changes = &rewriter->changes;
    enum namespace ns = element_namespace(rewriter);
    bool opens = has_content(rewriter, ns);
    if (rewriter->event == CN_HTML_ELEMENT &&
        (is_changed(changes) || rewriter->edited || rewriter->new_name || rewriter->inner.size)) {
        flush(rewriter, rewriter->at);
        put_buf(rewriter, &changes->before);
        if (changes->removed)
            put_buf(rewriter, &changes->replacement);
        else
            put_start_tag(rewriter);
        if (opens)
            put_reversed(rewriter, &rewriter->inner);
        if (!opens)
            put_reversed(rewriter, &changes->after);
        rewriter->emitted = token_end(rewriter);
    }
    if (!opens)
        return;
    if (opens && rewriter->drop_content)
        flush(rewriter, token_end(rewriter));
    struct cn_html_frame *frame = push_frame(rewriter);
    frame->name_hash = rewriter->token.name_hash;
    frame->ns = (uint8_t)ns;
    frame->content_ns =
        (uint8_t)(ns != NS_HTML && is_integration_point(ns, frame->name_hash) ? NS_HTML : ns);
    uint32_t *innermost = number_of(rewriter, &rewriter->open_names, frame->name_hash);
    frame->outer = *innermost;
    *innermost = (uint32_t)(rewriter->depth - 1);
    size_t words = cn_html_selectors_words(&rewriter->selectors);
    uint64_t *matched = frame_set(rewriter, rewriter->depth - 1, 0);
    uint64_t *inherited = frame_set(rewriter, rewriter->depth - 1, 1);
    const uint64_t *above = frame_set(rewriter, rewriter->depth - 2, 1);
    for (size_t i = 0; i < words; i++) {
        matched[i] = rewriter->matched[i];
        inherited[i] = above[i] | matched[i];
    }
    count_handlers(rewriter, matched, 1);
    if (rewriter->event == CN_HTML_ELEMENT) {
        frame->drops_content = rewriter->drop_content;
        frame->tags_off = rewriter->keep_tags_off;
        /* What comes after the element comes after its end tag. */
        if (changes->after.size)
            cn_buf_append(&rewriter->end_changes.after, changes->after.data, changes->after.size);
        frame->has_end_changes = is_changed(&rewriter->end_changes);
        if (frame->has_end_changes || rewriter->new_name || rewriter->end_handler >= 0) {
            frame->has_end = true;
            frame->end_changes = rewriter->end_changes;
            frame->new_name = rewriter->new_name;
            frame->end_handler = rewriter->end_handler;
            rewriter->end_changes = (struct cn_html_changes){0};
            rewriter->new_name = NULL;
        }
        if (frame->drops_content)
            rewriter->dropping++;
    }
    rewriter->tokenizer.foreign = frame->content_ns != NS_HTML;
    if (ns == NS_HTML)
        cn_html_tokenizer_set_content(&rewriter->tokenizer, content_of(frame->name_hash),
                                      frame->name_hash);
}

static void settle_end_tag(struct cn_html_rewriter *rewriter)
{
    struct cn_html_changes *changes = &rewriter->changes;
    bool off = false, touched = is_changed(changes) || rewriter->new_name;
    if (rewriter->pop_to < rewriter->depth) {
        off = rewriter->frames[rewriter->pop_to].tags_off;
        for (size_t i = rewriter->pop_to; i < rewriter->depth; i++)
            touched |= rewriter->frames[i].drops_content;
        if (touched || off)
            flush(rewriter, rewriter->at);
        while (rewriter->depth > rewriter->pop_to)
            pop_frame(rewriter);
    }
    rewriter->tokenizer.foreign = top(rewriter)->content_ns != NS_HTML;
    if (!touched && !off)
        return;
    flush(rewriter, rewriter->at);
    put_buf(rewriter, &changes->before);
    if (changes->removed || off) {
        put_buf(rewriter, &changes->replacement);
    } else if (rewriter->new_name) {
        put(rewriter, "</", 2);
        put(rewriter, rewriter->new_name, strlen(rewriter->new_name));
        put(rewriter, ">", 1);
    } else {
        put(rewriter, rewriter->token.raw.at, rewriter->token.raw.size);
    }
    put_reversed(rewriter, &changes->after);
    rewriter->emitted = token_end(rewriter);
}

static void settle_other(struct cn_html_rewriter *rewriter)
{
    struct cn_html_changes *changes = &rewriter->changes;
    if (!is_changed(changes) && !rewriter->text_set)
        return;
    flush(rewriter, rewriter->at);
    put_buf(rewriter, &changes->before);
    if (changes->removed) {
        put_buf(rewriter, &changes->replacement);
    } else if (rewriter->text_set) {
        put(rewriter, "<!--", 4);
        put_buf(rewriter, &rewriter->new_text);
        put(rewriter, "-->", 3);
    } else {
        put(rewriter, rewriter->token.raw.at, rewriter->token.raw.size);
    }
    put_reversed(rewriter, &changes->after);
    rewriter->emitted = token_end(rewriter);
}

/* R2: the token is done with; on to the next one. */
static void pass_token(struct cn_html_rewriter *rewriter)
{
    size_t size = rewriter->token.raw.size;
    rewriter->at += size;
    rewriter->event = CN_HTML_NEED_INPUT;
    changes_clear(&rewriter->changes);
    changes_clear(&rewriter->end_changes);
    cn_buf_clear(&rewriter->inner);
    cn_buf_clear(&rewriter->new_text);
    rewriter->text_set = rewriter->drop_content = rewriter->keep_tags_off = false;
    rewriter->end_handler = -1;
    if (rewriter->new_name) {
        cn_free(rewriter->new_name);
        rewriter->new_name = NULL;
    }
    if (rewriter->edits_valid)
        clear_edits(rewriter);
}

/* ---- which handlers a token is shown to ---- */

/* The next handler that wants `wants` and is in scope; false if there is none left. */
static bool next_in_scope(struct cn_html_rewriter *rewriter, unsigned wants, uint32_t *handler)
{
    while (rewriter->next_handler < rewriter->handler_count) {
        size_t i = rewriter->next_handler++;
        const struct cn_html_handler *h = &rewriter->handlers[i];
        if ((h->wants & wants) && (h->document || h->open)) {
            *handler = (uint32_t)i;
            return true;
        }
    }
    return false;
}

static bool anybody_wants(const struct cn_html_rewriter *rewriter, unsigned wants)
{
    for (size_t i = 0; i < rewriter->handler_count; i++) {
        const struct cn_html_handler *h = &rewriter->handlers[i];
        if ((h->wants & wants) && (h->document || h->open))
            return true;
    }
    return false;
}

static void begin_event(struct cn_html_rewriter *rewriter, enum cn_html_event event)
{
    rewriter->event = event;
    rewriter->next_handler = 0;
}

/* A start tag: matches selectors and collects the handlers that want it. */
static int begin_element(struct cn_html_rewriter *rewriter, struct cn_err *err)
{
    struct cn_html_frame *parent = top(rewriter);
    parent->child_count++;
    if (!rewriter->selectors.count) {
        settle_element(rewriter);
        pass_token(rewriter);
        return 0;
    }
    struct cn_html_element element = {
        .tag = &rewriter->token,
        .child_index = parent->child_count,
        .type_index = rewriter->selectors.uses_type_index
                          ? ++*number_of(rewriter, &parent->types, rewriter->token.name_hash)
                          : 0,
        .work_left = CN_HTML_TAG_WORK_MAX,
    };
    size_t frame = rewriter->depth - 1;
    cn_html_selectors_match(&rewriter->selectors, &element, frame_set(rewriter, frame, 0),
                            frame_set(rewriter, frame, 1), rewriter->matched);
    rewriter->work += CN_HTML_TAG_WORK_MAX - element.work_left;
    if (element.work_left == 0)
        return cn_err_set(err, CN_ELIMIT, "A tag is too large for the selectors.");
    bool any = false;
    for (size_t word = 0; word < cn_html_selectors_words(&rewriter->selectors); word++) {
        for (uint64_t bits = rewriter->matched[word]; bits; bits &= bits - 1) {
            size_t compound = word * 64 + (size_t)__builtin_ctzll(bits);
            int handler = cn_html_selectors_handler(&rewriter->selectors, compound);
            if (handler < 0 || !(rewriter->handlers[handler].wants & CN_HTML_WANTS_ELEMENT))
                continue;
            rewriter->due[handler / 64] |= 1ull << (handler % 64);
            any = true;
        }
    }
    if (any) {
        begin_event(rewriter, CN_HTML_ELEMENT);
        return 0;
    }
    settle_element(rewriter);
    pass_token(rewriter);
    return 0;
}

static bool next_due(struct cn_html_rewriter *rewriter, uint32_t *handler)
{
    for (size_t word = 0; word < rewriter->due_words; word++) {
        uint64_t bits = rewriter->due[word];
        if (!bits)
            continue;
        rewriter->due[word] = bits & (bits - 1);
        *handler = (uint32_t)(word * 64 + (size_t)__builtin_ctzll(bits));
        return true;
    }
    return false;
}

/* An end tag: finds the element it closes. Those inside it are closed as well, innermost first;
 * `next_handler` counts them. */
static void begin_end_tag(struct cn_html_rewriter *rewriter)
{
    uint64_t hash = rewriter->token.name_hash;
    rewriter->pop_to = rewriter->depth;
    uint32_t innermost = *number_of(rewriter, &rewriter->open_names, hash);
    if (innermost)
        rewriter->pop_to = innermost;
    begin_event(rewriter, CN_HTML_END_TAG);
}

/* The next element that the end tag closes and that has something to say about it. */
static bool next_closing(struct cn_html_rewriter *rewriter, uint32_t *handler)
{
    while (rewriter->next_handler < rewriter->depth - rewriter->pop_to) {
        size_t i = rewriter->depth - 1 - rewriter->next_handler++;
        struct cn_html_frame *frame = &rewriter->frames[i];
        if (!frame->has_end)
            continue;
        if (frame->has_end_changes) {
            /* An element's own changes replace those of the elements inside it. */
            struct cn_html_changes old = rewriter->changes;
            rewriter->changes = frame->end_changes;
            frame->end_changes = old;
        }
        if (frame->new_name && i == rewriter->pop_to) {
            cn_free(rewriter->new_name);
            rewriter->new_name = frame->new_name;
            frame->new_name = NULL;
        }
        if (frame->end_handler >= 0) {
            *handler = (uint32_t)frame->end_handler;
            return true;
        }
    }
    return false;
}

/* ---- the loop ---- */

/* R4: a tag cut off is not looked at again before a ">" comes; a long one, which may have many of
 * them between quotes, before it has grown by a quarter. A few bytes of text are. */
static void starve(struct cn_html_rewriter *rewriter, size_t left)
{
    rewriter->starved = left > 64;
    rewriter->closes = false;
    rewriter->enough = left > 64 * 1024 ? left + left / 4 : 0;
    rewriter->work += left;
}

/* Reads the next token and decides what happens to it: 1. 0: none is complete. */
static int read_token(struct cn_html_rewriter *rewriter, struct cn_err *err)
{
    size_t left = rewriter->input.size - rewriter->at;
    if (rewriter->starved || left == 0)
        return 0;
    enum cn_html_content content = rewriter->tokenizer.content;
    enum cn_html_token_type type =
        cn_html_tokenizer_next(&rewriter->tokenizer, rewriter->input.data + rewriter->at, left,
                               rewriter->finished, &rewriter->token);
    if (type == CN_HTML_TOKEN_NONE) {
        starve(rewriter, left);
        return 0;
    }
    CN_ASSERT(rewriter->token.raw.size > 0 && rewriter->token.raw.size <= left);
    rewriter->enough = 0;
    rewriter->work += rewriter->token.raw.size + rewriter->handler_count;
    if (rewriter->in_text && type != CN_HTML_TOKEN_TEXT) {
        /* The text node is over: handlers see that as an empty last piece; then the token is
         * read again. */
        rewriter->tokenizer.content = content;
        rewriter->in_text = false;
        rewriter->text_ended = true;
        rewriter->token =
            (struct cn_html_token){.type = CN_HTML_TOKEN_TEXT, .raw = {rewriter->token.raw.at, 0}};
        begin_event(rewriter, CN_HTML_TEXT);
        return 1;
    }
    switch (type) {
    case CN_HTML_TOKEN_TEXT:
        if (anybody_wants(rewriter, CN_HTML_WANTS_TEXT)) {
            rewriter->in_text = true;
            rewriter->text_ended = false;
            begin_event(rewriter, CN_HTML_TEXT);
            return 1;
        }
        break;
    case CN_HTML_TOKEN_START: {
        int rc = begin_element(rewriter, err);
        return rc < 0 ? rc : 1;
    }
    case CN_HTML_TOKEN_END:
        begin_end_tag(rewriter);
        return 1;
    case CN_HTML_TOKEN_COMMENT:
        begin_event(rewriter, CN_HTML_COMMENT);
        return 1;
    case CN_HTML_TOKEN_DOCTYPE:
        begin_event(rewriter, CN_HTML_DOCTYPE);
        return 1;
    default:
        break;
    }
    pass_token(rewriter);
    return 1;
}

/* The next handler of the current token, or false after settling it. */
static bool next_for_token(struct cn_html_rewriter *rewriter, uint32_t *handler)
{
    switch (rewriter->event) {
    case CN_HTML_ELEMENT:
        if (next_due(rewriter, handler))
            return true;
        settle_element(rewriter);
        break;
    case CN_HTML_END_TAG:
        if (next_closing(rewriter, handler))
            return true;
        settle_end_tag(rewriter);
        break;
    case CN_HTML_TEXT:
        if (next_in_scope(rewriter, CN_HTML_WANTS_TEXT, handler))
            return true;
        settle_other(rewriter);
        break;
    case CN_HTML_COMMENT:
        if (next_in_scope(rewriter, CN_HTML_WANTS_COMMENTS, handler))
            return true;
        settle_other(rewriter);
        break;
    case CN_HTML_DOCTYPE:
        if (next_in_scope(rewriter, CN_HTML_WANTS_DOCTYPE, handler))
            return true;
        settle_other(rewriter);
        break;
    default:
        CN_UNREACHABLE();
    }
    pass_token(rewriter);
    return false;
}

/* After the last token: the end of a text node, then the document's end. */
static int finish_document(struct cn_html_rewriter *rewriter, uint32_t *handler)
{
    if (rewriter->event == CN_HTML_NEED_INPUT) {
        rewriter->at = rewriter->input.size;
        rewriter->token = (struct cn_html_token){.raw = {rewriter->input.data, 0}};
        if (rewriter->in_text) {
            rewriter->in_text = false;
            rewriter->text_ended = true;
            begin_event(rewriter, CN_HTML_TEXT);
            return -1; /* back to the loop */
        }
        flush(rewriter, rewriter->at);
        begin_event(rewriter, CN_HTML_DOCUMENT_END);
    }
    if (next_in_scope(rewriter, CN_HTML_WANTS_END, handler))
        return CN_HTML_DOCUMENT_END;
    cn_buf_append(&rewriter->output, rewriter->changes.before.data, rewriter->changes.before.size);
    changes_clear(&rewriter->changes);
    rewriter->event = CN_HTML_DONE;
    return CN_HTML_DONE;
}

int cn_html_rewriter_next(struct cn_html_rewriter *rewriter, uint32_t *handler, struct cn_err *err)
{
    CN_ASSERT(rewriter->depth > 0);
    for (;;) {
        if (rewriter->event == CN_HTML_DONE)
            return CN_HTML_DONE;
        if (rewriter->event != CN_HTML_NEED_INPUT && rewriter->event != CN_HTML_DOCUMENT_END) {
            enum cn_html_event event = rewriter->event;
            if (next_for_token(rewriter, handler))
                return (int)event;
            continue;
        }
        int rc = 0;
        if (rewriter->event == CN_HTML_NEED_INPUT) {
            if (rewriter->work - rewriter->paused > CN_HTML_WORK_PAUSE) {
                rewriter->paused = rewriter->work;
                return CN_HTML_PAUSE;
            }
            rc = read_token(rewriter, err);
            if (rc < 0)
                return rc;
        }
        if (rc > 0) {
            if (rewriter->depth > CN_HTML_DEPTH_MAX)
                return cn_err_set(err, CN_ELIMIT, "The document nests more than %d elements.",
                                  CN_HTML_DEPTH_MAX);
            continue;
        }
        if (rewriter->finished) {
            int event = finish_document(rewriter, handler);
            if (event >= 0)
                return event;
            continue;
        }
        if (rewriter->input.size - rewriter->at > CN_HTML_TOKEN_MAX)
            return cn_err_set(err, CN_ELIMIT, "The memory limit has been exceeded.");
        flush(rewriter, rewriter->at);
        return CN_HTML_NEED_INPUT;
    }
}

/* ---- the current token ---- */

struct cn_html_span cn_html_tag_name(const struct cn_html_rewriter *rewriter)
{
    if (rewriter->new_name)
        return (struct cn_html_span){(const uint8_t *)rewriter->new_name,
                                     strlen(rewriter->new_name)};
    return rewriter->token.name;
}

struct cn_html_span cn_html_text(const struct cn_html_rewriter *rewriter)
{
    if (rewriter->event == CN_HTML_COMMENT)
        return rewriter->text_set
                   ? (struct cn_html_span){rewriter->new_text.data, rewriter->new_text.size}
                   : rewriter->token.text;
    return rewriter->token.raw;
}

const char *cn_html_namespace(const struct cn_html_rewriter *rewriter)
{
    static const char *const names[] = {"http://www.w3.org/1999/xhtml",
                                        "http://www.w3.org/2000/svg",
                                        "http://www.w3.org/1998/Math/MathML"};
    return names[element_namespace((struct cn_html_rewriter *)rewriter)];
}

bool cn_html_is_removed(const struct cn_html_rewriter *rewriter)
{
    return rewriter->changes.removed;
}

static struct cn_html_edit *new_edit(struct cn_html_rewriter *rewriter)
{
    CN_GROW(rewriter->edits, rewriter->edit_count, rewriter->edit_capacity);
    struct cn_html_edit *edit = &rewriter->edits[rewriter->edit_count++];
    *edit = (struct cn_html_edit){0};
    return edit;
}

size_t cn_html_attributes(struct cn_html_rewriter *rewriter, const struct cn_html_edit **edits)
{
    if (!rewriter->edits_valid) {
        rewriter->edits_valid = true;
        for (size_t i = 0; i < rewriter->token.attribute_count; i++) {
            const struct cn_html_attribute *from = &rewriter->token.attributes[i];
            struct cn_html_edit *edit = new_edit(rewriter);
            edit->name = from->name;
            edit->value = from->value;
            edit->raw = from->raw;
        }
    }
    *edits = rewriter->edits;
    return rewriter->edit_count;
}

const struct cn_html_edit *cn_html_attribute_find(struct cn_html_rewriter *rewriter,
                                                  const char *name, size_t size)
{
    const struct cn_html_edit *edits;
    size_t count = cn_html_attributes(rewriter, &edits);
    for (size_t i = 0; i < count; i++)
        if (cn_html_equal_nocase(edits[i].name, name, size))
            return &edits[i];
    return NULL;
}

/* Refuses characters that would end a name. */
static int check_name(const char *name, size_t size, const char *what, const char *forbidden,
                      struct cn_err *err)
{
    for (size_t i = 0; i < size; i++)
        if (name[i] == 0 || strchr(forbidden, name[i]))
            return cn_err_set(err, CN_EINVALID, "`%c` character is forbidden in the %s name",
                              name[i], what);
    return 0;
}

int cn_html_attribute_set(struct cn_html_rewriter *rewriter, const char *name, size_t name_size,
                          const char *value, size_t value_size, struct cn_err *err)
{
    if (name_size == 0)
        return cn_err_set(err, CN_EINVALID, "Attribute name can't be empty.");
    int rc = check_name(name, name_size, "attribute", " \n\r\t\f/>=", err);
    if (rc < 0)
        return rc;
    struct cn_html_edit *edit =
        (struct cn_html_edit *)cn_html_attribute_find(rewriter, name, name_size);
    bool is_new = !edit;
    if (is_new)
        edit = new_edit(rewriter);
    /* A known attribute keeps its name as the document wrote it. */
    struct cn_html_span kept =
        is_new ? (struct cn_html_span){(const uint8_t *)name, name_size} : edit->name;
    uint8_t *owned = cn_alloc(kept.size + value_size + 1);
    for (size_t i = 0; i < kept.size; i++)
        owned[i] = is_new ? cn_html_lower(kept.at[i]) : kept.at[i];
    if (value_size)
        memcpy(owned + kept.size, value, value_size);
    size_t kept_size = kept.size;
    cn_free(edit->owned);
    *edit = (struct cn_html_edit){
        .name = {owned, kept_size}, .value = {owned + kept_size, value_size}, .owned = owned};
    rewriter->edited = true;
    return 0;
}

void cn_html_attribute_remove(struct cn_html_rewriter *rewriter, const char *name, size_t size)
{
    struct cn_html_edit *edit = (struct cn_html_edit *)cn_html_attribute_find(rewriter, name, size);
    if (!edit)
        return;
    cn_free(edit->owned);
    size_t index = (size_t)(edit - rewriter->edits);
    memmove(edit, edit + 1, (rewriter->edit_count - index - 1) * sizeof(*edit));
    rewriter->edit_count--;
    rewriter->edited = true;
}

int cn_html_set_name(struct cn_html_rewriter *rewriter, const char *name, size_t size,
                     struct cn_err *err)
{
    if (size == 0)
        return cn_err_set(err, CN_EINVALID, "Tag name can't be empty.");
    uint8_t first = (uint8_t)(name[0] | 32);
    if (first < 'a' || first > 'z')
        return cn_err_set(err, CN_EINVALID,
                          "The first character of the tag name should be an ASCII alphabetical "
                          "character.");
    int rc = check_name(name, size, "tag", " \n\r\t\f/>", err);
    if (rc < 0)
        return rc;
    cn_free(rewriter->new_name);
    rewriter->new_name = cn_strndup(name, size);
    return 0;
}

int cn_html_set_comment(struct cn_html_rewriter *rewriter, const char *text, size_t size,
                        struct cn_err *err)
{
    if (memmem(text, size, "-->", 3))
        return cn_err_set(err, CN_EINVALID,
                          "Comment text shouldn't contain a comment-closing sequence.");
    cn_buf_clear(&rewriter->new_text);
    cn_buf_append(&rewriter->new_text, text, size);
    rewriter->text_set = true;
    return 0;
}

void cn_html_insert(struct cn_html_rewriter *rewriter, enum cn_html_place place, const char *text,
                    size_t size, bool is_html)
{
    struct cn_html_changes *changes = &rewriter->changes;
    bool is_element = rewriter->event == CN_HTML_ELEMENT;
    struct cn_buf content = {0};
    if (is_html)
        cn_buf_append(&content, text, size);
    else
        cn_buf_append_html(&content, text, size);
    bool opens = is_element && has_content(rewriter, element_namespace(rewriter));
    switch (place) {
    case CN_HTML_BEFORE:
        cn_buf_append(&changes->before, content.data, content.size);
        break;
    case CN_HTML_AFTER:
        prepend(&changes->after, &content);
        break;
    case CN_HTML_PREPEND:
        if (opens)
            prepend(&rewriter->inner, &content);
        break;
    case CN_HTML_APPEND:
        if (rewriter->event == CN_HTML_DOCUMENT_END)
            cn_buf_append(&changes->before, content.data, content.size);
        else if (opens)
            cn_buf_append(&rewriter->end_changes.before, content.data, content.size);
        break;
    case CN_HTML_REPLACE:
        cn_html_remove(rewriter, false);
        cn_buf_clear(&changes->replacement);
        cn_buf_append(&changes->replacement, content.data, content.size);
        break;
    case CN_HTML_INNER:
        if (!opens)
            break;
        cn_buf_clear(&rewriter->inner);
        cn_buf_clear(&rewriter->end_changes.before);
        prepend(&rewriter->inner, &content);
        rewriter->drop_content = true;
        break;
    }
    cn_buf_fini(&content);
}

void cn_html_remove(struct cn_html_rewriter *rewriter, bool keep_content)
{
    rewriter->changes.removed = true;
    if (rewriter->event != CN_HTML_ELEMENT || !has_content(rewriter, element_namespace(rewriter)))
        return;
    rewriter->keep_tags_off = true;
    if (keep_content)
        return;
    rewriter->drop_content = true;
    cn_buf_clear(&rewriter->inner);
    cn_buf_clear(&rewriter->end_changes.before);
}

int cn_html_on_end_tag(struct cn_html_rewriter *rewriter, uint32_t number, struct cn_err *err)
{
    CN_ASSERT(rewriter->event == CN_HTML_ELEMENT);
    if (!has_content(rewriter, element_namespace(rewriter)))
        return cn_err_set(err, CN_EINVALID, "No end tag.");
    rewriter->end_handler = number;
    return 0;
}
