/* SPDX-License-Identifier: Apache-2.0 */
#include "html/selector.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/hexdigit.h"
#include "base/mem.h"
#include "base/utf8.h"

enum simple_kind {
    SIMPLE_TYPE,
    SIMPLE_ATTRIBUTE, /* classes and ids too */
    SIMPLE_NTH_CHILD,
    SIMPLE_NTH_OF_TYPE,
    SIMPLE_NOT,
};

struct simple {
    enum simple_kind kind;
    uint64_t name_hash; /* type */
    char *name, *value; /* attribute; owned */
    uint32_t *borders;  /* of "*=" without case: of each beginning of `value`; owned */
    size_t name_size, value_size;
    char comparison; /* attribute: 0 present, '=', '~', '^', '$', '*', '|' */
    bool ignore_case;
    int step, offset;      /* nth: step * n + offset */
    struct simple *inside; /* not: alternatives, each a run ended by `ends` */
    size_t inside_count;
    bool ends; /* inside :not(): the last of its compound */
};

struct cn_html_compound {
    struct simple *simples;
    size_t count;
    int previous; /* the compound to its left, or -1 */
    bool child;   /* combinator to it: child, not descendant */
    int handler;  /* >= 0 for the last of a selector */
};

static void simples_free(struct simple *simples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cn_free(simples[i].name);
        cn_free(simples[i].value);
        cn_free(simples[i].borders);
        simples_free(simples[i].inside, simples[i].inside_count);
    }
    cn_free(simples);
}

static void truncate_set(struct cn_html_selectors *set, size_t count)
{
    while (set->count > count) {
        struct cn_html_compound *compound = &set->compounds[--set->count];
        simples_free(compound->simples, compound->count);
    }
}

void cn_html_selectors_fini(struct cn_html_selectors *set)
{
    truncate_set(set, 0);
    cn_free(set->compounds);
    *set = (struct cn_html_selectors){0};
}

/* ---- parsing ---- */

struct parser {
    const char *at, *end;
    struct cn_html_selectors *set;
    struct cn_err *err;
};

static int fail(struct parser *parser, const char *sentence)
{
    return cn_err_set(parser->err, CN_EINVALID, "%s", sentence);
}

static int unexpected(struct parser *parser)
{
    return fail(parser, parser->at == parser->end ? "Unexpected end of selector."
                                                  : "Unexpected token in selector.");
}

static void skip_space(struct parser *parser)
{
    while (parser->at < parser->end && cn_html_is_space((uint8_t)*parser->at))
        parser->at++;
}

static bool take(struct parser *parser, char c)
{
    if (parser->at == parser->end || *parser->at != c)
        return false;
    parser->at++;
    return true;
}

static bool is_name_char(uint8_t c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c >= 0x80;
}

static void append_code_point(struct cn_buf *out, uint32_t c)
{
    char bytes[4];
    bool good = c > 0 && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);
    cn_buf_append(out, bytes, cn_utf8_encode(good ? c : 0xfffd, bytes));
}

/* After a backslash. */
static bool take_escape(struct parser *parser, struct cn_buf *out)
{
    if (parser->at == parser->end || *parser->at == '\n')
        return false;
    uint32_t value = 0;
    int digits = 0;
    while (digits < 6 && parser->at < parser->end && cn_hexdigit_value((uint8_t)*parser->at) >= 0) {
        value = value * 16 + (uint32_t)cn_hexdigit_value((uint8_t)*parser->at++);
        digits++;
    }
    if (digits == 0) {
        cn_buf_append_byte(out, (uint8_t)*parser->at++);
        return true;
    }
    if (parser->at < parser->end && cn_html_is_space((uint8_t)*parser->at))
        parser->at++;
    append_code_point(out, value);
    return true;
}

/* An identifier, or with `any_start` a hash's name. False (nothing taken) if there is none. */
static bool take_name(struct parser *parser, bool any_start, struct cn_buf *out)
{
    const char *begin = parser->at;
    cn_buf_clear(out);
    if (!any_start && begin < parser->end) {
        const char *p = begin;
        if (*p == '-' && p + 1 < parser->end)
            p++;
        if (*p >= '0' && *p <= '9')
            return false;
    }
    while (parser->at < parser->end) {
        if (is_name_char((uint8_t)*parser->at)) {
            cn_buf_append_byte(out, (uint8_t)*parser->at++);
        } else if (*parser->at == '\\') {
            parser->at++;
            if (!take_escape(parser, out)) {
                parser->at = begin;
                return false;
            }
        } else {
            break;
        }
    }
    if (out->size == 0 || (out->size == 1 && out->data[0] == '-' && !any_start)) {
        parser->at = begin;
        return false;
    }
    return true;
}

