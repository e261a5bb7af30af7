/* SPDX-License-Identifier: Apache-2.0 */
/* html/rewriter.h - changes a stream of HTML where selectors match.
 *
 * The rewriter calls nobody. cn_html_rewriter_next() works through the input
 * until a handler is due and returns which, for what; the owner reads and
 * changes the current token with the functions below, for as long as it likes,
 * and calls next() again. So handlers may be asynchronous, and the core knows
 * no JavaScript.
 *
 *     cn_html_rewriter_feed(rewriter, bytes, size);
 *     while ((event = cn_html_rewriter_next(rewriter, &handler, &err)) > CN_HTML_NEED_INPUT)
 *         ... handler `handler` looks at the token ...
 *     ... take rewriter->output ...
 *
 * Bytes that no handler touches come out as they went in.
 *
 * Threads:   one at a time, any.
 * Ownership: the caller's struct; texts given to it are copied. */
#ifndef CN_HTML_REWRITER_H
#define CN_HTML_REWRITER_H
#include "base/buf.h"
#include "html/selector.h"

/* The text that one token may have before it is given up: an open quote in a large document. */
#define CN_HTML_TOKEN_MAX (32 * 1024 * 1024)
#define CN_HTML_DEPTH_MAX 200000
/* R4: steps between two calls of the owner, and those that one tag may take. */
#define CN_HTML_WORK_PAUSE (1u << 22)
#define CN_HTML_TAG_WORK_MAX (1u << 30)

enum cn_html_event {
    CN_HTML_DONE = 0, /* finish() was called and everything is out */
    CN_HTML_NEED_INPUT,
    CN_HTML_ELEMENT,
    CN_HTML_TEXT,
    CN_HTML_COMMENT,
    CN_HTML_DOCTYPE,
    CN_HTML_END_TAG, /* `handler` is what cn_html_on_end_tag() was given */
    CN_HTML_DOCUMENT_END,
    CN_HTML_PAUSE, /* nobody is called: the owner looks whether it may go on (R4) */
};

/* What a handler wants to see. */
enum {
    CN_HTML_WANTS_ELEMENT = 1,
    CN_HTML_WANTS_TEXT = 2,
    CN_HTML_WANTS_COMMENTS = 4,
    CN_HTML_WANTS_DOCTYPE = 8, /* of the document only */
    CN_HTML_WANTS_END = 16,    /* of the document only */
};

enum cn_html_place {
    CN_HTML_BEFORE,
    CN_HTML_AFTER,
    CN_HTML_PREPEND, /* elements: behind the start tag */
    CN_HTML_APPEND,  /* elements: before the end tag; the document's end */
    CN_HTML_REPLACE,
    CN_HTML_INNER, /* elements: in place of the content */
};

struct cn_html_handler {
    unsigned wants;
    bool document; /* not bound to a selector */
    uint32_t open; /* open elements that match its selector */
};

/* What was put around a token. */
struct cn_html_changes {
    struct cn_buf before, replacement;
    struct cn_buf after; /* from its end to its beginning: what is added comes first */
    bool removed;
};

/* An attribute of the current element, as it is now. */
struct cn_html_edit {
    struct cn_html_span name, value, raw; /* raw.at is NULL once it was set */
    uint8_t *owned;                       /* holds name and value of a set one */
};

/* A number for each name: a hash table. */
struct cn_html_number {
    uint64_t name_hash;
    uint32_t number;
    bool used;
};
struct cn_html_numbers {
    struct cn_html_number *slots; /* owned; linear probing */
    size_t count, capacity;
};

struct cn_html_frame;

struct cn_html_rewriter {
    struct cn_html_tokenizer tokenizer;
    struct cn_html_selectors selectors;
    struct cn_html_handler *handlers;
    size_t handler_count, handler_capacity;

    struct cn_buf input;
    size_t at;      /* the current token begins here */
    size_t emitted; /* input up to here is in `output`, or was dropped */
    bool starved;   /* the token at `at` is incomplete, and not looked at again yet */
    bool closes;    /* a ">" has come since it was looked at */
    size_t enough;  /* of a long one: what must have come before it is looked at again */
    bool finished;
    struct cn_buf output; /* the owner takes it */

