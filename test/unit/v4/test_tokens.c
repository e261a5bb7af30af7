/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: only hashes are kept (T1), a revoked one is refused (T2), a damaged file is not believed
 * (T3). */
#include "v4/tokens.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/disk.h"
#include "test/lib/simdisk.h"
#include "test/lib/test.h"

static struct cn_tokens *open_on(struct simdisk *sim)
{
    struct cn_tokens *tokens = NULL;
    struct cn_err err = {0};
    CHECK_INT(0, cn_tokens_open(simdisk_disk(sim), &tokens, &err));
    return tokens;
}

static int create(struct cn_tokens *tokens, const char *name, unsigned scopes, int64_t now_ms,
                  char token[CN_TOKEN_SIZE], char id[33], struct cn_err *err)
{
    struct cn_token_wish wish = {.name = name, .scopes = scopes, .now_ms = now_ms};
    return cn_tokens_create(tokens, &wish, token, id, err);
}

/* T2, across a start, by its text and by its id. */
TEST(tokens, T2_are_refused_when_their_time_is_over)
{
    struct simdisk *sim = simdisk_new();
    struct cn_tokens *tokens = open_on(sim);
    struct cn_err err = {0};
    char token[CN_TOKEN_SIZE], id[33], found[33], name[CN_TOKEN_NAME_MAX + 1];
    struct cn_token_wish wish = {
        .name = "ci", .scopes = CN_SCOPE_READ, .now_ms = 100, .expires_ms = 200};
    CHECK_INT(0, cn_tokens_create(tokens, &wish, token, id, &err));
    for (int i = 0; i < 2; i++) {
        CHECK_INT(CN_SCOPE_READ, cn_tokens_check(tokens, token, strlen(token), 199, found, name));
        CHECK_INT(CN_SCOPE_READ, cn_tokens_scopes_of(tokens, id, 199));
        CHECK_INT(0, cn_tokens_check(tokens, token, strlen(token), 200, found, name));
        CHECK_INT(0, cn_tokens_scopes_of(tokens, id, 200));
        cn_tokens_close(tokens);
        tokens = open_on(sim);
    }
    cn_tokens_close(tokens);
    simdisk_free(sim);
}

TEST(tokens, are_good_for_their_scopes_and_last)
{
    struct simdisk *sim = simdisk_new();
    struct cn_tokens *tokens = open_on(sim);
    struct cn_err err = {0};
    char token[CN_TOKEN_SIZE], id[33], found[33], name[CN_TOKEN_NAME_MAX + 1];
    unsigned scopes = CN_SCOPE_READ | CN_SCOPE_DATA;
    CHECK_INT(0, create(tokens, "ci", scopes, 1, token, id, &err));
    CHECK_INT(scopes, cn_tokens_check(tokens, token, strlen(token), 1000, found, name));
    CHECK_STR(id, found);
    CHECK_STR("ci", name);
    cn_tokens_close(tokens);
    tokens = open_on(sim);
    CHECK_INT(scopes, cn_tokens_check(tokens, token, strlen(token), 1000, found, name));
    token[10] ^= 1;
    CHECK_INT(0, cn_tokens_check(tokens, token, strlen(token), 1000, found, name));
    token[10] ^= 1;
    CHECK_INT(0, cn_tokens_check(tokens, token, strlen(token) - 1, 1000, found, name));
    CHECK_INT(0, cn_tokens_check(tokens, "", 0, 1000, found, name));
    CHECK_INT(CN_EEXISTS, create(tokens, "ci", scopes, 1, token, id, &err));
    CHECK_INT(CN_EINVALID, create(tokens, "a\nb", scopes, 1, token, id, &err));
    CHECK_INT(CN_EINVALID, create(tokens, "", scopes, 1, token, id, &err));
    cn_tokens_close(tokens);
    simdisk_free(sim);
}

TEST(tokens, are_not_in_the_file)
{
    struct simdisk *sim = simdisk_new();
    struct cn_tokens *tokens = open_on(sim);
    struct cn_err err = {0};
    char token[CN_TOKEN_SIZE], id[33], bytes[4096];
    struct cn_disk_file *file;
    CHECK_INT(0, create(tokens, "ci", CN_SCOPE_READ, 1, token, id, &err));
    CHECK_INT(0, cn_disk_open(simdisk_disk(sim), "tokens.json", CN_DISK_READONLY, &file));
    int64_t size = cn_disk_read(file, bytes, sizeof(bytes), 0);
    CHECK(size > 0);
    CHECK(!memmem(bytes, (size_t)size, token, strlen(token)));
    CHECK(!memmem(bytes, (size_t)size, token + 6, 20));
    cn_disk_close(file);
    cn_tokens_close(tokens);
    simdisk_free(sim);
}

TEST(tokens, are_refused_once_revoked)
{
    struct simdisk *sim = simdisk_new();
    struct cn_tokens *tokens = open_on(sim);
    struct cn_err err = {0};
    char token[CN_TOKEN_SIZE], other[CN_TOKEN_SIZE], id[33], found[33];
    char name[CN_TOKEN_NAME_MAX + 1];
    CHECK_INT(0, create(tokens, "a", CN_SCOPE_READ, 1, token, id, &err));
    CHECK_INT(0, create(tokens, "b", CN_SCOPE_DEPLOY, 1, other, id, &err));
    CHECK_INT(0, cn_tokens_revoke(tokens, "a", 5, &err));
    CHECK_INT(CN_ENOTFOUND, cn_tokens_revoke(tokens, "a", 5, &err));
    CHECK_INT(0, cn_tokens_check(tokens, token, strlen(token), 1000, found, name));
    CHECK_INT(CN_SCOPE_DEPLOY, cn_tokens_check(tokens, other, strlen(other), 1000, found, name));
    cn_tokens_close(tokens);
    tokens = open_on(sim);
    CHECK_INT(0, cn_tokens_check(tokens, token, strlen(token), 1000, found, name));
    CHECK_INT(0, cn_tokens_revoke(tokens, id, 5, &err));
    cn_tokens_close(tokens);
    simdisk_free(sim);
}