static bool take_string(struct parser *parser, struct cn_buf *out)
{
    cn_buf_clear(out);
    char quote = *parser->at++;
    while (parser->at < parser->end && *parser->at != quote) {
        char c = *parser->at++;
        if (c == '\n')
            return false;
        if (c != '\\')
            cn_buf_append_byte(out, (uint8_t)c);
        else if (parser->at < parser->end && *parser->at == '\n')
            parser->at++;
        else if (parser->at < parser->end)
            take_escape(parser, out);
    }
    take(parser, quote); /* CSS lets the end of the text close a string */
    return true;
}

struct simple_list {
    struct simple *items;
    size_t count, capacity;
};

static struct simple *add_simple(struct simple_list *list, enum simple_kind kind)
{
    CN_GROW(list->items, list->count, list->capacity);
    struct simple *simple = &list->items[list->count++];
    *simple = (struct simple){.kind = kind};
    return simple;
}

static void set_text(char **text, size_t *size, const struct cn_buf *from)
{
    *text = cn_strndup(from->size ? (const char *)from->data : "", from->size);
    *size = from->size;
}

/* borders[i]: how much of the beginning of `value` ends at i, but for all of it up to there. */
static void find_borders(struct simple *simple)
{
    simple->borders = cn_alloc_zero((simple->value_size + 1) * sizeof(*simple->borders));
    for (uint32_t i = 1, border = 0; i < simple->value_size; i++) {
        uint8_t c = cn_html_lower((uint8_t)simple->value[i]);
        while (border && c != cn_html_lower((uint8_t)simple->value[border]))
            border = simple->borders[border - 1];
        border += c == cn_html_lower((uint8_t)simple->value[border]);
        simple->borders[i] = border;
    }
}

static int parse_attribute(struct parser *parser, struct simple_list *list, struct cn_buf *name)
{
    skip_space(parser);
    if (take(parser, '*') && !take(parser, '|'))
        return unexpected(parser);
    if (!take_name(parser, false, name))
        return unexpected(parser);
    struct simple *simple = add_simple(list, SIMPLE_ATTRIBUTE);
    set_text(&simple->name, &simple->name_size, name);
    skip_space(parser);
    if (take(parser, ']') || parser->at == parser->end)
        return 0;
    char comparison = *parser->at++;
    if (comparison == '|' && (parser->at == parser->end || *parser->at != '='))
        return fail(parser, "Selectors with explicit namespaces are not supported.");
    if (!comparison || !strchr("=~^$*|", comparison) || (comparison != '=' && !take(parser, '=')))
        return fail(parser, "Unexpected token in the attribute selector.");
    simple->comparison = comparison;
    skip_space(parser);
    if (parser->at == parser->end)
        return unexpected(parser);
    bool ok = *parser->at == '"' || *parser->at == '\'' ? take_string(parser, name)
                                                        : take_name(parser, false, name);
    if (!ok)
        return fail(parser, "Unexpected token in the attribute selector.");
    set_text(&simple->value, &simple->value_size, name);
    skip_space(parser);
    if (parser->at < parser->end && (*parser->at | 32) == 'i') {
        simple->ignore_case = true;
        parser->at++;
        if (comparison == '*')
            find_borders(simple);
    } else if (parser->at < parser->end && (*parser->at | 32) == 's') {
        parser->at++;
    }
    skip_space(parser);
    if (!take(parser, ']') && parser->at < parser->end)
        return fail(parser, "Unexpected token in the attribute selector.");
    return 0;
}

static bool take_word(struct parser *parser, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(parser->end - parser->at) < size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (cn_html_lower((uint8_t)parser->at[i]) != (uint8_t)word[i])
            return false;
    parser->at += size;
    return true;
}

/* Digits, at most 9 of them; -1 if there are none. */
static int take_number(struct parser *parser)
{
    int value = -1;
    for (int digits = 0; parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9';
         digits++) {
        if (digits == 9)
            return -1;
        value = (value < 0 ? 0 : value) * 10 + (*parser->at++ - '0');
    }
    return value;
}

