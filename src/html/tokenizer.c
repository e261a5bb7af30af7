/* SPDX-License-Identifier: Apache-2.0 */
/* html/tokenizer.c - see https://html.spec.whatwg.org/multipage/parsing.html#tokenization
 *
 * T1  A token's raw bytes begin where the bytes given begin, and tokens are never
 *     empty: a caller that advances by raw.size sees every byte once, in order.
 * T2  Text ends before an incomplete UTF-8 sequence and before anything that
 *     may still turn out to be a tag, unless `last`. */
#include "html/tokenizer.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"

void cn_html_tokenizer_fini(struct cn_html_tokenizer *tokenizer)
{
    cn_free(tokenizer->attributes);
    *tokenizer = (struct cn_html_tokenizer){0};
}

void cn_html_tokenizer_set_content(struct cn_html_tokenizer *tokenizer,
                                   enum cn_html_content content, uint64_t raw_hash)
{
    tokenizer->content = content;
    tokenizer->raw_hash = raw_hash;
    tokenizer->escape = 0;
}

bool cn_html_equal_nocase(struct cn_html_span a, const void *b, size_t b_size)
{
    if (a.size != b_size)
        return false;
    const uint8_t *other = b;
    for (size_t i = 0; i < b_size; i++)
        if (cn_html_lower(a.at[i]) != cn_html_lower(other[i]))
            return false;
    return true;
}

static bool is_letter(uint8_t c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static enum cn_html_token_type finish(struct cn_html_token *token, enum cn_html_token_type type,
                                      const uint8_t *begin, const uint8_t *end)
{
    token->type = type;
    token->raw = (struct cn_html_span){begin, (size_t)(end - begin)};
    return type;
}

/* T2: how many bytes at the end begin a UTF-8 sequence that is not complete. */
static size_t incomplete_tail(const uint8_t *begin, const uint8_t *end)
{
    for (size_t back = 1; back <= 3 && back <= (size_t)(end - begin); back++) {
        uint8_t c = end[-(ptrdiff_t)back];
        if (c < 0x80)
            return 0;
        if (c >= 0xc0)
            return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) > back ? back : 0;
    }
    return 0;
}

/* Text from `begin` to `end`. `at_end`: the bytes end there, a sequence may be cut. */
static enum cn_html_token_type text(struct cn_html_token *token, const uint8_t *begin,
                                    const uint8_t *end, bool at_end, bool last)
{
    if (at_end && !last)
        end -= incomplete_tail(begin, end);
    if (end == begin)
        return CN_HTML_TOKEN_NONE;
    return finish(token, CN_HTML_TOKEN_TEXT, begin, end);
}

/* Does the name of hash `hash` stand at `p`, followed by what ends a tag's name? Returns 1 yes,
 * 0 no, -1 the bytes end before that is known. */
static int name_follows(const uint8_t *p, const uint8_t *end, uint64_t hash)
{
    const uint8_t *name = p;
    while (p < end && is_letter(*p))
        p++;
    if (p == end)
        return p - name > 16 ? 0 : -1;
    if (!cn_html_is_space(*p) && *p != '/' && *p != '>')
        return 0;
    return cn_html_hash(name, (size_t)(p - name)) == hash;
}

static const char *const comment_open = "<!--";

/* Is `literal` at p? 1 yes, 0 no, -1 the bytes end first. */
static int literal_follows(const uint8_t *p, const uint8_t *end, const char *literal)
{
    for (; *literal; literal++, p++) {
        if (p == end)
            return -1;
        if (cn_html_lower(*p) != (uint8_t)*literal)
            return 0;
    }
    return 1;
}

/* Where the raw text of an element ends: at its end tag, or, if that is not there, at the place up
 * to which it can be decided. `*found` says which. */
static const uint8_t *raw_text_end(struct cn_html_tokenizer *tokenizer, const uint8_t *p,
                                   const uint8_t *end, bool *found)
{
    *found = false;
    while ((p = memchr(p, '<', (size_t)(end - p)))) {
        if (p + 1 == end)
            return p;
        int follows = p[1] == '/' ? name_follows(p + 2, end, tokenizer->raw_hash) : 0;
        if (follows < 0)
            return p;
        if (follows) {
            *found = true;
            return p;
        }
        p++;
    }
    return end;
}

