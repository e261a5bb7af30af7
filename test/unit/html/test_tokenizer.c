/* SPDX-License-Identifier: Apache-2.0 */
/* Where tokens of HTML begin and end, by the standard's rules: every byte once and in order (T1),
 * wherever the chunks are cut (T2). */
#include "html/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/rand.h"
#include "test/lib/test.h"

static void show(struct cn_buf *out, struct cn_html_span span)
{
    cn_buf_append(out, span.at ? (const char *)span.at : "?", span.at ? span.size : 1);
}

/* "start:p(a=1)(b=?)/": one piece of what a document is. Neighbouring texts are one. */
static void note(struct cn_buf *out, const struct cn_html_token *token, bool *in_text)
{
    static const char *const names[] = {"", "text", "start", "end", "comment", "doctype", "other"};
    bool is_text = token->type == CN_HTML_TOKEN_TEXT;
    if (!is_text || !*in_text)
        cn_buf_printf(out, "%s%s:", out->size ? " | " : "", names[token->type]);
    *in_text = is_text;
    if (is_text || token->type == CN_HTML_TOKEN_OTHER)
        show(out, token->raw);
    else if (token->type == CN_HTML_TOKEN_COMMENT)
        show(out, token->text);
    else
        show(out, token->name);
    if (token->type == CN_HTML_TOKEN_DOCTYPE) {
        cn_buf_append_str(out, ",");
        show(out, token->public_id);
        cn_buf_append_str(out, ",");
        show(out, token->system_id);
    }
    if (token->type != CN_HTML_TOKEN_START && token->type != CN_HTML_TOKEN_END)
        return;
    for (size_t i = 0; i < token->attribute_count; i++) {
        const struct cn_html_attribute *attribute = &token->attributes[i];
        CHECK(attribute->raw.at == attribute->name.at);
        CHECK(attribute->raw.size >= attribute->name.size);
        cn_buf_append_str(out, "(");
        show(out, attribute->name);
        cn_buf_append_str(out, "=");
        show(out, attribute->value);
        cn_buf_append_str(out, ")");
    }
    cn_buf_append_str(out, token->self_closing ? "/" : "");
    CHECK(token->name_hash == cn_html_hash(token->name.at, token->name.size));
}

/* What the tree builder would say. */
static void set_content(struct cn_html_tokenizer *tokenizer, const struct cn_html_token *token)
{
    if (token->type != CN_HTML_TOKEN_START)
        return;
    if (token->name_hash == CN_HTML_NAME("script"))
        cn_html_tokenizer_set_content(tokenizer, CN_HTML_SCRIPT, token->name_hash);
    else if (token->name_hash == CN_HTML_NAME("style") || token->name_hash == CN_HTML_NAME("title"))
        cn_html_tokenizer_set_content(tokenizer, CN_HTML_RAW_TEXT, token->name_hash);
    else if (token->name_hash == CN_HTML_LONG_NAME("plaintext"))
        cn_html_tokenizer_set_content(tokenizer, CN_HTML_PLAIN_TEXT, 0);
    else if (token->name_hash == CN_HTML_NAME("svg"))
        tokenizer->foreign = true;
}

/* All tokens, given the bytes in pieces of `step`. Each call sees memory that ends where its bytes
 * do. The caller frees. */
static char *tokens(const char *html, size_t size, size_t step)
{
    struct cn_html_tokenizer tokenizer = {0};
    struct cn_html_token token = {0};
    struct cn_buf out = {0};
    size_t at = 0, given = 0;
    bool in_text = false;
    while (at < size) {
        if (given < size)
            given = size - given < step ? size : given + step;
        bool last = given == size;
        for (enum cn_html_token_type type = CN_HTML_TOKEN_TEXT; type && at < given;) {
            uint8_t *exact = malloc(given - at);
            memcpy(exact, html + at, given - at);
            type = cn_html_tokenizer_next(&tokenizer, exact, given - at, last, &token);
            CHECK_INT(type, token.type);
            if (type) {
                CHECK(token.raw.at == exact && token.raw.size > 0 && token.raw.size <= given - at);
                note(&out, &token, &in_text); /* T1 */
                set_content(&tokenizer, &token);
                at += token.raw.size;
            } else {
                CHECK(!last); /* nothing is held back at the end */
            }
            free(exact);
        }
    }
    cn_html_tokenizer_fini(&tokenizer);
    for (size_t i = 0; i < out.size; i++)
        if (!out.data[i])
            out.data[i] = '@';
    return cn_buf_text(&out);
}

static void check(const char *html, const char *want)
{
    for (size_t step = 1; step <= strlen(html); step++) {
        char *got = tokens(html, strlen(html), step);
        if (strcmp(want, got) != 0)
            test_fail(__FILE__, __LINE__, "%s by %zu: want <%s>, got <%s>", html, step, want, got);
        cn_free(got);
    }
}

