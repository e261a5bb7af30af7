/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML rewriter without JavaScript: what passes untouched, where tokens end whatever the
 * chunks, what changes look like. The platform's behaviour is in
 * test/conformance/web/html-rewriter.test.js. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "html/rewriter.h"
#include "test/lib/test.h"

/* Runs `html` through a rewriter in pieces of `step` bytes; `act` is called for each event. */
static char *rewrite(const char *html, size_t step, const char *selector, unsigned wants,
                     void (*act)(struct cn_html_rewriter *rewriter, int event, void *data),
                     void *data)
{
    struct cn_html_rewriter rewriter;
    struct cn_err err = {0};
    cn_html_rewriter_init(&rewriter);
    CHECK_INT(
        0, cn_html_rewriter_on(&rewriter, selector, selector ? strlen(selector) : 0, wants, &err));
    size_t size = strlen(html);
    for (size_t at = 0; at <= size; at += step) {
        uint32_t handler;
        int event;
        if (at < size)
            cn_html_rewriter_feed(&rewriter, html + at, size - at < step ? size - at : step);
        if (at + step > size)
            cn_html_rewriter_finish(&rewriter);
        while ((event = cn_html_rewriter_next(&rewriter, &handler, &err)) > CN_HTML_NEED_INPUT)
            if (act)
                act(&rewriter, event, data);
        CHECK(event >= 0);
    }
    char *result =
        cn_strndup(rewriter.output.data ? (char *)rewriter.output.data : "", rewriter.output.size);
    cn_html_rewriter_fini(&rewriter);
    return result;
}

static const char page[] =
    "<!DOCTYPE html><HTML lang=en><head><title>a <b> &amp; c</title><style>p>a{}</style>"
    "<script>if (a<b && c>d) x = '<\\/p>'; <!-- <script> </script> --></script></head>"
    "<body class='x y'  data-a=\"1>2\" ><!-- c -- > --><p>one<br/>two<P >three</p >"
    "<svg viewBox=0><![CDATA[<p>]]><path d=''/></svg>\xe2\x82\xac < 5 <> </> </ bogus><?pi?>"
    "<textarea><p></textarea ><a b='";

TEST(html_rewriter, passes_untouched_bytes_whatever_the_chunks)
{
    for (size_t step = 1; step <= sizeof(page); step++) {
        char *got = rewrite(page, step, "nothing", CN_HTML_WANTS_ELEMENT, NULL, NULL);
        CHECK_STR(page, got);
        cn_free(got);
        got = rewrite(page, step, "*",
                      CN_HTML_WANTS_ELEMENT | CN_HTML_WANTS_TEXT | CN_HTML_WANTS_COMMENTS, NULL,
                      NULL);
        CHECK_STR(page, got);
        cn_free(got);
    }
}

static void mark(struct cn_html_rewriter *rewriter, int event, void *data)
{
    (void)data;
    if (event != CN_HTML_ELEMENT)
        return;
    cn_html_insert(rewriter, CN_HTML_BEFORE, "[", 1, true);
    cn_html_insert(rewriter, CN_HTML_APPEND, "+", 1, true);
    cn_html_insert(rewriter, CN_HTML_AFTER, "]", 1, true);
    CHECK_INT(0, cn_html_attribute_set(rewriter, "k", 1, "v", 1, NULL));
}

TEST(html_rewriter, changes_are_the_same_whatever_the_chunks)
{
    char *whole =
        rewrite(page, sizeof(page), "p, title, body, path", CN_HTML_WANTS_ELEMENT, mark, NULL);
    CHECK(strstr(whole, "[<title k=\"v\">a <b> &amp; c+</title>]"));
    CHECK(strstr(whole, "[<path d='' k=\"v\" />]"));
    CHECK(strstr(whole, "[<body class='x y' data-a=\"1>2\" k=\"v\">"));
    for (size_t step = 1; step < sizeof(page); step++) {
        char *got = rewrite(page, step, "p, title, body, path", CN_HTML_WANTS_ELEMENT, mark, NULL);
        CHECK_STR(whole, got);
        cn_free(got);
    }
    cn_free(whole);
}