    struct cn_html_frame *frames; /* open elements, outermost first; the first is the document */
    size_t depth, frame_capacity;
    uint64_t *sets;                    /* two per frame: matched, inherited */
    struct cn_html_numbers open_names; /* the innermost open element of each name, 0: none */
    uint64_t seed;         /* of these tables: a document cannot choose names that collide */
    uint64_t work, paused; /* steps so far, and at the last pause (R4) */
    unsigned dropping;     /* open elements whose content is dropped */

    /* The current token and the handlers it has still to see. */
    struct cn_html_token token;
    enum cn_html_event event; /* CN_HTML_NEED_INPUT between tokens */
    bool text_ended;          /* the text piece is the empty last one */
    bool in_text;             /* a text node was shown and not ended */
    size_t next_handler;
    uint64_t *due; /* handlers of an element, as a set */
    size_t due_words;
    uint64_t *matched; /* of the element */
    struct cn_html_changes changes;
    size_t pop_to; /* end tags: the element that it closes; depth if none */

    /* Of the current element. */
    struct cn_html_edit *edits;
    size_t edit_count, edit_capacity;
    bool edited, edits_valid;
    char *new_name;
    struct cn_buf inner;                /* right behind the start tag; as `after` */
    struct cn_html_changes end_changes; /* for its end tag */
    bool drop_content, keep_tags_off;
    int64_t end_handler;    /* -1: none */
    struct cn_buf new_text; /* comments */
    bool text_set;
};

void cn_html_rewriter_init(struct cn_html_rewriter *rewriter);
void cn_html_rewriter_fini(struct cn_html_rewriter *rewriter);

/* Registers a handler; its number is how many there were before. `selector` NULL: the document.
 * Only before the first feed. */
int cn_html_rewriter_on(struct cn_html_rewriter *rewriter, const char *selector, size_t size,
                        unsigned wants, struct cn_err *err);

void cn_html_rewriter_feed(struct cn_html_rewriter *rewriter, const void *bytes, size_t size);
void cn_html_rewriter_finish(struct cn_html_rewriter *rewriter);
/* An enum cn_html_event, or negative: CN_ELIMIT. */
int cn_html_rewriter_next(struct cn_html_rewriter *rewriter, uint32_t *handler, struct cn_err *err);

/* The current token. Spans are valid until the next change or next(). */
struct cn_html_span cn_html_tag_name(const struct cn_html_rewriter *rewriter); /* as written */
struct cn_html_span cn_html_text(const struct cn_html_rewriter *rewriter);     /* text, comments */
const char *cn_html_namespace(const struct cn_html_rewriter *rewriter);
bool cn_html_is_removed(const struct cn_html_rewriter *rewriter);
/* Elements; NULL if there is none of that name. */
const struct cn_html_edit *cn_html_attribute_find(struct cn_html_rewriter *rewriter,
                                                  const char *name, size_t size);
size_t cn_html_attributes(struct cn_html_rewriter *rewriter, const struct cn_html_edit **edits);
int cn_html_attribute_set(struct cn_html_rewriter *rewriter, const char *name, size_t name_size,
                          const char *value, size_t value_size, struct cn_err *err);
void cn_html_attribute_remove(struct cn_html_rewriter *rewriter, const char *name, size_t size);

/* Elements and end tags. */
int cn_html_set_name(struct cn_html_rewriter *rewriter, const char *name, size_t size,
                     struct cn_err *err);
int cn_html_set_comment(struct cn_html_rewriter *rewriter, const char *text, size_t size,
                        struct cn_err *err);
/* Content that is not HTML is escaped. Places that the token does not have are ignored. */
void cn_html_insert(struct cn_html_rewriter *rewriter, enum cn_html_place place, const char *text,
                    size_t size, bool is_html);
void cn_html_remove(struct cn_html_rewriter *rewriter, bool keep_content);
/* Elements: a CN_HTML_END_TAG event with this number will come, instead of one set before.
 * CN_EINVALID if the element has no end tag. */
int cn_html_on_end_tag(struct cn_html_rewriter *rewriter, uint32_t number, struct cn_err *err);

#endif