/* The same inside script, where <!-- and <script> inside it hide an end tag. */
static const uint8_t *script_end(struct cn_html_tokenizer *tokenizer, const uint8_t *p,
                                 const uint8_t *end, bool *found)
{
    const uint64_t script = CN_HTML_NAME("script");
    *found = false;
    for (; p < end; p++) {
        if (tokenizer->escape == 0) {
            p = memchr(p, '<', (size_t)(end - p));
            if (!p)
                return end;
        } else if (*p != '<' && *p != '-') {
            continue;
        }
        if (*p == '-') {
            int follows = literal_follows(p, end, "-->");
            if (follows < 0)
                return p;
            if (follows)
                tokenizer->escape = 0;
            continue;
        }
        if (p + 1 == end)
            return p;
        if (p[1] == '/') {
            int follows = name_follows(p + 2, end, script);
            if (follows < 0)
                return p;
            if (follows && tokenizer->escape < 2) {
                *found = true;
                return p;
            }
            if (follows)
                tokenizer->escape = 1;
        } else if (tokenizer->escape == 0) {
            int follows = literal_follows(p, end, comment_open);
            if (follows < 0)
                return p;
            if (follows) {
                tokenizer->escape = 1;
                p += 1; /* the dashes may belong to --> as well */
            }
        } else if (tokenizer->escape == 1) {
            int follows = name_follows(p + 1, end, script);
            if (follows < 0)
                return p;
            if (follows)
                tokenizer->escape = 2;
        }
    }
    return end;
}

static struct cn_html_attribute *add_attribute(struct cn_html_tokenizer *tokenizer,
                                               struct cn_html_token *token)
{
    CN_GROW(tokenizer->attributes, token->attribute_count, tokenizer->attribute_capacity);
    token->attributes = tokenizer->attributes;
    struct cn_html_attribute *attribute = &token->attributes[token->attribute_count++];
    *attribute = (struct cn_html_attribute){0};
    return attribute;
}

/* A tag; p is at its name. Returns NULL if its end is not there yet. */
static const uint8_t *tag(struct cn_html_tokenizer *tokenizer, const uint8_t *p, const uint8_t *end,
                          struct cn_html_token *token)
{
    const uint8_t *begin = p;
    while (p < end && !cn_html_is_space(*p) && *p != '/' && *p != '>')
        p++;
    token->name = (struct cn_html_span){begin, (size_t)(p - begin)};
    token->name_hash = cn_html_hash(begin, token->name.size);
    token->attribute_count = 0;
    token->self_closing = false;
    for (;;) {
        while (p < end && (cn_html_is_space(*p) || *p == '/')) {
            token->self_closing = *p == '/';
            p++;
        }
        if (p == end)
            return NULL;
        if (*p == '>') {
            if (p[-1] != '/')
                token->self_closing = false;
            return p + 1;
        }
        token->self_closing = false;
        struct cn_html_attribute *attribute = add_attribute(tokenizer, token);
        const uint8_t *name = p++; /* a leading "=" belongs to the name */
        while (p < end && !cn_html_is_space(*p) && *p != '/' && *p != '>' && *p != '=')
            p++;
        attribute->name = (struct cn_html_span){name, (size_t)(p - name)};
        attribute->raw = attribute->name;
        while (p < end && cn_html_is_space(*p))
            p++;
        if (p == end)
            return NULL;
        if (*p != '=')
            continue;
        p++;
        while (p < end && cn_html_is_space(*p))
            p++;
        if (p == end)
            return NULL;
        const uint8_t *value = p;
        if (*p == '"' || *p == '\'') {
            value++;
            const uint8_t *quote = memchr(value, *p, (size_t)(end - value));
            if (!quote)
                return NULL;
            attribute->value = (struct cn_html_span){value, (size_t)(quote - value)};
            p = quote + 1;
        } else {
            while (p < end && !cn_html_is_space(*p) && *p != '>')
                p++;
            attribute->value = (struct cn_html_span){value, (size_t)(p - value)};
        }
        attribute->raw.size = (size_t)(p - name);
    }
}

/* A comment after "<!--". Returns its end, or NULL. */
static const uint8_t *comment(const uint8_t *p, const uint8_t *end, struct cn_html_span *inside)
{
    const uint8_t *begin = p;
    if (p < end && *p == '>') { /* <!--> */
        *inside = (struct cn_html_span){begin, 0};
        return p + 1;
    }
    if (end - p >= 2 && p[0] == '-' && p[1] == '>') { /* <!---> */
        *inside = (struct cn_html_span){begin, 0};
        return p + 2;
    }
    while ((p = memchr(p, '-', (size_t)(end - p)))) {
        if (end - p < 3)
            return NULL;
        if (p[1] == '-' && p[2] == '>') {
            *inside = (struct cn_html_span){begin, (size_t)(p - begin)};
            return p + 3;
        }
        if (p[1] == '-' && p[2] == '!' && end - p >= 4 && p[3] == '>') {
            *inside = (struct cn_html_span){begin, (size_t)(p - begin)};
            return p + 4;
        }
        p++;
    }
    return NULL;
}