/* T4 */
TEST(tokens, are_revoked_with_an_error_on_a_full_disk_and_can_be_revoked_again)
{
    struct simdisk *sim = simdisk_new();
    struct cn_tokens *tokens = open_on(sim);
    struct cn_err err = {0};
    char token[CN_TOKEN_SIZE], id[33], name[CN_TOKEN_NAME_MAX + 1];
    CHECK_INT(0, create(tokens, "a", CN_SCOPE_READ, 1, token, id, &err));
    simdisk_set_fault(sim, &(struct simdisk_fault){
                               .kinds = SIMDISK_WRITE, .at = 1, .code = -ENOSPC, .sticky = true});
    CHECK(cn_tokens_revoke(tokens, "a", 5, &err) < 0);
    CHECK_INT(0, cn_tokens_check(tokens, token, strlen(token), 1000, id, name));
    CHECK(cn_tokens_revoke(tokens, "a", 5, &err) < 0); /* found again, and failed again */
    simdisk_set_fault(sim, &(struct simdisk_fault){0});
    CHECK_INT(0, cn_tokens_revoke(tokens, "a", 5, &err));
    CHECK_INT(CN_ENOTFOUND, cn_tokens_revoke(tokens, "a", 5, &err));
    cn_tokens_close(tokens);
    tokens = open_on(sim);
    CHECK_INT(0, cn_tokens_check(tokens, token, strlen(token), 1000, id, name));
    cn_tokens_close(tokens);
    simdisk_free(sim);
}

TEST(tokens, are_not_read_from_a_damaged_file)
{
    struct simdisk *sim = simdisk_new();
    struct cn_tokens *tokens = open_on(sim);
    struct cn_err err = {0};
    char token[CN_TOKEN_SIZE], id[33];
    CHECK_INT(0, create(tokens, "a", CN_SCOPE_READ, 1, token, id, &err));
    cn_tokens_close(tokens);
    for (uint64_t at = 0; at < 150; at += 7) {
        struct simdisk *copy = simdisk_copy(sim);
        CHECK_INT(0, simdisk_damage(copy, "tokens.json", at, (unsigned)at % 8));
        CHECK_INT(CN_ECORRUPT, cn_tokens_open(simdisk_disk(copy), &tokens, &err));
        simdisk_free(copy);
    }
    simdisk_free(sim);
}

TEST(tokens, have_scopes_by_name)
{
    struct cn_err err = {0};
    CHECK_INT(CN_SCOPE_READ | CN_SCOPE_DEPLOY, cn_tokens_scopes("read,deploy", &err));
    CHECK_INT(CN_SCOPE_DATA, cn_tokens_scopes("data", &err));
    CHECK_INT(CN_EINVALID, cn_tokens_scopes("", &err));
    CHECK_INT(CN_EINVALID, cn_tokens_scopes("admin", &err));
    CHECK_INT(CN_EINVALID, cn_tokens_scopes("read,,data", &err));
}

TEST(tokens, who_was_made_and_revoked_is_noted_with_the_change_and_not_without_it)
{
    struct simdisk *sim = simdisk_new();
    struct cn_tokens *tokens = open_on(sim);
    struct cn_err err = {0};
    char token[CN_TOKEN_SIZE], id[33], name[16], scopes[CN_TOKEN_SCOPES_SIZE];
    struct cn_token_note notes[CN_TOKENS_NOTE_MAX];
    CHECK_INT(0, create(tokens, "ci", CN_SCOPE_TOKENS, 10, token, id, &err));
    simdisk_set_fault(sim, &(struct simdisk_fault){
                               .kinds = SIMDISK_CHANGES, .at = 1, .code = -EIO, .sticky = true});
    CHECK(create(tokens, "other", CN_SCOPE_READ, 11, token, id, &err) < 0);
    CHECK(cn_tokens_revoke(tokens, "ci", 12, &err) < 0);
    CHECK_INT(1, cn_tokens_notes(tokens, notes));
    simdisk_set_fault(sim, &(struct simdisk_fault){0});
    CHECK_INT(0, cn_tokens_revoke(tokens, "ci", 13, &err));
    cn_tokens_close(tokens);
    tokens = open_on(sim);
    CHECK_INT(2, cn_tokens_notes(tokens, notes));
    CHECK(!notes[0].revoked && notes[1].revoked);
    CHECK_INT(10, notes[0].time_ms);
    CHECK_INT(13, notes[1].time_ms);
    CHECK_STR("ci", notes[1].name);
    CHECK_STR(notes[0].id, notes[1].id);
    cn_tokens_scopes_text(notes[0].scopes, scopes);
    CHECK_STR("read,deploy,data", scopes);
    for (int i = 0; i < CN_TOKENS_NOTE_MAX; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        CHECK_INT(0, create(tokens, name, CN_SCOPE_READ, 100 + i, token, id, &err));
    }
    cn_tokens_close(tokens);
    tokens = open_on(sim);
    CHECK_INT(CN_TOKENS_NOTE_MAX, cn_tokens_notes(tokens, notes));
    CHECK_STR("t0", notes[0].name);
    cn_tokens_close(tokens);
    simdisk_free(sim);
}
