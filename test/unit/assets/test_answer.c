/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to the file that answers it: addresses of HTML files in every handling, one
 * spelling per file (A4), what is missing, ranges and conditions, rules for fields and redirects.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assets/assets.h"
#include "base/assert.h"
#include "base/mem.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

/* Fields of a request; values end where their memory does, so that a sanitizer sees who reads on.
 */
struct fields {
    const char *name[4];
    struct cn_http_text value[4];
};

static struct cn_http_text header(void *data, const char *lower_name)
{
    struct fields *fields = data;
    for (int i = 0; i < 4; i++)
        if (fields->name[i] && strcmp(fields->name[i], lower_name) == 0)
            return fields->value[i];
    return (struct cn_http_text){0};
}

static struct cn_http_text text(const char *chars)
{
    return (struct cn_http_text){chars, strlen(chars)};
}

struct asked {
    const char *method, *host, *target;
    const char *fields[8]; /* name, value... */
    bool from_worker;
};

static bool answer(const struct cn_assets *assets, const struct asked *asked,
                   struct cn_asset_answer *out)
{
    struct fields fields = {0};
    for (int i = 0; i < 4 && asked->fields[2 * i]; i++) {
        size_t size = strlen(asked->fields[2 * i + 1]);
        char *exact = malloc(size ? size : 1);
        memcpy(exact, asked->fields[2 * i + 1], size);
        fields.name[i] = asked->fields[2 * i];
        fields.value[i] = (struct cn_http_text){exact, size};
    }
    struct cn_asset_request request = {.method = text(asked->method ? asked->method : "GET"),
                                       .host = text(asked->host ? asked->host : "h.example"),
                                       .target = text(asked->target),
                                       .header = header,
                                       .data = &fields,
                                       .from_worker = asked->from_worker};
    bool answered = cn_assets_answer(assets, &request, out);
    for (int i = 0; i < 4; i++)
        free((char *)fields.value[i].data);
    return answered;
}

static const char *field(const struct cn_asset_answer *answer, const char *name)
{
    static char value[256];
    for (size_t i = 0; i < answer->header_count; i++)
        if (strcmp(answer->headers[i].name, name) == 0) {
            snprintf(value, sizeof(value), "%.*s", (int)answer->headers[i].value_size,
                     answer->headers[i].value);
            return value;
        }
    return NULL;
}

/* "200 /a.html", "307 -> /a", "404", or "-" for none. */
static const char *outcome(const struct cn_assets *assets, const struct asked *asked)
{
    static char line[512];
    struct cn_asset_answer got;
    if (!answer(assets, asked, &got)) {
        cn_asset_answer_fini(&got);
        return "-";
    }
    const char *location = field(&got, "location");
    snprintf(line, sizeof(line), "%d%s%s%s", got.status, got.asset ? " " : "",
             got.asset  ? got.asset->path
             : location ? " -> "
                        : "",
             location ? location : "");
    cn_asset_answer_fini(&got);
    return line;
}

#define GET(assets, path) outcome(assets, &(struct asked){.target = (path)})

