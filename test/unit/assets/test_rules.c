/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of _headers, _redirects and .assetsignore: what fits, what they stand for, which lines
 * are refused. */
#include <string.h>

#include "assets/rules.h"
#include "base/buf.h"
#include "test/lib/test.h"

static unsigned warned;
static void on_warn(void *data, const char *file, unsigned line, const char *why)
{
    (void)data, (void)file, (void)why;
    warned = warned * 100 + line;
}

static const char *redirected(struct cn_asset_rules *rules, const char *path, struct cn_buf *out)
{
    struct cn_asset_captures captures;
    const struct cn_asset_redirect *found =
        cn_asset_redirect_find(rules, "h.example", 9, path, strlen(path), &captures);
    cn_buf_clear(out);
    if (found)
        cn_asset_fill(found->to, &captures, out);
    return found ? cn_buf_text(out) : "";
}

TEST(asset_rules, redirects_in_order_with_placeholders)
{
    struct cn_asset_rules rules;
    struct cn_buf out = {0};
    static const char text[] = "/a /b\n"
                               "/x/* /y/:splat 301 # why\n"
                               "/x/fixed /z\n"
                               "/p/:one-:two /q/:two/:one/:three\n"
                               "https://h.example/host /here\n"
                               "https://other/host2 /there\n";
    cn_asset_rules_init(&rules);
    cn_asset_parse_redirects(&rules, text, sizeof(text) - 1, on_warn, NULL);
    CHECK_STR("/b", redirected(&rules, "/a", &out));
    CHECK_STR("", redirected(&rules, "/a/", &out));
    CHECK_STR("/y/q/r", redirected(&rules, "/x/q/r", &out));
    CHECK_STR("/y/fixed", redirected(&rules, "/x/fixed", &out));
    CHECK_STR("/q/3/1-2/:three", redirected(&rules, "/p/1-2-3", &out));
    CHECK_STR("", redirected(&rules, "/p/1", &out));
    CHECK_STR("/here", redirected(&rules, "/host", &out));
    CHECK_STR("", redirected(&rules, "/host2", &out));
    cn_asset_rules_fini(&rules);
    cn_buf_fini(&out);
}

TEST(asset_rules, a_bad_line_is_left_out)
{
    struct cn_asset_rules rules;
    static const char text[] =
        "nope /b\n/two/*/* /x\n/ok /fine\n/ok /again\n/s /t 500\n/u relative\n";
    cn_asset_rules_init(&rules);
    warned = 0;
    cn_asset_parse_redirects(&rules, text, sizeof(text) - 1, on_warn, NULL);
    CHECK_INT(102040506, warned);
    CHECK_INT(1, rules.redirect_count);
    static const char headers[] = "X: 1\n/a\n  Bad Name: x\n  Good: y\n  Empty:\n  ! Gone\n";
    warned = 0;
    cn_asset_parse_headers(&rules, headers, sizeof(headers) - 1, on_warn, NULL);
    CHECK_INT(10305, warned);
    CHECK_INT(2, rules.headers[0].field_count);
    CHECK(!rules.headers[0].fields[1].value);
    cn_asset_rules_fini(&rules);
}

TEST(asset_rules, ignore_as_git_does)
{
    struct cn_asset_rules rules;
    static const char text[] =
        "# comment\n*.log\n!keep.log\n/top\nfolder/\na/**/z\ndoc/*.txt\n[xy]?.c\n";
    cn_asset_rules_init(&rules);
    cn_asset_parse_ignore(&rules, text, sizeof(text) - 1);
    CHECK(cn_asset_ignored(&rules, "x.log", false));
    CHECK(cn_asset_ignored(&rules, "a/b/x.log", false));
    CHECK(!cn_asset_ignored(&rules, "a/keep.log", false));
    CHECK(cn_asset_ignored(&rules, "top", false));
    CHECK(!cn_asset_ignored(&rules, "a/top", false));
    CHECK(cn_asset_ignored(&rules, "b/folder", true));
    CHECK(!cn_asset_ignored(&rules, "b/folder", false));
    CHECK(cn_asset_ignored(&rules, "a/z", false));
    CHECK(cn_asset_ignored(&rules, "a/b/c/z", false));
    CHECK(!cn_asset_ignored(&rules, "a/bz", false));
    CHECK(cn_asset_ignored(&rules, "doc/n.txt", false));
    CHECK(!cn_asset_ignored(&rules, "doc/m/n.txt", false));
    CHECK(cn_asset_ignored(&rules, "q/x1.c", false));
    CHECK(!cn_asset_ignored(&rules, "z1.c", false));
    cn_asset_rules_fini(&rules);
}

TEST(asset_rules, globs)
{
    CHECK(cn_asset_glob("/api/*", "/api/a/b", 8));
    CHECK(!cn_asset_glob("/api/*", "/apix", 5));
    CHECK(cn_asset_glob("/*/x*y", "/a/b/xzzy", 9));
    CHECK(!cn_asset_glob("/a", "/ab", 3));
    CHECK(cn_asset_glob("*", "", 0));
}