static const uint8_t *skip_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && cn_html_is_space(*p))
        p++;
    return p;
}

static const uint8_t *quoted(const uint8_t *p, const uint8_t *end, struct cn_html_span *out)
{
    p = skip_space(p, end);
    if (p == end || (*p != '"' && *p != '\''))
        return p;
    const uint8_t *close = memchr(p + 1, *p, (size_t)(end - p - 1));
    const uint8_t *stop = close ? close : end;
    *out = (struct cn_html_span){p + 1, (size_t)(stop - p - 1)};
    return close ? close + 1 : end;
}

/* The inside of <!DOCTYPE ...>. */
static void doctype(const uint8_t *p, const uint8_t *end, struct cn_html_token *token)
{
    p = skip_space(p, end);
    const uint8_t *name = p;
    while (p < end && !cn_html_is_space(*p))
        p++;
    token->name = (struct cn_html_span){p > name ? name : NULL, (size_t)(p - name)};
    token->public_id = token->system_id = (struct cn_html_span){0};
    p = skip_space(p, end);
    if (literal_follows(p, end, "public") == 1) {
        p = quoted(p + 6, end, &token->public_id);
        quoted(p, end, &token->system_id);
    } else if (literal_follows(p, end, "system") == 1) {
        quoted(p + 6, end, &token->system_id);
    }
}

/* A bogus comment: everything up to ">". */
static enum cn_html_token_type bogus(const uint8_t *bytes, const uint8_t *p, const uint8_t *end,
                                     bool last, struct cn_html_token *token)
{
    const uint8_t *close = memchr(p, '>', (size_t)(end - p));
    if (!close && !last)
        return CN_HTML_TOKEN_NONE;
    const uint8_t *stop = close ? close : end;
    token->text = (struct cn_html_span){p, (size_t)(stop - p)};
    return finish(token, CN_HTML_TOKEN_COMMENT, bytes, close ? close + 1 : end);
}

/* "<!" and what it begins. */
static enum cn_html_token_type declaration(struct cn_html_tokenizer *tokenizer,
                                           const uint8_t *bytes, const uint8_t *end, bool last,
                                           struct cn_html_token *token)
{
    int follows = literal_follows(bytes, end, comment_open);
    if (follows == 1) {
        const uint8_t *close = comment(bytes + 4, end, &token->text);
        if (close)
            return finish(token, CN_HTML_TOKEN_COMMENT, bytes, close);
        if (!last)
            return CN_HTML_TOKEN_NONE;
        token->text = (struct cn_html_span){bytes + 4, (size_t)(end - bytes - 4)};
        return finish(token, CN_HTML_TOKEN_COMMENT, bytes, end);
    }
    int is_doctype = literal_follows(bytes + 2, end, "doctype");
    int is_cdata = tokenizer->foreign ? literal_follows(bytes + 2, end, "[cdata[") : 0;
    if (!last && (follows < 0 || is_doctype < 0 || is_cdata < 0))
        return CN_HTML_TOKEN_NONE;
    if (is_cdata == 1) {
        tokenizer->content = CN_HTML_CDATA;
        return finish(token, CN_HTML_TOKEN_OTHER, bytes, bytes + 9);
    }
    if (is_doctype == 1) {
        const uint8_t *close = memchr(bytes, '>', (size_t)(end - bytes));
        if (!close && !last)
            return CN_HTML_TOKEN_NONE;
        doctype(bytes + 9, close ? close : end, token);
        return finish(token, CN_HTML_TOKEN_DOCTYPE, bytes, close ? close + 1 : end);
    }
    return bogus(bytes, bytes + 2, end, last, token);
}