/* The inside of :nth-child(): https://drafts.csswg.org/css-syntax-3/#anb-microsyntax */
static int parse_nth(struct parser *parser, struct simple *simple)
{
    skip_space(parser);
    if (take_word(parser, "odd")) {
        simple->step = 2;
        simple->offset = 1;
    } else if (take_word(parser, "even")) {
        simple->step = 2;
    } else {
        int sign = take(parser, '-') ? -1 : 1;
        if (sign > 0)
            take(parser, '+');
        int number = take_number(parser);
        if (parser->at < parser->end && (*parser->at | 32) == 'n') {
            parser->at++;
            simple->step = sign * (number < 0 ? 1 : number);
            skip_space(parser);
            if (parser->at < parser->end && (*parser->at == '+' || *parser->at == '-')) {
                sign = *parser->at++ == '-' ? -1 : 1;
                skip_space(parser);
                number = take_number(parser);
                if (number < 0)
                    return unexpected(parser);
                simple->offset = sign * number;
            }
        } else if (number < 0) {
            return unexpected(parser);
        } else {
            simple->offset = sign * number;
        }
    }
    skip_space(parser);
    return take(parser, ')') || parser->at == parser->end ? 0 : unexpected(parser);
}

static int parse_compound(struct parser *parser, struct simple_list *list, bool in_not);

static int parse_not(struct parser *parser, struct simple_list *list)
{
    static const char *const unsupported =
        "Unsupported pseudo-class or pseudo-element in selector.";
    struct simple_list inside = {0};
    int rc = 0;
    do {
        skip_space(parser);
        size_t before = inside.count;
        rc = parse_compound(parser, &inside, true);
        if (rc == 0 && inside.count == before)
            rc = unexpected(parser);
        if (rc == 0)
            inside.items[inside.count - 1].ends = true;
        skip_space(parser);
    } while (rc == 0 && take(parser, ','));
    if (rc == 0 && !take(parser, ')') && parser->at < parser->end)
        rc = fail(parser, unsupported); /* a combinator */
    if (rc < 0) {
        simples_free(inside.items, inside.count);
        return rc;
    }
    struct simple *simple = add_simple(list, SIMPLE_NOT);
    simple->inside = inside.items;
    simple->inside_count = inside.count;
    return 0;
}

static int parse_pseudo(struct parser *parser, struct simple_list *list, struct cn_buf *name,
                        bool in_not)
{
    static const char *const unsupported =
        "Unsupported pseudo-class or pseudo-element in selector.";
    if (take(parser, ':') || !take_name(parser, false, name))
        return fail(parser, unsupported);
    struct cn_html_span word = {name->data, name->size};
    bool arguments = take(parser, '(');
    if (!arguments && cn_html_equal_nocase(word, "first-child", 11)) {
        add_simple(list, SIMPLE_NTH_CHILD)->offset = 1;
        return 0;
    }
    if (!arguments && cn_html_equal_nocase(word, "first-of-type", 13)) {
        add_simple(list, SIMPLE_NTH_OF_TYPE)->offset = 1;
        parser->set->uses_type_index = true;
        return 0;
    }
    if (arguments && cn_html_equal_nocase(word, "nth-child", 9))
        return parse_nth(parser, add_simple(list, SIMPLE_NTH_CHILD));
    if (arguments && cn_html_equal_nocase(word, "nth-of-type", 11)) {
        parser->set->uses_type_index = true;
        return parse_nth(parser, add_simple(list, SIMPLE_NTH_OF_TYPE));
    }
    if (arguments && !in_not && cn_html_equal_nocase(word, "not", 3))
        return parse_not(parser, list);
    return fail(parser, unsupported);
}