TEST(html_tokenizer, tags_and_their_attributes)
{
    check("<p>", "start:p");
    check("</p>", "end:p");
    check("<BR/>", "start:BR/");
    check("<br / >", "start:br");
    check("<a b=c/>", "start:a(b=c/)");
    check("<a b = 'c>d' e=\"f\"g h>", "start:a(b=c>d)(e=f)(g=?)(h=?)");
    check("<a =b=c>", "start:a(=b=c)");
    check("<a b=>", "start:a(b=)");
    check("<a b=''/>", "start:a(b=)/");
    check("<a/b/c=1/>", "start:a(b=?)(c=1/)");
    check("<a\n\tb\f=\r1>", "start:a(b=1)");
    check("<a\"b'>", "start:a\"b'");
    check("<p<q>", "start:p<q");
    check("</p a=1/>", "end:p(a=1/)");
    check("<a b=\"<!--\">", "start:a(b=<!--)");
}

TEST(html_tokenizer, what_is_no_tag_is_text)
{
    check("a < b", "text:a < b");
    check("<", "text:<");
    check("</", "text:</");
    check("<>", "text:<>");
    check("<3<p>", "text:<3 | start:p");
    check("<<p>", "text:< | start:p");
    check("a<p>b</p>c", "text:a | start:p | text:b | end:p | text:c");
    check("</>", "other:</>");
    check("<p a='", "other:<p a='");
    check("x<p", "text:x | other:<p");
}

TEST(html_tokenizer, comments_true_and_bogus)
{
    check("<!---->", "comment:");
    check("<!-- a -- b -->c", "comment: a -- b  | text:c");
    check("<!-->a-->", "comment: | text:a-->");
    check("<!--->a", "comment: | text:a");
    check("<!--a--!>b", "comment:a | text:b");
    check("<!--a--!b-->", "comment:a--!b");
    check("<!--a", "comment:a");
    check("<!-", "comment:-");
    check("<!>", "comment:");
    check("<!x>", "comment:x");
    check("<?php ?>", "comment:?php ?");
    check("</ x>", "comment: x");
    check("</3>", "comment:3");
    check("<![CDATA[x]]>", "comment:[CDATA[x]]");
    check("<!----->", "comment:-");
}

TEST(html_tokenizer, doctypes)
{
    check("<!DOCTYPE html>", "doctype:html,?,?");
    check("<!doctype>", "doctype:?,?,?");
    check("<!DocType\nHTML PUBLIC \"-//x\" 'y'>", "doctype:HTML,-//x,y");
    check("<!DOCTYPE a SYSTEM \"b\">", "doctype:a,?,b");
    check("<!DOCTYPE a PUBLIC>", "doctype:a,?,?");
    check("<!DOCTYPE a PUBLIC \"b>c", "doctype:a,b,? | text:c");
    check("<!DOCTYPE a", "doctype:a,?,?");
    check("<!doctyp>", "comment:doctyp");
}

TEST(html_tokenizer, raw_text_ends_at_its_own_end_tag)
{
    check("<style>a</p><!--</style x>b", "start:style | text:a</p><!-- | end:style(x=?) | text:b");
    check("<title></titlex></title-></TITLE/>a",
          "start:title | text:</titlex></title-> | end:TITLE/ | text:a");
    check("<title>a</title", "start:title | text:a</title");
    check("<title>a<", "start:title | text:a<");
    check("<style></style><p>", "start:style | end:style | start:p");
    check("<plaintext>a</plaintext><p>", "start:plaintext | text:a</plaintext><p>");
}

TEST(html_tokenizer, a_script_hides_its_end_tag_as_the_standard_says)
{
    check("<script>a<b</script>c", "start:script | text:a<b | end:script | text:c");
    check("<script><!--</script>", "start:script | text:<!-- | end:script");
    check("<script><!--<script></script>--></script>x",
          "start:script | text:<!--<script></script>--> | end:script | text:x");
    check("<script><!--<script>--></script>x",
          "start:script | text:<!--<script>--> | end:script | text:x");
    check("<script><!--><script></script>x",
          "start:script | text:<!--><script> | end:script | text:x");
    check("<script><!--<scripty></script>x",
          "start:script | text:<!--<scripty> | end:script | text:x");
    check("<script><!--<script></script></script>x",
          "start:script | text:<!--<script></script> | end:script | text:x");
    check("<script></scriptx></script>", "start:script | text:</scriptx> | end:script");
    check("<script>a--></script>", "start:script | text:a--> | end:script");
}

TEST(html_tokenizer, sections_of_cdata_only_where_they_are_allowed)
{
    check("<svg><![CDATA[<p>]]]></svg>",
          "start:svg | other:<![CDATA[ | text:<p>] | other:]]> | end:svg");
    check("<svg><![CDATA[a]]", "start:svg | other:<![CDATA[ | text:a]]");
    check("<svg><![CDATA[]]>", "start:svg | other:<![CDATA[ | other:]]>");
    check("<svg><![CDAT>", "start:svg | comment:[CDAT");
}

