/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors on documents that stream by: which elements match, by sets of compounds alone; what is
 * refused, with which sentence; bounds. */
#include "html/selector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"
#include "test/lib/test.h"

#define DEPTH_MAX 16
#define WORDS_MAX 64

struct level {
    uint64_t matched[WORDS_MAX], inherited[WORDS_MAX];
    uint32_t children;
    uint64_t names[32]; /* of the children so far */
};

/* The ids (attribute "i") of the elements that `handler` gets, in order. */
static const char *matches_of(const struct cn_html_selectors *set, const char *html, int handler)
{
    static char found[512];
    static struct level levels[DEPTH_MAX];
    struct cn_html_tokenizer tokenizer = {0};
    struct cn_html_token token;
    size_t depth = 0, words = cn_html_selectors_words(set);
    CHECK(words <= WORDS_MAX);
    memset(levels, 0, sizeof(levels));
    found[0] = 0;
    for (size_t size = strlen(html); size > 0; size -= token.raw.size, html += token.raw.size) {
        CHECK(cn_html_tokenizer_next(&tokenizer, (const uint8_t *)html, size, true, &token));
        if (token.type == CN_HTML_TOKEN_END)
            depth--;
        if (token.type != CN_HTML_TOKEN_START)
            continue;
        struct level *parent = &levels[depth], *level = &levels[depth + 1];
        struct cn_html_element element = {
            .tag = &token, .child_index = parent->children + 1, .work_left = 1 << 20};
        parent->names[parent->children++] = token.name_hash;
        for (uint32_t i = 0; i < parent->children; i++)
            element.type_index += parent->names[i] == token.name_hash;
        memset(level, 0, sizeof(*level));
        memset(level->matched, 0xff, sizeof(level->matched)); /* match() clears what it fills */
        cn_html_selectors_match(set, &element, depth ? parent->matched : NULL,
                                depth ? parent->inherited : NULL, level->matched);
        for (size_t i = 0; i < words; i++)
            level->inherited[i] = level->matched[i] | parent->inherited[i];
        bool hit = false;
        for (size_t i = 0; i < set->count; i++)
            hit = hit || ((level->matched[i / 64] >> (i % 64) & 1) &&
                          cn_html_selectors_handler(set, i) == handler);
        for (size_t i = 0; hit && i < token.attribute_count; i++)
            if (cn_html_equal_nocase(token.attributes[i].name, "i", 1))
                snprintf(found + strlen(found), sizeof(found) - strlen(found), "%.*s",
                         (int)token.attributes[i].value.size, token.attributes[i].value.at);
        depth += !token.self_closing;
        CHECK(depth < DEPTH_MAX - 1);
    }
    cn_html_tokenizer_fini(&tokenizer);
    return found;
}

/* Memory that ends where the text does. */
static int add(struct cn_html_selectors *set, const char *text, size_t size, unsigned handler,
               struct cn_err *err)
{
    char *exact = malloc(size ? size : 1);
    memcpy(exact, text, size);
    int rc = cn_html_selectors_add(set, exact, size, handler, err);
    free(exact);
    return rc;
}

