/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a folder of assets, and a path that is tried on them: all from outside. */
#include <stdint.h>
#include <string.h>

#include "assets/rules.h"
#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_warn(void *data, const char *file, unsigned line, const char *why)
{
    (void)data, (void)file, (void)line, (void)why;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *newline = memchr(text, '\n', size);
    if (!newline || newline - text > 64)
        return 0;
    size_t path_size = (size_t)(newline - text), rest = size - path_size - 1;
    struct cn_asset_rules rules;
    struct cn_asset_captures captures;
    struct cn_buf out = {0};
    cn_asset_rules_init(&rules);
    cn_asset_parse_redirects(&rules, newline + 1, rest, on_warn, NULL);
    cn_asset_parse_headers(&rules, newline + 1, rest, on_warn, NULL);
    const struct cn_asset_redirect *found =
        cn_asset_redirect_find(&rules, "host", 4, text, path_size, &captures);
    if (found)
        cn_asset_fill(found->to, &captures, &out);
    for (size_t i = 0; i < rules.header_count; i++)
        cn_asset_pattern_match(&rules.headers[i].pattern, "host", 4, text, path_size, &captures);
    if (rest < 64) { /* patterns with many stars are the author's own to pay for */
        cn_asset_parse_ignore(&rules, newline + 1, rest);
        cn_buf_clear(&out);
        cn_buf_append(&out, text, path_size);
        cn_asset_ignored(&rules, cn_buf_text(&out), false);
    }
    cn_buf_fini(&out);
    cn_asset_rules_fini(&rules);
    return 0;
}
