/* SPDX-License-Identifier: Apache-2.0 */
/* html/tokenizer.h - HTML bytes to tokens.
 *
 * Follows the tokenization of the HTML standard as far as a rewriter needs it:
 * where tokens begin and end, names and attributes as they were written.
 * Character references are not decoded, nothing is normalised: a token's raw
 * bytes are what the document has.
 *
 * The caller keeps the bytes. A token's pointers are into them.
 *
 * The standard's tree builder tells its tokenizer when to treat content as raw
 * text (script, style, title...); here the caller does, with set_content(). */
#ifndef CN_HTML_TOKENIZER_H
#define CN_HTML_TOKENIZER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_html_span {
    const uint8_t *at;
    size_t size;
};

enum cn_html_token_type {
    CN_HTML_TOKEN_NONE, /* more bytes are needed */
    CN_HTML_TOKEN_TEXT, /* a piece of a text node */
    CN_HTML_TOKEN_START,
    CN_HTML_TOKEN_END,
    CN_HTML_TOKEN_COMMENT,
    CN_HTML_TOKEN_DOCTYPE,
    CN_HTML_TOKEN_OTHER, /* no node: "</>", the marks of CDATA, a tag cut off by the end */
};

struct cn_html_attribute {
    struct cn_html_span name, value; /* value.at is NULL if there is no "=" */
    struct cn_html_span raw;         /* from the name to the closing quote */
};

struct cn_html_token {
    enum cn_html_token_type type;
    struct cn_html_span raw;
    struct cn_html_span name; /* tags, DOCTYPE */
    uint64_t name_hash;       /* tags: of the name in lower case, see cn_html_hash() */
    struct cn_html_span text; /* comments: between the marks */
    struct cn_html_span public_id, system_id; /* DOCTYPE; at is NULL where there is none */
    bool self_closing;
    struct cn_html_attribute *attributes; /* the tokenizer's, until the next token */
    size_t attribute_count;
};

enum cn_html_content {
    CN_HTML_DATA,
    CN_HTML_RAW_TEXT, /* up to the end tag of the element: style, title, textarea... */
    CN_HTML_SCRIPT,   /* the same, with the standard's escapes */
    CN_HTML_PLAIN_TEXT,
    CN_HTML_CDATA, /* set by the tokenizer itself */
};

struct cn_html_tokenizer {
    enum cn_html_content content;
    uint64_t raw_hash; /* of the element whose end tag ends raw text */
    int escape;        /* script: 0, 1 inside <!--, 2 inside <!-- <script */
    bool foreign;      /* the caller's: CDATA sections are allowed */
    struct cn_html_attribute *attributes;
    size_t attribute_capacity;
};

void cn_html_tokenizer_fini(struct cn_html_tokenizer *tokenizer);

/* Reads one token from the start of the bytes, which are all there will be if `last`. */
enum cn_html_token_type cn_html_tokenizer_next(struct cn_html_tokenizer *tokenizer,
                                               const uint8_t *bytes, size_t size, bool last,
                                               struct cn_html_token *token);

void cn_html_tokenizer_set_content(struct cn_html_tokenizer *tokenizer,
                                   enum cn_html_content content, uint64_t raw_hash);

static inline uint8_t cn_html_lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 32) : c;
}

/* A name in lower case as a number: short names are the number, long ones are hashed into it. */
static inline uint64_t cn_html_hash(const uint8_t *name, size_t size)
{
    uint64_t hash = 0;
    if (size <= 8) {
        for (size_t i = 0; i < size; i++)
            hash = hash << 8 | cn_html_lower(name[i]);
        return hash;
    }
    hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ cn_html_lower(name[i])) * 0x100000001b3u;
    return hash | 1ull << 63; /* no short ASCII name has this bit */
}
/* The number of a literal of at most 8 characters, as an expression that compilers fold. */
#define CN_HTML_NAME(s)                                                                      \
    (CN_HTML_NAME_(s, 0) | CN_HTML_NAME_(s, 1) | CN_HTML_NAME_(s, 2) | CN_HTML_NAME_(s, 3) | \
     CN_HTML_NAME_(s, 4) | CN_HTML_NAME_(s, 5) | CN_HTML_NAME_(s, 6) | CN_HTML_NAME_(s, 7))
#define CN_HTML_NAME_(s, i)                                                              \
    ((i) < sizeof(s) - 1                                                                 \
         ? (uint64_t)(s)[(i) < sizeof(s) ? (i) : 0] << (8 * ((sizeof(s) - 2 - (i)) & 7)) \
         : 0)
/* The number of a longer one. */
#define CN_HTML_LONG_NAME(s) cn_html_hash((const uint8_t *)(s), sizeof(s) - 1)

static inline bool cn_html_is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

/* ASCII case does not count. */
bool cn_html_equal_nocase(struct cn_html_span a, const void *b, size_t b_size);

#endif
