/* SPDX-License-Identifier: Apache-2.0 */
/* A manifest of assets is taken when all of its files can be kept, and refused with a sentence
 * otherwise (M1 to M3). */
#include "v4/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "test/lib/test.h"

#define HASH_A "0123456789abcdef0123456789abcdef"
#define HASH_B "fedcba9876543210fedcba9876543210"

static int read_manifest(const char *text, struct cn_manifest **manifest, struct cn_err *err)
{
    struct cn_json *json = cn_json_parse(text, strlen(text), err);
    CHECK(json);
    *manifest = NULL;
    int rc = cn_manifest_new(json, manifest, err);
    CHECK((rc == 0) == (*manifest != NULL));
    cn_json_free(json);
    return rc;
}

TEST(manifest, finds_files_by_their_hashes)
{
    struct cn_err err = {0};
    struct cn_manifest *manifest;
    int rc = read_manifest("{\"/z\":{\"hash\":\"" HASH_A "\",\"size\":3,\"more\":[1,2]},"
                           "\"a/b.txt\":{\"hash\":\"" HASH_B "\",\"size\":0},"
                           "\"/a-b\":{\"hash\":\"" HASH_A "\",\"size\":3}}",
                           &manifest, &err);
    CHECK_INT(0, rc);
    CHECK_INT(3, manifest->count);
    CHECK_STR("a-b", cn_manifest_find(manifest, HASH_A)->path);
    CHECK_INT(3, cn_manifest_find(manifest, HASH_A)->size);
    CHECK_STR("a/b.txt", cn_manifest_find(manifest, HASH_B)->path);
    static const char *const others[] = {
        "",         "0",   "ffffffffffffffffffffffffffffffff", "00000000000000000000000000000000",
        HASH_A "0", "../x"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(others); i++)
        CHECK(!cn_manifest_find(manifest, others[i]));
    cn_manifest_unref(cn_manifest_ref(manifest));
    cn_manifest_unref(manifest);
    cn_manifest_unref(NULL);
}

TEST(manifest, may_be_empty)
{
    struct cn_err err = {0};
    struct cn_manifest *manifest;
    CHECK_INT(0, read_manifest("{}", &manifest, &err));
    CHECK(!cn_manifest_find(manifest, HASH_A));
    cn_manifest_unref(manifest);
}

TEST(manifest, refuses_what_cannot_be_kept)
{
#define ENTRY "{\"hash\":\"" HASH_A "\",\"size\":1}"
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"[]", "missing"},
        {"null", "missing"},
        {"{\"/../a\":" ENTRY "}", "inside its folder"},
        {"{\"/\":" ENTRY "}", "inside its folder"},
        {"{\"\":" ENTRY "}", "inside its folder"},
        {"{\"//a\":" ENTRY "}", "inside its folder"},
        {"{\"/a\\\\b\":" ENTRY "}", "inside its folder"},
        {"{\"/a\\u0001\":" ENTRY "}", "inside its folder"},
        {"{\"/_headers\":" ENTRY "}", "configuration"},
        {"{\"_redirects\":" ENTRY "}", "configuration"},
        {"{\"/a\":5}", "hash"},
        {"{\"/a\":{\"hash\":\"0123\",\"size\":1}}", "hash"},
        {"{\"/a\":{\"hash\":\"0123456789ABCDEF0123456789ABCDEF\",\"size\":1}}", "hash"},
        {"{\"/a\":{\"hash\":\"" HASH_A "\"}}", "size"},
        {"{\"/a\":{\"hash\":\"" HASH_A "\",\"size\":-1}}", "size"},
        {"{\"/a\":{\"hash\":\"" HASH_A "\",\"size\":1.5}}", "size"},
        {"{\"/a\":{\"hash\":\"" HASH_A "\",\"size\":26214401}}", "larger"},
        {"{\"/a\":" ENTRY ",\"a\":" ENTRY "}", "twice"},
        {"{\"/a\":" ENTRY ",\"/a-b\":" ENTRY ",\"/a/b/c\":" ENTRY "}", "folder"},
        {"{\"/a/b/c\":" ENTRY ",\"/a b\":" ENTRY ",\"a/b\":" ENTRY "}", "folder"},
        {"{\"/a\":" ENTRY ",\"/b\":{\"hash\":\"" HASH_A "\",\"size\":2}}", "same hash"},
    };
    for (size_t i = 0; i < CN_ARRAY_COUNT(wrong); i++) {
        struct cn_err err = {0};
        struct cn_manifest *manifest;
        CHECK(read_manifest(wrong[i].text, &manifest, &err) < 0);
        CHECK(strstr(err.text, wrong[i].says));
    }
}

/* {"/PREFIX0":{...},"/PREFIX1":{...},...} */
static int read_many(size_t count, const char *prefix, struct cn_manifest **manifest,
                     struct cn_err *err)
{
    struct cn_buf text = {0};
    for (size_t i = 0; i < count; i++)
        cn_buf_printf(&text, "%s\"/%s%zu\":{\"hash\":\"%032zx\",\"size\":%zu}", i ? "," : "{",
                      prefix, i, i, i);
    cn_buf_append_byte(&text, '}');
    int rc = read_manifest(cn_buf_text(&text), manifest, err);
    cn_buf_fini(&text);
    return rc;
}

TEST(manifest, has_as_many_files_as_the_platform_allows_and_no_more)
{
    struct cn_err err = {0};
    struct cn_manifest *manifest;
    CHECK_INT(0, read_many(CN_MANIFEST_FILE_MAX, "folder/", &manifest, &err));
    char hash[33];
    snprintf(hash, sizeof(hash), "%032x", 77777);
    CHECK_STR("folder/77777", cn_manifest_find(manifest, hash)->path);
    CHECK(manifest->memory <= CN_MANIFEST_SIZE_MAX);
    cn_manifest_unref(manifest);
    CHECK_INT(CN_ELIMIT, read_many(CN_MANIFEST_FILE_MAX + 1, "", &manifest, &err));
    CHECK(strstr(err.text, "more than 100000"));
}

TEST(manifest, has_a_bound_in_bytes)
{
    struct cn_err err = {0};
    struct cn_manifest *manifest;
    char prefix[201];
    memset(prefix, 'x', sizeof(prefix) - 1);
    prefix[200] = 0;
    CHECK_INT(CN_ELIMIT, read_many(90000, prefix, &manifest, &err));
    CHECK(strstr(err.text, "16 MiB"));
}