static struct cn_assets *load(const char *dir, struct cn_assets_options options)
{
    struct cn_assets *assets = NULL;
    struct cn_err err = {0};
    options.directory = dir;
    options.copy_fd = -1;
    if (cn_assets_load(&options, &assets, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return assets;
}

/* ---- addresses ---------------------------------------------------------------------- */

static const char *site(void)
{
    const char *dir = test_dir();
    tree_write(dir, "index.html", "top");
    tree_write(dir, "a.html", "a");
    tree_write(dir, "b/index.html", "b");
    tree_write(dir, "both.html", "file");
    tree_write(dir, "both/index.html", "folder");
    tree_write(dir, "plain", "exact");
    tree_write(dir, "plain.html", "html");
    tree_write(dir, "x y.html", "space");
    tree_write(dir, "x&y.txt", "text");
    return dir;
}

TEST(asset_answer, a_base_path_is_before_every_address)
{
    const char *dir = site();
    tree_write(dir, "_redirects",
               "/docs/old /docs/a 301\n/docs/proxied /docs/a 200\n/old /a 301\n");
    static const struct {
        enum cn_asset_html html;
        const char *path, *want;
    } rows[] = {
        {CN_ASSET_HTML_AUTO, "/docs/", "200 /index.html"},
        {CN_ASSET_HTML_AUTO, "/docs", "307 -> /docs/"},
        {CN_ASSET_HTML_AUTO, "/docs/index.html", "307 -> /docs/"},
        {CN_ASSET_HTML_AUTO, "/docs/a", "200 /a.html"},
        {CN_ASSET_HTML_AUTO, "/docs/a.html?q", "307 -> /docs/a?q"},
        {CN_ASSET_HTML_AUTO, "/docs/b", "307 -> /docs/b/"},
        {CN_ASSET_HTML_AUTO, "/docs/old", "301 -> /docs/a"},
        {CN_ASSET_HTML_AUTO, "/docs/proxied", "200 /a.html"},
        {CN_ASSET_HTML_AUTO, "/docsa", "-"},
        {CN_ASSET_HTML_AUTO, "/a", "-"},
        {CN_ASSET_HTML_AUTO, "/old", "-"},
        {CN_ASSET_HTML_AUTO, "/", "-"},
        {CN_ASSET_HTML_AUTO, "/%64ocs/a", "307 -> /docs/a"},
        {CN_ASSET_HTML_DROP, "/docs", "200 /index.html"},
        {CN_ASSET_HTML_DROP, "/docs/", "307 -> /docs"},
        {CN_ASSET_HTML_DROP, "/docs/b/", "307 -> /docs/b"},
        {CN_ASSET_HTML_NONE, "/docs", "-"},
        {CN_ASSET_HTML_NONE, "/docs/index.html", "200 /index.html"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(rows); i++) {
        struct cn_assets *assets =
            load(dir, (struct cn_assets_options){
                          .html = rows[i].html, .has_worker = true, .base = "docs/./x/../"});
        CHECK_STR(rows[i].want, GET(assets, rows[i].path));
        cn_assets_unref(assets);
    }
    static const char *const bad[] = {"",     "//h/", "http://h/", "a\\b",
                                      "/a?b", "/a#b", "/%61",      "/\n"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(bad); i++)
        CHECK(!cn_asset_base(bad[i]));
    char *top = cn_asset_base("/..");
    CHECK_STR("", top);
    cn_free(top);
}

TEST(asset_answer, every_spelling_leads_to_the_one_address_of_a_file)
{
    const char *dir = site();
    static const struct {
        enum cn_asset_html html;
        const char *path, *want;
    } rows[] = {
        {CN_ASSET_HTML_AUTO, "/", "200 /index.html"},
        {CN_ASSET_HTML_AUTO, "/index", "307 -> /"},
        {CN_ASSET_HTML_AUTO, "/index.html", "307 -> /"},
        {CN_ASSET_HTML_AUTO, "/a", "200 /a.html"},
        {CN_ASSET_HTML_AUTO, "/a/", "307 -> /a"},
        {CN_ASSET_HTML_AUTO, "/a.html", "307 -> /a"},
        {CN_ASSET_HTML_AUTO, "/a/index", "307 -> /a"},
        {CN_ASSET_HTML_AUTO, "/a/index.html", "307 -> /a"},
        {CN_ASSET_HTML_AUTO, "/b", "307 -> /b/"},
        {CN_ASSET_HTML_AUTO, "/b/", "200 /b/index.html"},
        {CN_ASSET_HTML_AUTO, "/b.html", "307 -> /b/"},
        {CN_ASSET_HTML_AUTO, "/b/index.html", "307 -> /b/"},
        {CN_ASSET_HTML_AUTO, "/both", "200 /both.html"},
        {CN_ASSET_HTML_AUTO, "/both/", "200 /both/index.html"},
        {CN_ASSET_HTML_AUTO, "/both.html", "307 -> /both"},
        {CN_ASSET_HTML_AUTO, "/both/index.html", "307 -> /both/"},
        {CN_ASSET_HTML_AUTO, "/both/index", "307 -> /both/"},
        {CN_ASSET_HTML_AUTO, "/plain", "200 /plain"},
        {CN_ASSET_HTML_AUTO, "/plain.html", "200 /plain.html"}, /* its address is taken */
        {CN_ASSET_HTML_AUTO, "/none", "-"},
        {CN_ASSET_HTML_AUTO, "", "307 -> /"},
        {CN_ASSET_HTML_AUTO, "*", "-"},
        {CN_ASSET_HTML_FORCE, "/a", "307 -> /a/"},
        {CN_ASSET_HTML_FORCE, "/a/", "200 /a.html"},
        {CN_ASSET_HTML_FORCE, "/a.html", "307 -> /a/"},
        {CN_ASSET_HTML_FORCE, "/b", "307 -> /b/"},
        {CN_ASSET_HTML_FORCE, "/b/", "200 /b/index.html"},
        {CN_ASSET_HTML_FORCE, "/both/", "200 /both/index.html"},
        {CN_ASSET_HTML_FORCE, "/both.html", "200 /both.html"},
        {CN_ASSET_HTML_FORCE, "/", "200 /index.html"},
        {CN_ASSET_HTML_DROP, "/a", "200 /a.html"},
        {CN_ASSET_HTML_DROP, "/a/", "307 -> /a"},
        {CN_ASSET_HTML_DROP, "/b", "200 /b/index.html"},
        {CN_ASSET_HTML_DROP, "/b/", "307 -> /b"},
        {CN_ASSET_HTML_DROP, "/both", "200 /both.html"},
        {CN_ASSET_HTML_DROP, "/both/index.html", "200 /both/index.html"},
        {CN_ASSET_HTML_DROP, "/", "200 /index.html"},
        {CN_ASSET_HTML_NONE, "/a", "-"},
        {CN_ASSET_HTML_NONE, "/a.html", "200 /a.html"},
        {CN_ASSET_HTML_NONE, "/b/", "-"},
        {CN_ASSET_HTML_NONE, "/", "-"},
        {CN_ASSET_HTML_NONE, "/index.html", "200 /index.html"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(rows); i++) {
        struct cn_assets *assets = load(dir, (struct cn_assets_options){.html = rows[i].html});
        const char *got = GET(assets, rows[i].path);
        if (strcmp(rows[i].want, got) != 0)
            test_fail(__FILE__, __LINE__, "%d %s: want %s, got %s", rows[i].html, rows[i].path,
                      rows[i].want, got);
        cn_assets_unref(assets);
    }
}

/* A4 */
TEST(asset_answer, other_spellings_of_escapes_and_slashes_are_redirected_with_their_query)
{
    struct cn_assets *assets = load(site(), (struct cn_assets_options){0});
    static const char *const rows[][2] = {
        {"/x%20y", "200 /x y.html"},
        {"/x%20y?q=1", "200 /x y.html"},
        {"/%78%20y?q=%78", "307 -> /x%20y?q=%78"},
        {"/x%26y.txt", "200 /x&y.txt"},
        {"/x&y.txt", "307 -> /x%26y.txt"},
        {"//a", "307 -> /a"},
        {"/both//", "307 -> /both/"},
        {"/%2Fa", "307 -> /a"},
        {"/b%2f", "307 -> /b/"},
        {"/a?", "200 /a.html"},
        {"/a/?x=/b", "307 -> /a?x=/b"},
        {"/b/../a", "-"},
        {"/b/%2e%2e/a", "-"},
        {"/%", "-"},
        {"/a%", "-"},
        {"/a%00", "-"},
        {"/a.html%00.txt", "-"},
        {"/%61%2ehtml", "307 -> /a"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(rows); i++) {
        const char *got = GET(assets, rows[i][0]);
        if (strcmp(rows[i][1], got) != 0)
            test_fail(__FILE__, __LINE__, "%s: want %s, got %s", rows[i][0], rows[i][1], got);
    }
    cn_assets_unref(assets);
}

/* A4: whatever is asked, a file goes out under one path only, and a redirect leads to it at once.
 */
TEST(asset_answer, redirects_end_at_a_file_whose_address_is_theirs)
{
    const char *dir = site();
    static const char *const parts[] = {"/",     "a",     "b",   "both", "plain",
                                        "index", ".html", "%61", "."};
    for (int html = CN_ASSET_HTML_AUTO; html <= CN_ASSET_HTML_NONE; html++) {
        struct cn_assets *assets = load(dir, (struct cn_assets_options){.html = html});
        for (unsigned i = 0; i < 9 * 9 * 9 * 9; i++) {
            char path[64], first[512];
            snprintf(path, sizeof(path), "/%s%s%s%s", parts[i % 9], parts[i / 9 % 9],
                     parts[i / 81 % 9], parts[i / 729]);
            snprintf(first, sizeof(first), "%s", GET(assets, path));
            if (strncmp(first, "307 -> ", 7) == 0 && strncmp(GET(assets, first + 7), "200 ", 4))
                test_fail(__FILE__, __LINE__, "%d %s %s", html, path, first);
        }
        cn_assets_unref(assets);
    }
}

/* ---- what is missing, and the worker ------------------------------------------------- */

TEST(asset_answer, what_is_missing_gets_the_page_that_is_configured_for_it)
{
    const char *dir = test_dir();
    tree_write(dir, "index.html", "top");
    tree_write(dir, "404.html", "gone");
    tree_write(dir, "docs/404.html", "no page");
    struct cn_assets *assets =
        load(dir, (struct cn_assets_options){.missing = CN_ASSET_MISSING_404_PAGE});
    CHECK_STR("404 /404.html", GET(assets, "/x/y/z"));
    CHECK_STR("404 /docs/404.html", GET(assets, "/docs/y/z"));
    CHECK_STR("404 /docs/404.html", GET(assets, "/docs/"));
    CHECK_STR("404 /404.html", GET(assets, "/docs"));
    CHECK_STR("-", GET(assets, "*"));
    /* A condition or a range is none of an error's. */
    CHECK_STR("404 /404.html", outcome(assets, &(struct asked){.target = "/x",
                                                               .fields = {"range", "bytes=0-1",
                                                                          "if-none-match", "*"}}));
    cn_assets_unref(assets);
    assets = load(dir, (struct cn_assets_options){.missing = CN_ASSET_MISSING_SPA});
    CHECK_STR("200 /index.html", GET(assets, "/x/y/z"));
    CHECK_STR("200 /index.html", GET(assets, "/x%2"));
    CHECK_STR("405", outcome(assets, &(struct asked){.target = "/x", .method = "POST"}));
    cn_assets_unref(assets);
}

TEST(asset_answer, a_worker_is_asked_for_what_is_missing_unless_someone_navigates)
{
    const char *dir = test_dir();
    tree_write(dir, "index.html", "top");
    struct cn_assets_options options = {.missing = CN_ASSET_MISSING_SPA, .has_worker = true};
    struct cn_assets *assets = load(dir, options);
    struct asked goes = {.target = "/x", .fields = {"sec-fetch-mode", "navigate"}};
    CHECK_STR("-", GET(assets, "/x"));
    CHECK_STR("-", outcome(assets, &goes));
    CHECK_STR("200 /index.html",
              outcome(assets, &(struct asked){.target = "/x", .from_worker = true}));
    cn_assets_unref(assets);
    options.navigation = true;
    assets = load(dir, options);
    CHECK_STR("200 /index.html", outcome(assets, &goes));
    CHECK_STR("-", GET(assets, "/x"));
    goes.fields[1] = "navigat";
    CHECK_STR("-", outcome(assets, &goes));
    cn_assets_unref(assets);
}

TEST(asset_answer, the_worker_comes_first_where_the_configuration_says_so)
{
    const char *dir = test_dir();
    tree_write(dir, "a", "a");
    static const char *const first[] = {"/api/*", "!/api/docs/*", "/admin"};
    struct cn_assets_options options = {
        .has_worker = true, .first = first, .first_count = CN_ARRAY_COUNT(first)};
    struct cn_assets *assets = load(dir, options);
    CHECK(cn_assets_prefer_worker(assets, "/api/x", 6));
    CHECK(!cn_assets_prefer_worker(assets, "/api/docs/x", 11));
    CHECK(cn_assets_prefer_worker(assets, "/admin", 6));
    CHECK(!cn_assets_prefer_worker(assets, "/adminx", 7) &&
          !cn_assets_prefer_worker(assets, "/", 1));
    cn_assets_unref(assets);
    options.has_worker = false;
    assets = load(dir, options);
    CHECK(!cn_assets_prefer_worker(assets, "/admin", 6));
    cn_assets_unref(assets);
    assets = load(dir, (struct cn_assets_options){.has_worker = true, .worker_first = true});
    CHECK(cn_assets_prefer_worker(assets, "/anything", 9));
    cn_assets_unref(assets);
}

TEST(asset_answer, only_reading_is_allowed)
{
    struct cn_assets *assets = load(site(), (struct cn_assets_options){0});
    struct cn_asset_answer got;
    CHECK(answer(assets, &(struct asked){.target = "/a", .method = "PUT"}, &got));
    CHECK_INT(405, got.status);
    CHECK_STR("GET, HEAD", field(&got, "allow"));
    CHECK(!got.asset && got.size == 0);
    cn_asset_answer_fini(&got);
    CHECK_STR("405", outcome(assets, &(struct asked){.target = "/a/", .method = "GETS"}));
    CHECK_STR("200 /a.html", outcome(assets, &(struct asked){.target = "/a", .method = "HEAD"}));
    CHECK_STR("-", outcome(assets, &(struct asked){.target = "/none", .method = "PUT"}));
    cn_assets_unref(assets);
}

/* ---- conditions and ranges ------------------------------------------------------------ */

TEST(asset_answer, a_range_is_honoured_refused_or_passed_over)
{
    const char *dir = test_dir();
    tree_write(dir, "f", "0123456789");
    tree_write(dir, "empty", "");
    struct cn_assets *assets = load(dir, (struct cn_assets_options){0});
    static const struct {
        const char *range;
        int status;
        unsigned offset, size;
        const char *content_range;
    } rows[] = {
        {"bytes=0-3", 206, 0, 4, "bytes 0-3/10"},
        {"bytes=9-9", 206, 9, 1, "bytes 9-9/10"},
        {"bytes=4-", 206, 4, 6, "bytes 4-9/10"},
        {"bytes=-3", 206, 7, 3, "bytes 7-9/10"},
        {"bytes=-30", 206, 0, 10, "bytes 0-9/10"},
        {"bytes=5-99999999999999999999", 206, 5, 5, "bytes 5-9/10"},
        {"bytes=-99999999999999999999999", 206, 0, 10, "bytes 0-9/10"},
        {"bytes=10-", 416, 0, 0, "bytes */10"},
        {"bytes=99999999999999999999-", 416, 0, 0, "bytes */10"},
        {"bytes=-0", 416, 0, 0, "bytes */10"},
        {"bytes=5-4", 200, 0, 10, NULL},
        {"bytes=0-1,3-4", 200, 0, 10, NULL},
        {"bytes=-", 200, 0, 10, NULL},
        {"bytes=", 200, 0, 10, NULL},
        {"bytes=x-1", 200, 0, 10, NULL},
        {"bytes=1x-2", 200, 0, 10, NULL},
        {"bytes=1-2x", 200, 0, 10, NULL},
        {"bytes=1--2", 200, 0, 10, NULL},
        {"bytes= 1-2", 200, 0, 10, NULL},
        {"bytes=+1-2", 200, 0, 10, NULL},
        {"bytes=-+2", 200, 0, 10, NULL},
        {"octets=0-1", 200, 0, 10, NULL},
        {"", 200, 0, 10, NULL},
        {"bytes=0-0000000000000000000000000000000000000000000000000000000001", 200, 0, 10, NULL},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(rows); i++) {
        struct cn_asset_answer got;
        struct asked asked = {.target = "/f", .fields = {"range", rows[i].range}};
        CHECK(answer(assets, &asked, &got));
        const char *range = field(&got, "content-range");
        if (got.status != rows[i].status || got.offset != rows[i].offset ||
            got.size != rows[i].size || !range != !rows[i].content_range ||
            (range && strcmp(range, rows[i].content_range) != 0))
            test_fail(__FILE__, __LINE__, "%s: %d, %u from %u", rows[i].range, got.status,
                      (unsigned)got.size, (unsigned)got.offset);
        CHECK(!got.asset == (got.status == 416));
        CHECK(!field(&got, "cache-control")); /* a part is nobody's to keep */
        cn_asset_answer_fini(&got);
    }
    CHECK_STR("416", outcome(assets,
                             &(struct asked){.target = "/empty", .fields = {"range", "bytes=0-"}}));
    CHECK_STR("416", outcome(assets,
                             &(struct asked){.target = "/empty", .fields = {"range", "bytes=-1"}}));
    cn_assets_unref(assets);
}

TEST(asset_answer, a_condition_is_met_by_the_etag_of_the_bytes)
{
    const char *dir = test_dir();
    tree_write(dir, "f", "0123456789");
    struct cn_assets *assets = load(dir, (struct cn_assets_options){0});
    const char *etag = cn_assets_find(assets, "/f", 2)->etag;
    char weak[64], listed[128], wrong[64], spaced[64];
    snprintf(weak, sizeof(weak), "W/%s", etag);
    snprintf(listed, sizeof(listed), "\"x\", ,\t%s ,\"y\"", etag);
    snprintf(wrong, sizeof(wrong), "%.*s", (int)strlen(etag) - 1, etag);
    snprintf(spaced, sizeof(spaced), " ,, %s", etag);
    const char *const met[] = {etag, weak, listed, spaced, "*", "\"x\", *"};
    const char *const unmet[] = {wrong,       "\"x\"", "",  ",",  ",,", "\"x\",",
                                 "\"x\", \t", "W/",    "W", "\"", " "};
    for (size_t i = 0; i < CN_ARRAY_COUNT(met); i++) {
        struct cn_asset_answer got;
        struct asked asked = {.target = "/f",
                              .fields = {"if-none-match", met[i], "range", "bytes=0-1"}};
        CHECK(answer(assets, &asked, &got));
        CHECK_INT(304, got.status);
        CHECK(!got.asset && got.size == 0);
        CHECK_STR(etag, field(&got, "etag"));
        cn_asset_answer_fini(&got);
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(unmet); i++)
        CHECK_STR("200 /f",
                  outcome(assets,
                          &(struct asked){.target = "/f", .fields = {"if-none-match", unmet[i]}}));
    /* If-Range: the whole file unless the tag is its own, and a weak one never is. */
    const char *const ranges[][2] = {
        {etag, "206 /f"}, {weak, "200 /f"}, {"\"x\"", "200 /f"}, {"", "200 /f"}};
    for (size_t i = 0; i < CN_ARRAY_COUNT(ranges); i++)
        CHECK_STR(ranges[i][1],
                  outcome(assets, &(struct asked){
                                      .target = "/f",
                                      .fields = {"range", "bytes=0-1", "if-range", ranges[i][0]}}));
    cn_assets_unref(assets);
}

/* A list ends where its value does, whatever blanks and commas lie behind it in the request. */
TEST(asset_answer, a_condition_is_not_read_past_its_end)
{
    const char *dir = test_dir();
    tree_write(dir, "f", "0123456789");
    struct cn_assets *assets = load(dir, (struct cn_assets_options){0});
    char behind[128];
    int size =
        snprintf(behind, sizeof(behind), "\"x\", , \t, %s", cn_assets_find(assets, "/f", 2)->etag);
    struct fields fields = {{"if-none-match"}, {{behind, 4}}};
    struct cn_asset_request request = {.method = text("GET"),
                                       .host = text("h"),
                                       .target = text("/f"),
                                       .header = header,
                                       .data = &fields};
    for (size_t end = 0; end < (size_t)size; end++) {
        struct cn_asset_answer got;
        fields.value[0].size = end;
        CHECK(cn_assets_answer(assets, &request, &got));
        CHECK_INT(200, got.status);
        cn_asset_answer_fini(&got);
    }
    cn_assets_unref(assets);
}

TEST(asset_answer, a_file_may_be_kept_by_nobody_who_had_to_show_who_he_is)
{
    struct cn_assets *assets = load(site(), (struct cn_assets_options){0});
    struct cn_asset_answer got;
    CHECK(answer(assets, &(struct asked){.target = "/a"}, &got));
    CHECK_STR("public, max-age=0, must-revalidate", field(&got, "cache-control"));
    CHECK_STR("bytes", field(&got, "accept-ranges"));
    CHECK_STR("text/html; charset=utf-8", field(&got, "content-type"));
    cn_asset_answer_fini(&got);
    struct asked known = {.target = "/a", .fields = {"authorization", "Basic eA=="}};
    CHECK(answer(assets, &known, &got));
    CHECK(!field(&got, "cache-control"));
    cn_asset_answer_fini(&got);
    cn_assets_unref(assets);
}

/* ---- rules ------------------------------------------------------------------------------ */

TEST(asset_answer, the_first_rule_of_a_field_replaces_it_and_later_ones_add)
{
    const char *dir = site();
    tree_write(dir, "_headers",
               "/a\n  Cache-Control: no-store\n  X-One: 1\n"
               "/*\n  Cache-Control: max-age=5\n  X-One: 2\n  ! ETag\n  X-Path: :splat\n"
               "https://other.example/*\n  X-Other: yes\n");
    struct cn_assets *assets = load(dir, (struct cn_assets_options){0});
    struct cn_asset_answer got;
    CHECK(answer(assets, &(struct asked){.target = "/a"}, &got));
    CHECK_STR("no-store, max-age=5", field(&got, "cache-control"));
    CHECK_STR("1, 2", field(&got, "x-one"));
    CHECK(!field(&got, "etag") && !field(&got, "x-other"));
    CHECK_STR("a", field(&got, "x-path"));
    cn_asset_answer_fini(&got);
    CHECK(answer(assets, &(struct asked){.target = "/b/", .host = "other.example"}, &got));
    CHECK_STR("max-age=5", field(&got, "cache-control"));
    CHECK_STR("yes", field(&got, "x-other"));
    cn_asset_answer_fini(&got);
    /* Redirects have them too; what no asset answers has none. */
    CHECK(answer(assets, &(struct asked){.target = "/b"}, &got));
    CHECK_STR("max-age=5", field(&got, "cache-control"));
    cn_asset_answer_fini(&got);
    CHECK(!answer(assets, &(struct asked){.target = "/none"}, &got));
    CHECK(!got.header_count);
    cn_asset_answer_fini(&got);
    cn_assets_unref(assets);
}

/* What a placeholder stands for comes from the client: it must not end a line of the head. */
TEST(asset_answer, no_field_is_made_of_what_no_field_may_hold)
{
    const char *dir = site();
    tree_write(dir, "_headers", "/*\n  X-Path: <:splat>\n");
    tree_write(dir, "_redirects", "/go/* /:splat 302\n");
    struct cn_assets *assets = load(dir, (struct cn_assets_options){0});
    struct cn_asset_answer got;
    CHECK(answer(assets, &(struct asked){.target = "/go/x\r\nset-cookie: a=b"}, &got));
    CHECK_INT(400, got.status);
    CHECK(!field(&got, "location") && !field(&got, "x-path"));
    cn_asset_answer_fini(&got);
    cn_assets_unref(assets);
}

TEST(asset_answer, a_redirect_has_its_own_query_or_the_requests)
{
    const char *dir = site();
    tree_write(dir, "_redirects",
               "/old /new#part 301\n/q /new?x=1#part 308\n/p/* https://o.example/:splat\n"
               "/a /b/ 302\n");
    struct cn_assets *assets = load(dir, (struct cn_assets_options){0});
    CHECK_STR("301 -> /new#part", GET(assets, "/old"));
    CHECK_STR("301 -> /new?y=2#part", GET(assets, "/old?y=2"));
    CHECK_STR("308 -> /new?x=1#part", GET(assets, "/q?y=2"));
    CHECK_STR("302 -> https://o.example/k?z", GET(assets, "/p/k?z"));
    CHECK_STR("302 -> /b/", GET(assets, "/a")); /* before the file of that name */
    cn_assets_unref(assets);
}

TEST(asset_answer, a_proxied_path_is_answered_where_it_was_asked_for)
{
    const char *dir = site();
    tree_write(dir, "_redirects", "/in /a 200\n/in2 /a.html 200\n/in3 /none 200\n/in4 /b/?x 200\n");
    struct cn_assets *assets = load(dir, (struct cn_assets_options){0});
    CHECK_STR("200 /a.html", GET(assets, "/in"));
    CHECK_STR("404", GET(assets, "/in2")); /* it would be redirected */
    CHECK_STR("404", GET(assets, "/in3"));
    CHECK_STR("200 /b/index.html", GET(assets, "/in4?q"));
    cn_assets_unref(assets);
}