/* The simple selectors up to the next combinator. Adding none is not an error here. */
static int parse_compound(struct parser *parser, struct simple_list *list, bool in_not)
{
    static const char *const namespaces = "Selectors with explicit namespaces are not supported.";
    struct cn_buf name = {0};
    int rc = 0;
    size_t before = list->count;
    bool universal = false;
    if (take(parser, '*')) {
        universal = true;
        if (take(parser, '|') && !take(parser, '*') && take_name(parser, false, &name))
            add_simple(list, SIMPLE_TYPE)->name_hash = cn_html_hash(name.data, name.size);
    } else if (take(parser, '|')) {
        rc = fail(parser, namespaces);
    } else if (take_name(parser, false, &name)) {
        add_simple(list, SIMPLE_TYPE)->name_hash = cn_html_hash(name.data, name.size);
        if (take(parser, '|'))
            rc = fail(parser, namespaces);
    }
    while (rc == 0 && parser->at < parser->end) {
        if (++parser->set->simple_count > CN_HTML_SIMPLE_MAX)
            rc = cn_err_set(parser->err, CN_ELIMIT, "A rewriter has too many selectors.");
        else if (*parser->at == '#' || *parser->at == '.') {
            bool is_class = *parser->at++ == '.';
            if (!take_name(parser, !is_class, &name)) {
                rc = unexpected(parser);
                break;
            }
            struct simple *simple = add_simple(list, SIMPLE_ATTRIBUTE);
            const char *attribute = is_class ? "class" : "id";
            simple->name = cn_strdup(attribute);
            simple->name_size = strlen(attribute);
            simple->comparison = is_class ? '~' : '=';
            set_text(&simple->value, &simple->value_size, &name);
        } else if (take(parser, '[')) {
            rc = parse_attribute(parser, list, &name);
        } else if (take(parser, ':')) {
            rc = parse_pseudo(parser, list, &name, in_not);
        } else {
            break;
        }
    }
    cn_buf_fini(&name);
    if (rc == 0 && universal && list->count == before)
        add_simple(list, SIMPLE_NTH_CHILD)->step = 1; /* every child: always true */
    return rc;
}

static int add_compound(struct cn_html_selectors *set, struct simple_list *list, int previous,
                        bool child, struct cn_err *err)
{
    if (set->count == CN_HTML_COMPOUND_MAX)
        return cn_err_set(err, CN_ELIMIT, "A rewriter has too many selectors.");
    CN_GROW(set->compounds, set->count, set->capacity);
    set->compounds[set->count++] = (struct cn_html_compound){
        .simples = list->items,
        .count = list->count,
        .previous = previous,
        .child = child,
        .handler = -1,
    };
    return (int)set->count - 1;
}

/* One selector of a list, up to "," or the end. */
static int parse_selector(struct parser *parser, unsigned handler)
{
    int previous = -1;
    bool child = false;
    for (;;) {
        skip_space(parser);
        struct simple_list list = {0};
        int rc = parse_compound(parser, &list, false);
        if (rc == 0 && list.count == 0) {
            bool ended = parser->at == parser->end || *parser->at == ',' || *parser->at == '>';
            rc = previous < 0 && ended    ? fail(parser, "The selector is empty.")
                 : previous >= 0 && ended ? fail(parser, "Dangling combinator in selector.")
                                          : unexpected(parser);
        }
        if (rc == 0)
            rc = add_compound(parser->set, &list, previous, child, parser->err);
        if (rc < 0) {
            simples_free(list.items, list.count);
            return rc;
        }
        previous = rc;
        const char *before = parser->at;
        skip_space(parser);
        if (parser->at == parser->end || *parser->at == ',') {
            parser->set->compounds[previous].handler = (int)handler;
            return 0;
        }
        if (*parser->at == '+' || *parser->at == '~')
            return fail(parser, *parser->at == '+' ? "Unsupported combinator `+` in selector."
                                                   : "Unsupported combinator `~` in selector.");
        child = take(parser, '>');
        if (!child && parser->at == before)
            return unexpected(parser);
    }
}

int cn_html_selectors_add(struct cn_html_selectors *set, const char *text, size_t size,
                          unsigned handler, struct cn_err *err)
{
    struct parser parser = {.at = text, .end = text + size, .set = set, .err = err};
    size_t before = set->count, simples_before = set->simple_count;
    for (;;) {
        int rc = parse_selector(&parser, handler);
        if (rc < 0) {
            truncate_set(set, before);
            set->simple_count = simples_before;
            return rc;
        }
        if (!take(&parser, ','))
            return 0;
    }
}

/* ---- matching ---- */

/* Counts steps; false when there are none left. */
static bool spend(struct cn_html_element *element, uint64_t steps)
{
    element->work_left -= steps < element->work_left ? steps : element->work_left;
    return element->work_left > 0;
}

/* Whether `text` has the value in it, case aside: linear, by its borders. */
static bool contains_nocase(const struct simple *simple, const uint8_t *text, size_t size)
{
    size_t found = 0; /* of the value */
    for (size_t i = 0; i < size; i++) {
        uint8_t c = cn_html_lower(text[i]);
        while (found && c != cn_html_lower((uint8_t)simple->value[found]))
            found = simple->borders[found - 1];
        found += c == cn_html_lower((uint8_t)simple->value[found]);
        if (found == simple->value_size)
            return true;
    }
    return false;
}

