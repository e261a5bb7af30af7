/* SPDX-License-Identifier: Apache-2.0 */
/* Content types by the end of a name: every row of the table is found, whatever the case, and a dot
 * that is no extension's finds none. */
#include "assets/types.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "test/lib/test.h"

static const char *const samples[][2] = {
    {"aac", "audio/aac"},
    {"avif", "image/avif"},
    {"bin", "application/octet-stream"},
    {"br", "application/x-brotli"},
    {"css", "text/css; charset=utf-8"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"gz", "application/gzip"},
    {"htm", "text/html; charset=utf-8"},
    {"html", "text/html; charset=utf-8"},
    {"ico", "image/x-icon"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"json5", "application/json5"},
    {"jsonld", "application/ld+json"},
    {"jsx", "text/jsx; charset=utf-8"},
    {"map", "application/json"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"ogg", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"svg", "image/svg+xml"},
    {"svgz", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xml", "text/xml; charset=utf-8"},
    {"yml", "text/yaml; charset=utf-8"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

TEST(asset_types, a_name_has_the_type_of_its_extension_in_any_case)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(samples); i++) {
        char path[64];
        snprintf(path, sizeof(path), "a/b.c/name.min.%s", samples[i][0]);
        CHECK_STR(samples[i][1], cn_asset_type(path));
        for (char *at = path; *at; at++)
            *at = (char)toupper((unsigned char)*at);
        CHECK_STR(samples[i][1], cn_asset_type(path));
    }
}

/* The table is searched by halves: a row that is out of order hides itself or others. */
TEST(asset_types, every_row_is_in_order_and_is_found)
{
    size_t count = 0;
    const char *last = "", *extension;
    for (; (extension = cn_asset_type_extension(count)); count++) {
        char path[32];
        CHECK(strcmp(last, extension) < 0);
        for (const char *at = extension; *at; at++)
            CHECK(islower((unsigned char)*at) || isdigit((unsigned char)*at));
        snprintf(path, sizeof(path), "x.%s", extension);
        const char *type = cn_asset_type(path);
        CHECK(type && strchr(type, '/'));
        last = extension;
    }
    CHECK(count >= CN_ARRAY_COUNT(samples));
    CHECK(!cn_asset_type_extension(count + 1000));
}

TEST(asset_types, a_dot_that_begins_no_extension_finds_none)
{
    static const char *const paths[] = {"",      "html",    "a.b/c",   "a.html/c", "a.html/",
                                        "a.",    ".",       "a.htmlx", "a.htm l",  "a.html.xyz",
                                        "a..",   "a.html.", "/",       "a.h",      "a.aa",
                                        "a.zzz", "a. html", "a.\xff",  "a.html\n", "a.\x01js"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(paths); i++)
        CHECK(!cn_asset_type(paths[i]));
    CHECK_STR("text/html; charset=utf-8", cn_asset_type(".html"));
    CHECK_STR("text/html; charset=utf-8", cn_asset_type("a/.html"));
    CHECK_STR("application/gzip", cn_asset_type("a.html.gz"));
}