static void gather(struct cn_html_rewriter *rewriter, int event, void *data)
{
    struct cn_buf *out = data;
    if (event != CN_HTML_TEXT)
        return;
    struct cn_html_span text = cn_html_text(rewriter);
    cn_buf_append(out, text.at, text.size);
    if (rewriter->text_ended)
        cn_buf_append_byte(out, '|');
}

TEST(html_rewriter, text_nodes_end_once_and_keep_characters_whole)
{
    for (size_t step = 1; step < 30; step++) {
        struct cn_buf out = {0};
        char *got = rewrite("<p>a\xe2\x82\xac<b>b</b> < c</p>d", step, "p", CN_HTML_WANTS_TEXT,
                            gather, &out);
        CHECK_STR("a\xe2\x82\xac|b| < c|", cn_buf_text(&out));
        cn_free(got);
        cn_buf_fini(&out);
    }
}

static void drop(struct cn_html_rewriter *rewriter, int event, void *data)
{
    (void)data;
    if (event == CN_HTML_ELEMENT)
        cn_html_remove(rewriter, false);
}

TEST(html_rewriter, removes_nested_elements)
{
    char *got = rewrite("a<p>b<p>c</p>d</p>e<p>f", 3, "p", CN_HTML_WANTS_ELEMENT, drop, NULL);
    CHECK_STR("ae", got);
    cn_free(got);
}

TEST(html_rewriter, stray_end_tags_do_not_walk_the_stack)
{
    /* 20,000 open elements and as many end tags without one: linear, or this takes minutes. */
    struct cn_buf html = {0};
    for (int i = 0; i < 20000; i++)
        cn_buf_append_str(&html, "<p>");
    for (int i = 0; i < 20000; i++)
        cn_buf_append_str(&html, "</q>");
    char *got = rewrite(cn_buf_text(&html), 65536, "b", CN_HTML_WANTS_ELEMENT, NULL, NULL);
    CHECK_STR((char *)html.data, got);
    cn_free(got);
    cn_buf_fini(&html);
}

TEST(html_rewriter, refuses_endless_nesting_and_tokens)
{
    struct cn_html_rewriter rewriter;
    struct cn_err err = {0};
    uint32_t handler;
    cn_html_rewriter_init(&rewriter);
    int event = CN_HTML_NEED_INPUT;
    for (int i = 0; i <= CN_HTML_DEPTH_MAX && event >= 0; i++) {
        cn_html_rewriter_feed(&rewriter, "<p>", 3);
        event = cn_html_rewriter_next(&rewriter, &handler, &err);
    }
    CHECK_INT(CN_ELIMIT, event);
    cn_html_rewriter_fini(&rewriter);

    cn_html_rewriter_init(&rewriter);
    char *chunk = cn_alloc_zero(1 << 20);
    memset(chunk, 'a', 1 << 20);
    cn_html_rewriter_feed(&rewriter, "<p x='", 6);
    for (int i = 0; i <= CN_HTML_TOKEN_MAX >> 20; i++) {
        event = cn_html_rewriter_next(&rewriter, &handler, &err);
        if (event < 0)
            break;
        cn_html_rewriter_feed(&rewriter, chunk, 1 << 20);
    }
    event = cn_html_rewriter_next(&rewriter, &handler, &err);
    CHECK_INT(CN_ELIMIT, event);
    cn_free(chunk);
    cn_html_rewriter_fini(&rewriter);
}

TEST(html_selectors, limit_their_number)
{
    struct cn_html_selectors set = {0};
    struct cn_err err;
    int rc = 0, added = 0;
    while (rc == 0 && added < CN_HTML_COMPOUND_MAX + 10) {
        rc = cn_html_selectors_add(&set, "a b", 3, 0, &err);
        added++;
    }
    CHECK_INT(CN_ELIMIT, rc);
    CHECK_INT(CN_HTML_COMPOUND_MAX, set.count);
    cn_html_selectors_fini(&set);
}