/* Something that begins with "<" and is not text: T1 holds for each result. */
static enum cn_html_token_type markup(struct cn_html_tokenizer *tokenizer, const uint8_t *bytes,
                                      const uint8_t *end, bool last, struct cn_html_token *token)
{
    uint8_t second = bytes[1];
    if (second == '!')
        return declaration(tokenizer, bytes, end, last, token);
    if (second == '?')
        return bogus(bytes, bytes + 1, end, last, token);
    bool closing = second == '/';
    const uint8_t *name = bytes + 1 + closing;
    if (closing && *name == '>')
        return finish(token, CN_HTML_TOKEN_OTHER, bytes, name + 1);
    if (closing && !is_letter(*name))
        return bogus(bytes, name, end, last, token);
    const uint8_t *close = tag(tokenizer, name, end, token);
    if (close)
        return finish(token, closing ? CN_HTML_TOKEN_END : CN_HTML_TOKEN_START, bytes, close);
    /* The standard drops a tag that the end of the document cuts; its bytes pass here. */
    return last ? finish(token, CN_HTML_TOKEN_OTHER, bytes, end) : CN_HTML_TOKEN_NONE;
}

/* Does "<" at p begin markup? 1 yes, 0 it is text, -1 the bytes end first. */
static int begins_markup(const uint8_t *p, const uint8_t *end)
{
    if (p + 1 == end)
        return -1;
    if (is_letter(p[1]) || p[1] == '!' || p[1] == '?')
        return 1;
    if (p[1] != '/')
        return 0;
    return p + 2 == end ? -1 : 1;
}

static enum cn_html_token_type next_data(struct cn_html_tokenizer *tokenizer, const uint8_t *bytes,
                                         const uint8_t *end, bool last, struct cn_html_token *token)
{
    const uint8_t *p = bytes;
    while ((p = memchr(p, '<', (size_t)(end - p)))) {
        int begins = begins_markup(p, end);
        if (begins < 0) /* "<" or "</" at the end: text if nothing follows */
            return last ? finish(token, CN_HTML_TOKEN_TEXT, bytes, end)
                        : text(token, bytes, p, false, last);
        if (begins) {
            if (p > bytes)
                return finish(token, CN_HTML_TOKEN_TEXT, bytes, p);
            return markup(tokenizer, bytes, end, last, token);
        }
        p++;
    }
    return text(token, bytes, end, true, last);
}

static enum cn_html_token_type next_raw(struct cn_html_tokenizer *tokenizer, const uint8_t *bytes,
                                        const uint8_t *end, bool last, struct cn_html_token *token)
{
    bool found;
    const uint8_t *stop = tokenizer->content == CN_HTML_SCRIPT
                              ? script_end(tokenizer, bytes, end, &found)
                              : raw_text_end(tokenizer, bytes, end, &found);
    if (found && stop == bytes) {
        enum cn_html_token_type type = markup(tokenizer, bytes, end, last, token);
        if (type != CN_HTML_TOKEN_NONE)
            tokenizer->content = CN_HTML_DATA;
        return type;
    }
    if (!found && last)
        stop = end;
    return text(token, bytes, stop, stop == end, last);
}

static enum cn_html_token_type next_cdata(struct cn_html_tokenizer *tokenizer, const uint8_t *bytes,
                                          const uint8_t *end, bool last,
                                          struct cn_html_token *token)
{
    const uint8_t *p = bytes;
    while ((p = memchr(p, ']', (size_t)(end - p)))) {
        int follows = literal_follows(p, end, "]]>");
        if (follows == 1 && p == bytes) {
            tokenizer->content = CN_HTML_DATA;
            return finish(token, CN_HTML_TOKEN_OTHER, bytes, bytes + 3);
        }
        if (follows == 1 || (follows < 0 && !last))
            return text(token, bytes, p, false, last);
        p++;
    }
    return text(token, bytes, end, true, last);
}

enum cn_html_token_type cn_html_tokenizer_next(struct cn_html_tokenizer *tokenizer,
                                               const uint8_t *bytes, size_t size, bool last,
                                               struct cn_html_token *token)
{
    token->type = CN_HTML_TOKEN_NONE;
    token->attribute_count = 0;
    if (size == 0)
        return CN_HTML_TOKEN_NONE;
    const uint8_t *end = bytes + size;
    switch (tokenizer->content) {
    case CN_HTML_DATA:
        return next_data(tokenizer, bytes, end, last, token);
    case CN_HTML_RAW_TEXT:
    case CN_HTML_SCRIPT:
        return next_raw(tokenizer, bytes, end, last, token);
    case CN_HTML_PLAIN_TEXT:
        return text(token, bytes, end, true, last);
    case CN_HTML_CDATA:
        return next_cdata(tokenizer, bytes, end, last, token);
    }
    CN_UNREACHABLE();
}
