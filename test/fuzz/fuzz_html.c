/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML rewriter. The first byte is the size of the pieces a document arrives in, then comes a
 * selector up to a newline, then the document. Whatever they are:
 * - a document that nobody changes comes out as it went in;
 * - changes by element handlers do not depend on the pieces. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "html/rewriter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Deterministic changes that depend on the element alone. */
static void change(struct cn_html_rewriter *rewriter)
{
    struct cn_html_span name = cn_html_tag_name(rewriter);
    const struct cn_html_edit *edits;
    size_t count = cn_html_attributes(rewriter, &edits);
    unsigned pick = (unsigned)(name.size + count + (name.size ? name.at[0] : 0));
    cn_html_insert(rewriter, (enum cn_html_place)(pick % 6), "<i>&", 4, pick & 8);
    if (pick & 16)
        cn_html_attribute_set(rewriter, "id", 2, "a\"b", 3, NULL);
    if (pick & 32)
        cn_html_attribute_remove(rewriter, "class", 5);
    if (pick & 64)
        cn_html_remove(rewriter, pick & 1);
    if (pick % 7 == 0)
        cn_html_set_name(rewriter, "x-y", 3, NULL);
    if (pick % 5 == 0)
        (void)cn_html_on_end_tag(rewriter, pick, NULL); /* void elements have none */
}

static void run(const char *selector, size_t selector_size, const uint8_t *html, size_t size,
                size_t step, bool changes, struct cn_buf *out)
{
    struct cn_html_rewriter rewriter;
    cn_html_rewriter_init(&rewriter);
    if (cn_html_rewriter_on(&rewriter, selector, selector_size, changes ? CN_HTML_WANTS_ELEMENT : 7,
                            NULL) < 0)
        CN_ASSERT(cn_html_rewriter_on(&rewriter, "*", 1, 7, NULL) == 0);
    if (!changes)
        CN_ASSERT(cn_html_rewriter_on(&rewriter, NULL, 0, 31, NULL) == 0);
    for (size_t at = 0; at < size || at == 0; at += step) {
        uint32_t handler;
        int event;
        cn_html_rewriter_feed(&rewriter, html + at, size - at < step ? size - at : step);
        if (size - at <= step)
            cn_html_rewriter_finish(&rewriter);
        while ((event = cn_html_rewriter_next(&rewriter, &handler, NULL)) > CN_HTML_NEED_INPUT) {
            if (changes && event == CN_HTML_ELEMENT)
                change(&rewriter);
            else if (changes && event == CN_HTML_END_TAG)
                cn_html_insert(&rewriter, CN_HTML_BEFORE, "end", 3, true);
        }
        CN_ASSERT(event >= 0);
    }
    cn_buf_append(out, rewriter.output.data, rewriter.output.size);
    cn_html_rewriter_fini(&rewriter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 100000)
        return 0;
    size_t step = data[0] + 1u;
    const uint8_t *selector = data + 1, *newline = memchr(selector, '\n', size - 1);
    if (!newline)
        return 0;
    size_t selector_size = (size_t)(newline - selector);
    const uint8_t *html = newline + 1;
    size_t html_size = size - 2 - selector_size;
    struct cn_buf same = {0}, pieces = {0}, whole = {0};
    run((const char *)selector, selector_size, html, html_size, step, false, &same);
    CN_ASSERT(same.size == html_size && (!html_size || !memcmp(same.data, html, html_size)));
    run((const char *)selector, selector_size, html, html_size, step, true, &pieces);
    run((const char *)selector, selector_size, html, html_size, html_size + 1, true, &whole);
    CN_ASSERT(pieces.size == whole.size &&
              (!whole.size || !memcmp(pieces.data, whole.data, whole.size)));
    cn_buf_fini(&same);
    cn_buf_fini(&pieces);
    cn_buf_fini(&whole);
    return 0;
}
