/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of _headers, _redirects and .assetsignore: what fits, what they stand for, which lines
 * are refused. */
#include <stdio.h>
#include <string.h>

#include "assets/rules.h"
#include "base/buf.h"
#include "base/mem.h"
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

/* What was tried in each way with one placeholder more was tried as many times as the text is long. */
TEST(asset_rules, no_way_is_tried_twice)
{
    struct cn_asset_rules rules;
    struct cn_asset_captures captures;
    size_t size = 16384;
    char *path = cn_alloc(size + 1);
    memset(path, '-', size);
    path[0] = '/';
    path[size] = 0;
    static const char text[] = "/:a-:b-:c-:d-:e-:f-:g-*!  /x\n/:a-:b-:c-:d-:e-:f-:g-* /y\n";
    cn_asset_rules_init(&rules);
    cn_asset_parse_redirects(&rules, text, sizeof(text) - 1, on_warn, NULL);
    CHECK_INT(2, rules.redirect_count);
    const struct cn_asset_redirect *found =
        cn_asset_redirect_find(&rules, "h", 1, path, size, &captures);
    CHECK(found == &rules.redirects[1]);
    CHECK_INT(8, captures.count);
    CHECK_INT(size - 1 - 6 - 7, captures.items[0].value_size); /* the first takes what it can */
    CHECK_INT(1, captures.items[6].value_size);
    CHECK_INT(0, captures.items[7].value_size);
    cn_asset_rules_fini(&rules);

    memset(path, 'a', size);
    CHECK(!cn_asset_glob("*a*a*a*a*a*a*a*b", path, size));
    CHECK(cn_asset_glob("*a*a*a*a*a*a*a*a", path, size));
    static const char ignores[] = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n"
                                  "**/*a/**/a*/**/*a/**/a*/**/*a/**/a*/**/*a/**/b\n";
    cn_asset_rules_init(&rules);
    cn_asset_parse_ignore(&rules, ignores, sizeof(ignores) - 1);
    path[200] = 0;
    CHECK(!cn_asset_ignored(&rules, path, false));
    path[200] = 'a';
    for (size_t i = 1; i < size; i += 2)
        path[i] = '/';
    path[2000] = 0;
    CHECK(!cn_asset_ignored(&rules, path, false));
    cn_asset_rules_fini(&rules);
    cn_free(path);
}

/* The matchers against others that try every way. */
static bool slow_glob(const char *pattern, const char *text)
{
    if (*pattern == '*')
        return slow_glob(pattern + 1, text) || (*text && slow_glob(pattern, text + 1));
    return *pattern == *text && (!*text || slow_glob(pattern + 1, text + 1));
}

/* Which pieces of `text` each of `count` placeholders between dashes stands for, the longest first. */
static bool slow_match(const char *pattern, const char *text, char *sizes)
{
    if (*pattern != '*' && *pattern != ':')
        return *pattern == *text && (!*text || slow_match(pattern + 1, text + 1, sizes));
    bool splat = *pattern == '*';
    size_t limit = splat ? strlen(text) : strcspn(text, "/");
    for (size_t take = limit + 1; take-- > (splat ? 0 : 1);) {
        *sizes = (char)take;
        if (slow_match(pattern + (splat ? 1 : 2), text + take, sizes + 1))
            return true;
    }
    return false;
}

TEST(asset_rules, as_if_every_way_were_tried)
{
    uint64_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        char pattern[16] = "/", text[16] = "/", line[32], sizes[16] = {0};
        static const char *const pieces[] = {"a", "b", "/", "*", ":x", ":y", ":z"};
        bool splat = false;
        while (strlen(pattern) < 10) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const char *piece = pieces[(seed >> 33) % 7];
            bool named = strlen(pattern) > 1 && pattern[strlen(pattern) - 2] == ':';
            if ((*piece == '*' && splat) || (named && (*piece == 'a' || *piece == 'b')))
                continue; /* a letter would be of the name */
            splat |= *piece == '*';
            strcat(pattern, piece);
        }
        for (size_t i = 1, size = (seed >> 40) % 12 + 1; i < size; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[i] = "aab/"[(seed >> 33) % 4];
        }
        CHECK_INT(slow_glob(pattern, text), cn_asset_glob(pattern, text, strlen(text)));
        struct cn_asset_rules rules;
        struct cn_asset_captures captures;
        cn_asset_rules_init(&rules);
        snprintf(line, sizeof(line), "%s /to", pattern);
        cn_asset_parse_redirects(&rules, line, strlen(line), on_warn, NULL);
        CHECK_INT(1, rules.redirect_count);
        bool fits = slow_match(pattern, text, sizes);
        CHECK(fits ==
              (cn_asset_redirect_find(&rules, "h", 1, text, strlen(text), &captures) != NULL));
        for (size_t i = 0; fits && i < captures.count; i++)
            CHECK_INT(sizes[i], captures.items[i].value_size);
        cn_asset_rules_fini(&rules);
    }
}