/* T2 */
TEST(html_tokenizer, a_character_is_never_cut_unless_the_document_is)
{
    struct cn_html_tokenizer tokenizer = {0};
    struct cn_html_token token;
    static const char *const characters[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(characters); i++)
        for (size_t cut = 1; cut < strlen(characters[i]); cut++) {
            uint8_t bytes[8] = "ab";
            memcpy(bytes + 2, characters[i], cut);
            CHECK_INT(CN_HTML_TOKEN_TEXT,
                      cn_html_tokenizer_next(&tokenizer, bytes, 2 + cut, false, &token));
            CHECK_INT(2, token.raw.size);
            CHECK_INT(CN_HTML_TOKEN_NONE,
                      cn_html_tokenizer_next(&tokenizer, bytes + 2, cut, false, &token));
            CHECK_INT(CN_HTML_TOKEN_TEXT,
                      cn_html_tokenizer_next(&tokenizer, bytes + 2, cut, true, &token));
            CHECK_INT(cut, token.raw.size);
        }
    /* What is no beginning of a character is not waited for. */
    CHECK_INT(
        CN_HTML_TOKEN_TEXT,
        cn_html_tokenizer_next(&tokenizer, (const uint8_t *)"\x80\x80\x80\x80", 4, false, &token));
    CHECK_INT(4, token.raw.size);
    CHECK_INT(CN_HTML_TOKEN_NONE, cn_html_tokenizer_next(&tokenizer, NULL, 0, true, &token));
    cn_html_tokenizer_fini(&tokenizer);
}

TEST(html_tokenizer, names_are_numbers_whatever_their_case_and_length)
{
    CHECK(CN_HTML_NAME("a") == cn_html_hash((const uint8_t *)"A", 1));
    CHECK(CN_HTML_NAME("textarea") == cn_html_hash((const uint8_t *)"TextArea", 8));
    CHECK(CN_HTML_LONG_NAME("plaintext") == cn_html_hash((const uint8_t *)"PLAINTEXT", 9));
    CHECK(cn_html_hash((const uint8_t *)"\0a", 2) ==
          CN_HTML_NAME("a")); /* no tag has such a name */
    CHECK(CN_HTML_LONG_NAME("blockquote") != CN_HTML_LONG_NAME("blockquota"));
    CHECK(cn_html_equal_nocase((struct cn_html_span){(const uint8_t *)"aB[", 3}, "Ab[", 3));
    CHECK(!cn_html_equal_nocase((struct cn_html_span){(const uint8_t *)"a{", 2}, "a[", 2));
    CHECK(!cn_html_equal_nocase((struct cn_html_span){(const uint8_t *)"ab", 2}, "a", 1));
}

TEST(html_tokenizer, many_attributes)
{
    struct cn_buf html = {0}, want = {0};
    cn_buf_append_str(&html, "<a");
    cn_buf_append_str(&want, "start:a");
    for (int i = 0; i < 500; i++) {
        cn_buf_printf(&html, " x%d=%d", i, i);
        cn_buf_printf(&want, "(x%d=%d)", i, i);
    }
    cn_buf_append_str(&html, ">");
    char *got = tokens((char *)html.data, html.size, html.size);
    CHECK_STR(cn_buf_text(&want), got);
    cn_free(got);
    cn_buf_fini(&html);
    cn_buf_fini(&want);
}

/* T1, T2: documents made of pieces that matter, whole and byte by byte. */
TEST(html_tokenizer, any_document_has_the_same_tokens_wherever_it_is_cut)
{
    static const char *const parts[] = {
        "<",  "</",  "<!", "<!--",    "-->",       "--!>",      "-",          ">",       "/",
        " ",  "=",   "\"", "'",       "script",    "<script>",  "</script>",  "<style>", "</style",
        "a",  "<p ", "<?", "]]>",     "<svg>",     "<![CDATA[", "<!doctype",  "\xe2",    "\x82\xac",
        "\0", "]",   "!",  "<title>", "</TITLE >", "\xf0\x9f",  "<plaintext>"};
    struct cn_rand rand;
    cn_rand_init(&rand, test_seed());
    for (int round = 0; round < 3000; round++) {
        struct cn_buf html = {0};
        for (unsigned i = 0, count = 1 + (unsigned)cn_rand_below(&rand, 12); i < count; i++) {
            const char *part = parts[cn_rand_below(&rand, CN_ARRAY_COUNT(parts) - (round % 8 > 0))];
            cn_buf_append(&html, part, *part ? strlen(part) : 1);
        }
        char *whole = tokens((char *)html.data, html.size, html.size);
        for (size_t step = 1; step < 4; step++) {
            char *cut = tokens((char *)html.data, html.size, step);
            if (strcmp(whole, cut) != 0)
                test_fail(__FILE__, __LINE__, "%.*s: whole <%s>, by %zu <%s>", (int)html.size,
                          (char *)html.data, whole, step, cut);
            cn_free(cut);
        }
        cn_free(whole);
        cn_buf_fini(&html);
    }
}