TEST(html_selectors, limit_their_conditions)
{
    struct cn_html_selectors set = {0};
    struct cn_err err;
    struct cn_buf text = {0};
    for (size_t i = 0; i < CN_HTML_SIMPLE_MAX; i++)
        cn_buf_append_str(&text, ".a");
    CHECK_INT(0, cn_html_selectors_add(&set, cn_buf_text(&text), text.size, 0, &err));
    CHECK_INT(CN_ELIMIT, cn_html_selectors_add(&set, "a.b", 3, 0, &err));
    cn_html_selectors_fini(&set);
    cn_buf_fini(&text);
}

/* R4: the steps that a document of `count` times what `make` appends took, in pieces of `step`. */
static uint64_t work(const char *selector, void (*make)(struct cn_buf *out, int index, int count),
                     int count, size_t step)
{
    struct cn_html_rewriter rewriter;
    struct cn_buf html = {0};
    uint32_t handler;
    int event;
    for (int i = 0; i < count; i++)
        make(&html, i, count);
    cn_html_rewriter_init(&rewriter);
    CHECK_INT(0,
              cn_html_rewriter_on(&rewriter, selector, strlen(selector), CN_HTML_WANTS_TEXT, NULL));
    for (size_t at = 0; at < html.size; at += step) {
        cn_html_rewriter_feed(&rewriter, html.data + at,
                              html.size - at < step ? html.size - at : step);
        while ((event = cn_html_rewriter_next(&rewriter, &handler, NULL)) != CN_HTML_NEED_INPUT)
            CHECK_INT(CN_HTML_PAUSE, event);
    }
    cn_html_rewriter_finish(&rewriter);
    while ((event = cn_html_rewriter_next(&rewriter, &handler, NULL)) != CN_HTML_DONE)
        CHECK_INT(CN_HTML_PAUSE, event);
    CHECK_INT(html.size, rewriter.output.size);
    uint64_t result = rewriter.work;
    cn_html_rewriter_fini(&rewriter);
    cn_buf_fini(&html);
    return result;
}

static void add_names(struct cn_buf *out, int index, int count)
{
    (void)count;
    cn_buf_printf(out, "<x%d></x%d>", index, index);
}

/* Whatever the hash is, some of the names that are closed share it with the one that is open. */
static void add_depth(struct cn_buf *out, int index, int count)
{
    if (index < count / 2)
        cn_buf_append_str(out, "<b>");
    else
        cn_buf_printf(out, "</x%d>", index);
}

static void add_quoted(struct cn_buf *out, int index, int count)
{
    cn_buf_append_str(out, index == 0 ? "<a x='" : index == count - 1 ? "'>" : "> > > > > ");
}

static void add_values(struct cn_buf *out, int index, int count)
{
    cn_buf_append_str(out, index == 0 ? "<a " : index == count - 1 ? ">" : "x='>' y=\">\" ");
}

static void add_comment(struct cn_buf *out, int index, int count)
{
    cn_buf_append_str(out, index == 0 ? "<!--" : index == count - 1 ? "-->" : "-> -> -> ");
}

TEST(html_rewriter, work_grows_with_the_document)
{
    static const struct {
        const char *selector;
        void (*make)(struct cn_buf *out, int index, int count);
        size_t step;
    } documents[] = {
        {"nothing:nth-of-type(2)", add_names, 65536},
        {"nothing", add_depth, 65536},
        {"nothing", add_quoted, 1000},
        {"nothing", add_values, 1000},
        {"nothing", add_comment, 1000},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(documents); i++) {
        uint64_t one = work(documents[i].selector, documents[i].make, 40000, documents[i].step);
        uint64_t four = work(documents[i].selector, documents[i].make, 160000, documents[i].step);
        CHECK(four < 10 * one); /* with its square: 16 */
    }
}