static const struct cn_html_attribute *find_attribute(struct cn_html_element *element,
                                                      const char *name, size_t size)
{
    const struct cn_html_token *tag = element->tag;
    if (!spend(element, 1 + tag->attribute_count))
        return NULL;
    for (size_t i = 0; i < tag->attribute_count; i++)
        if (cn_html_equal_nocase(tag->attributes[i].name, name, size))
            return &tag->attributes[i];
    return NULL;
}

static bool equal(const uint8_t *a, const char *b, size_t size, bool ignore_case)
{
    if (!ignore_case)
        return memcmp(a, b, size) == 0;
    return cn_html_equal_nocase((struct cn_html_span){a, size}, b, size);
}

static bool attribute_matches(const struct simple *simple, struct cn_html_element *element)
{
    const struct cn_html_attribute *attribute =
        find_attribute(element, simple->name, simple->name_size);
    if (!attribute || !spend(element, attribute->value.size))
        return false;
    if (!simple->comparison)
        return true;
    const uint8_t *at = attribute->value.at;
    size_t size = attribute->value.size;
    const char *want = simple->value;
    size_t want_size = simple->value_size;
    if (simple->comparison == '=')
        return size == want_size && (!size || equal(at, want, size, simple->ignore_case));
    if (want_size == 0 || size < want_size)
        return false;
    bool nocase = simple->ignore_case;
    switch (simple->comparison) {
    case '^':
        return equal(at, want, want_size, nocase);
    case '$':
        return equal(at + size - want_size, want, want_size, nocase);
    case '|':
        return equal(at, want, want_size, nocase) && (size == want_size || at[want_size] == '-');
    case '*':
        return nocase ? contains_nocase(simple, at, size)
                      : memmem(at, size, want, want_size) != NULL;
    default: /* '~': a word of the list */
        for (size_t i = 0; i < size;) {
            while (i < size && cn_html_is_space(at[i]))
                i++;
            size_t begin = i;
            while (i < size && !cn_html_is_space(at[i]))
                i++;
            if (i - begin == want_size && equal(at + begin, want, want_size, nocase))
                return true;
        }
        return false;
    }
}

static bool nth_matches(const struct simple *simple, uint32_t index)
{
    int64_t distance = (int64_t)index - simple->offset;
    if (simple->step == 0)
        return distance == 0;
    return distance % simple->step == 0 && distance / simple->step >= 0;
}

static bool simple_matches(const struct simple *simple, struct cn_html_element *element)
{
    switch (simple->kind) {
    case SIMPLE_TYPE:
        return simple->name_hash == element->tag->name_hash;
    case SIMPLE_ATTRIBUTE:
        return attribute_matches(simple, element);
    case SIMPLE_NTH_CHILD:
        return nth_matches(simple, element->child_index);
    case SIMPLE_NTH_OF_TYPE:
        return nth_matches(simple, element->type_index);
    case SIMPLE_NOT:
        break;
    }
    bool all = true;
    for (size_t i = 0; i < simple->inside_count; i++) {
        all = all && simple_matches(&simple->inside[i], element);
        if (simple->inside[i].ends) {
            if (all)
                return false;
            all = true;
        }
    }
    return true;
}

static bool has_bit(const uint64_t *set, size_t bit)
{
    return set && (set[bit / 64] >> (bit % 64) & 1);
}

void cn_html_selectors_match(const struct cn_html_selectors *set, struct cn_html_element *element,
                             const uint64_t *parent_matched, const uint64_t *parent_inherited,
                             uint64_t *matched)
{
    memset(matched, 0, cn_html_selectors_words(set) * sizeof(*matched));
    for (size_t i = 0; i < set->count; i++) {
        const struct cn_html_compound *compound = &set->compounds[i];
        if (!spend(element, 1 + compound->count))
            return;
        if (compound->previous >= 0 && !has_bit(compound->child ? parent_matched : parent_inherited,
                                                (size_t)compound->previous))
            continue;
        bool all = true;
        for (size_t k = 0; all && k < compound->count; k++)
            all = simple_matches(&compound->simples[k], element);
        if (all)
            matched[i / 64] |= 1ull << (i % 64);
    }
}

int cn_html_selectors_handler(const struct cn_html_selectors *set, size_t compound)
{
    CN_ASSERT(compound < set->count);
    return set->compounds[compound].handler;
}