static void check(const char *selector, const char *html, const char *want)
{
    struct cn_html_selectors set = {0};
    struct cn_err err = {0};
    if (add(&set, selector, strlen(selector), 3, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s: %s", selector, err.text);
    const char *got = matches_of(&set, html, 3);
    if (strcmp(want, got) != 0)
        test_fail(__FILE__, __LINE__, "%s: want %s, got %s", selector, want, got);
    cn_html_selectors_fini(&set);
    CHECK(!set.compounds && !set.count);
}

static void check_refused(const char *selector, const char *sentence)
{
    struct cn_html_selectors set = {0};
    struct cn_err err = {0};
    CHECK_INT(0, cn_html_selectors_add(&set, "b c", 3, 0, &err));
    int rc = add(&set, selector, strlen(selector), 1, &err);
    if (rc != CN_EINVALID || strcmp(err.text, sentence) != 0)
        test_fail(__FILE__, __LINE__, "%s: %d %s", selector, rc, err.text);
    CHECK_INT(2, set.count); /* what was there before stays, nothing else */
    cn_html_selectors_fini(&set);
}

static const char tree[] =
    "<DIV i=a id=x class='one two'><p i=b></p><span i=c class=two-three><p i=d lang=en-GB></p>"
    "<b i=e><p i=f data-v='a b'></p></b></span><p i=g class=ONE></p></DIV><p i=h id=X></p>";

TEST(html_selector, types_classes_ids_and_all)
{
    check("p", tree, "bdfgh");
    check("P", tree, "bdfgh");
    check("div", tree, "a");
    check("*", tree, "abcdefgh");
    check("#x", tree, "a");
    check(".one", tree, "a");
    check(".two", tree, "a");
    check(".ONE", tree, "g");
    check("p.ONE", tree, "g");
    check("*|p", tree, "bdfgh");
    check("div#x.one.two", tree, "a");
    check("div#x.one.three", tree, "");
    check(" p , span ", tree, "bcdfgh");
    check("#\\78", tree, "a");
    check("#\\000078 ", tree, "a");
    check("\\70", tree, "bdfgh");
}

TEST(html_selector, attributes_by_every_comparison)
{
    check("[id]", tree, "ah");
    check("[ID=x]", tree, "a");
    check("[id=x i]", tree, "ah");
    check("[id=X s]", tree, "h");
    check("[class~=one]", tree, "a");
    check("[class~='one two']", tree, "");
    check("[class^=two]", tree, "c");
    check("[class$=two]", tree, "a");
    check("[class*='e t']", tree, "a");
    check("[class*=E i]", tree, "acg");
    check("[lang|=en]", tree, "d");
    check("[lang|=e]", tree, "");
    check("[lang|='en-GB']", tree, "d");
    check("[class^='']", tree, "");
    check("[class*='']", tree, "");
    check("[data-v='a b']", tree, "f");
    check("[data-v=\"a\\20 b\"]", tree, "f");
    check("[data-v='a b", tree, "f"); /* the end closes what is open */
    check("[ data-v ]", tree, "f");
    check("[*|lang]", tree, "d");
    check("p[i=b]", "<p i=b x></p><p x i=b></p>", "bb");
    check("[a='']", "<p i=a a></p><p i=b a=''></p><p i=c a=1></p>", "ab");
}

TEST(html_selector, combinators)
{
    check("div p", tree, "bdfg");
    check("div > p", tree, "bg");
    check("div>p", tree, "bg");
    check("div span p", tree, "df");
    check("div > span p", tree, "df");
    check("div span > p", tree, "d");
    check("div b > p", tree, "f");
    check("span > b > p", tree, "f");
    check("div > b", tree, "");
    check("p p", tree, "");
    check("* > *", tree, "bcdefg");
    /* The nearest ancestor that fits need not be the one that leads on. */
    check("a > b c", "<a i=1><b i=2><b i=3><c i=4></c></b></b></a>", "4");
    check("a > b > c", "<a i=1><b i=2><b i=3><c i=4></c></b></b></a>", "");
}

TEST(html_selector, places_among_siblings)
{
    static const char list[] = "<u i=0><a i=1></a><b i=2></b><a i=3></a><a i=4></a><b i=5></b></u>";
    check("u > :first-child", list, "1");
    check("u > b:first-child", list, "");
    check("u > b:first-of-type", list, "2");
    check("u > a:nth-of-type(2)", list, "3");
    check("u > :nth-child(odd)", list, "135");
    check("u > :nth-child(EVEN)", list, "24");
    check("u > :nth-child(3)", list, "3");
    check("u > :nth-child(+3)", list, "3");
    check("u > :nth-child(2n+1)", list, "135");
    check("u > :nth-child(-n+2)", list, "12");
    check("u > :nth-child( 3n - 1 )", list, "25");
    check("u > :nth-child(n+4)", list, "45");
    check("u > :nth-child(0n+2)", list, "2");
    check("u > :nth-child(-2n)", list, "");
    check("u > :nth-child(0)", list, "");
    check("u > :nth-child(-1)", list, "");
    check("u > :nth-child(999999999n+1)", list, "1");
    check("u > :nth-child(n-999999999)", list, "12345");
}

TEST(html_selector, negation_of_compounds)
{
    check(":not(p)", tree, "ace");
    check("p:not(.ONE)", tree, "bdfh");
    check("p:not([lang], #X)", tree, "bfg");
    check(":not(p.ONE)", tree, "abcdefh");
    check("div :not(p)", tree, "ce");
    check("p:not(:first-child)", tree, "gh");
    check(":not(*)", tree, "");
}

TEST(html_selector, what_is_no_selector_is_refused_with_a_sentence_and_leaves_nothing)
{
    static const char *const empty = "The selector is empty.";
    static const char *const token = "Unexpected token in selector.";
    static const char *const end = "Unexpected end of selector.";
    static const char *const dangling = "Dangling combinator in selector.";
    static const char *const pseudo = "Unsupported pseudo-class or pseudo-element in selector.";
    static const char *const spaces = "Selectors with explicit namespaces are not supported.";
    static const char *const inside = "Unexpected token in the attribute selector.";
    check_refused("", empty);
    check_refused("  ", empty);
    check_refused("a,", empty);
    check_refused(",a", empty);
    check_refused("> a", empty);
    check_refused("a >", dangling);
    check_refused("a > > b", dangling);
    check_refused("a,b >,c", dangling);
    check_refused("a + b", "Unsupported combinator `+` in selector.");
    check_refused("a ~ b", "Unsupported combinator `~` in selector.");
    check_refused(".", end);
    check_refused(".1", token);
    check_refused("a.", end);
    check_refused("5", token);
    check_refused("-5", token);
    check_refused("a{", token);
    check_refused("\\", token);
    check_refused("a\\", token);
    check_refused("-", token);
    check_refused("*|\\", token);
    check_refused("a:hover", pseudo);
    check_refused("a::before", pseudo);
    check_refused("a:first-child()", pseudo);
    check_refused("a:nth-child", pseudo);
    check_refused(":not(:not(a))", pseudo);
    check_refused(":not(a b)", pseudo);
    check_refused(":not()", token);
    check_refused(":not(a,)", token);
    check_refused(":nth-child()", token);
    check_refused(":nth-child(x)", token);
    check_refused(":nth-child(2n+)", token);
    check_refused(":nth-child(1234567890)", token);
    check_refused(":nth-child(2 n)", token);
    check_refused("svg|a", spaces);
    check_refused("|a", spaces);
    check_refused("[svg|a]", spaces);
    check_refused("[a!=b]", inside);
    check_refused("[a=b c]", inside);
    check_refused("[a=5]", inside);
    check_refused("[a='b\nc']", inside);
    check_refused("[a=", end);
    check_refused("[", end);
    check_refused("[=b]", token);
}

TEST(html_selector, a_nul_is_no_comparison)
{
    struct cn_html_selectors set = {0};
    struct cn_err err = {0};
    CHECK_INT(CN_EINVALID, add(&set, "[a\0=b]", 6, 0, &err));
    CHECK_INT(CN_EINVALID, add(&set, "a\0b", 3, 0, &err));
    CHECK_INT(0, set.count);
    cn_html_selectors_fini(&set);
}

TEST(html_selector, handlers_of_many_selectors_are_told_apart_past_a_word)
{
    struct cn_html_selectors set = {0};
    struct cn_err err = {0};
    char text[32];
    for (unsigned i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "b%u, div a%u", i, i);
        CHECK_INT(0, cn_html_selectors_add(&set, text, strlen(text), i, &err));
    }
    CHECK_INT(600, set.count);
    CHECK_INT(10, cn_html_selectors_words(&set));
    for (unsigned i = 0; i < 200; i += 37) {
        char html[128];
        snprintf(html, sizeof(html), "<div i=1><p i=2><a%u i=3></a%u></p></div><b%u i=4></b%u>", i,
                 i, i, i);
        CHECK_STR("34", matches_of(&set, html, (int)i));
        CHECK_STR("", matches_of(&set, html, (int)i + 1));
    }
    cn_html_selectors_fini(&set);
}

TEST(html_selector, a_set_has_a_bound)
{
    struct cn_html_selectors set = {0};
    struct cn_err err = {0};
    for (unsigned i = 0; i < CN_HTML_COMPOUND_MAX; i++)
        CHECK_INT(0, cn_html_selectors_add(&set, "a", 1, i, &err));
    CHECK_INT(CN_ELIMIT, cn_html_selectors_add(&set, "a", 1, 0, &err));
    CHECK_INT(CN_HTML_COMPOUND_MAX, set.count);
    cn_html_selectors_fini(&set);
}

TEST(html_selector, type_indexes_are_asked_for_only_if_somebody_uses_them)
{
    struct cn_html_selectors set = {0};
    struct cn_err err = {0};
    CHECK_INT(0, cn_html_selectors_add(&set, "a:nth-child(2)", 14, 0, &err));
    CHECK(!set.uses_type_index);
    CHECK_INT(0, cn_html_selectors_add(&set, "a:not(:first-of-type)", 21, 0, &err));
    CHECK(set.uses_type_index);
    cn_html_selectors_fini(&set);
}

/* Whatever the text: refused with a sentence or matched, and nothing is left or read past it. */
TEST(html_selector, any_text_is_a_selector_or_refused)
{
    static const char *const parts[] = {
        "a",    "*",     ".",           "#",  "[",    "]", "=",  "'",
        "\"",   ":",     "(",           ")",  ",",    ">", " ",  "\\",
        "|",    "-",     "5",           "n",  "+",    "~", "^=", "not",
        "odd",  ":not(", ":nth-child(", "\n", "\xe9", "$", "i",  ":first-child",
        "[a=b", "\\41 "};
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (int round = 0; round < 20000; round++) {
        struct cn_html_selectors set = {0};
        struct cn_err err = {0};
        char text[128] = "";
        for (uint64_t i = 0, count = cn_rand_below(&rand, 9); i < count; i++)
            strncat(text, parts[cn_rand_below(&rand, CN_ARRAY_COUNT(parts))], 14);
        int rc = add(&set, text, strlen(text), 0, &err);
        CHECK(rc == 0 ? set.count > 0 : rc == CN_EINVALID && err.text[0] && set.count == 0);
        if (rc == 0)
            matches_of(&set, tree, 0);
        cn_html_selectors_fini(&set);
    }
}