TEST(html_rewriter, asks_its_owner_when_it_has_worked_for_long)
{
    struct cn_html_rewriter rewriter;
    struct cn_buf html = {0};
    struct cn_err err;
    uint32_t handler;
    for (int i = 0; i < 2000000; i++)
        cn_buf_append_str(&html, "<p>a</p>");
    cn_html_rewriter_init(&rewriter);
    CHECK_INT(0, cn_html_rewriter_on(&rewriter, "b", 1, CN_HTML_WANTS_ELEMENT, NULL));
    cn_html_rewriter_feed(&rewriter, html.data, html.size);
    unsigned pauses = 0;
    for (int event;
         (event = cn_html_rewriter_next(&rewriter, &handler, &err)) != CN_HTML_NEED_INPUT; pauses++)
        CHECK_INT(CN_HTML_PAUSE, event);
    CHECK(pauses > 4);
    CHECK_INT(html.size, rewriter.output.size);
    cn_html_rewriter_fini(&rewriter);

    /* What one tag takes has an end, too. */
    cn_html_rewriter_init(&rewriter);
    for (int i = 0; i < 2000; i++)
        CHECK_INT(0, cn_html_rewriter_on(&rewriter, "[x~=b]", 6, CN_HTML_WANTS_ELEMENT, NULL));
    cn_buf_clear(&html);
    cn_buf_append_str(&html, "<p x='");
    for (int i = 0; i < 500000; i++)
        cn_buf_append_str(&html, "a ");
    cn_buf_append_str(&html, "'>");
    cn_html_rewriter_feed(&rewriter, html.data, html.size);
    int event;
    while ((event = cn_html_rewriter_next(&rewriter, &handler, &err)) == CN_HTML_PAUSE)
        ;
    CHECK_INT(CN_ELIMIT, event); /* 2000 times 1 MB */
    cn_html_rewriter_fini(&rewriter);
    cn_buf_fini(&html);
}

static void surround(struct cn_html_rewriter *rewriter, int event, void *data)
{
    (void)data;
    if (event != CN_HTML_ELEMENT)
        return;
    static const char *const texts[] = {"1a", "2b", "3c"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(texts); i++) {
        cn_html_insert(rewriter, CN_HTML_BEFORE, texts[i], 2, true);
        cn_html_insert(rewriter, CN_HTML_AFTER, texts[i], 2, true);
        cn_html_insert(rewriter, CN_HTML_PREPEND, texts[i], 2, true);
        cn_html_insert(rewriter, CN_HTML_APPEND, texts[i], 2, true);
    }
}

TEST(html_rewriter, what_is_put_in_front_later_comes_first)
{
    char *got = rewrite("<p>x</p><br>", 3, "p, br", CN_HTML_WANTS_ELEMENT, surround, NULL);
    CHECK_STR("1a2b3c<p>3c2b1ax1a2b3c</p>3c2b1a1a2b3c<br>3c2b1a", got);
    cn_free(got);
}

TEST(html_selectors, find_a_part_of_a_value_in_any_case)
{
    static const struct {
        const char *selector, *html;
        bool matches;
    } cases[] = {
        {"[x*=aab i]", "<p x=AaAaB>", true},     {"[x*=aab]", "<p x=AaAaB>", false},
        {"[x*=aab]", "<p x=aaaab>", true},       {"[x*=abab i]", "<p x=aBaCababA>", true},
        {"[x*=ababc i]", "<p x=ABABABC>", true}, {"[x*=ababc i]", "<p x=ABABAB>", false},
        {"[x*='' i]", "<p x=a>", false},         {"[x*=a i]", "<p x=A>", true},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(cases); i++) {
        char *got =
            rewrite(cases[i].html, 100, cases[i].selector, CN_HTML_WANTS_ELEMENT, drop, NULL);
        CHECK_STR(cases[i].matches ? "" : cases[i].html, got);
        cn_free(got);
    }
}
