/* SPDX-License-Identifier: Apache-2.0 */
#include "v4/tokens.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/disk.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rand.h"
#include "text/hex.h"
#include "v4/depot.h"

#define FILE_NAME "tokens.json"
#define FILE_SIZE_MAX (4u << 20)
#define PREFIX "cairn_"
#define HASH_SIZE 32

struct entry {
    char id[33], name[CN_TOKEN_NAME_MAX + 1];
    unsigned scopes;
    int64_t created_ms, expires_ms; /* the latter 0: never */
    uint8_t hash[HASH_SIZE];
};

struct cn_tokens {
    struct cn_disk *disk;
    const struct cn_tokens_common *common; /* borrowed, or NULL (T6) */
    pthread_mutex_t turn;                  /* held by who changes, also while it is written */
    pthread_mutex_t lock;  /* guards what follows, which only who has the turn changes (T7) */
    struct entry *entries; /* owned */
    size_t count;
    struct cn_token_note
        notes[CN_TOKENS_NOTE_MAX + 1]; /* T5, oldest first; one more while it is saved */
    size_t note_count;
};

static const struct {
    const char *name;
    unsigned scope;
} scopes_known[] = {{"read", CN_SCOPE_READ}, {"deploy", CN_SCOPE_DEPLOY}, {"data", CN_SCOPE_DATA}};

static void hash_token(const char *token, size_t size, uint8_t hash[HASH_SIZE])
{
    unsigned count = 0;
    int good = EVP_Digest(token, size, hash, &count, EVP_sha256(), NULL);
    CN_ASSERT(good == 1 && count == HASH_SIZE);
}

int cn_tokens_scopes(const char *text, struct cn_err *err)
{
    int scopes = 0;
    while (*text) {
        size_t size = strcspn(text, ",");
        unsigned found = 0;
        for (size_t i = 0; i < CN_ARRAY_COUNT(scopes_known); i++) {
            if (strlen(scopes_known[i].name) == size &&
                memcmp(scopes_known[i].name, text, size) == 0)
                found = scopes_known[i].scope;
        }
        if (!found)
            return cn_err_set(err, CN_EINVALID, "a scope is read, deploy or data, not \"%.*s\"",
                              (int)(size < 40 ? size : 40), text);
        scopes |= (int)found;
        text += size + (text[size] == ',');
    }
    return scopes ? scopes : cn_err_set(err, CN_EINVALID, "a token needs a scope");
}

void cn_tokens_scopes_text(unsigned scopes, char text[CN_TOKEN_SCOPES_SIZE])
{
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < CN_ARRAY_COUNT(scopes_known); i++) {
        if (scopes & scopes_known[i].scope)
            at += (size_t)snprintf(text + at, CN_TOKEN_SCOPES_SIZE - at, "%s%s", at ? "," : "",
                                   scopes_known[i].name);
    }
}

static void append_scopes(struct cn_buf *json, unsigned scopes)
{
    bool first = true;
    cn_buf_append_byte(json, '[');
    for (size_t i = 0; i < CN_ARRAY_COUNT(scopes_known); i++) {
        if (!(scopes & scopes_known[i].scope))
            continue;
        cn_buf_printf(json, "%s\"%s\"", first ? "" : ",", scopes_known[i].name);
        first = false;
    }
    cn_buf_append_byte(json, ']');
}

/* --- the file ----------------------------------------------------------------------------------
 */

static void append_note(struct cn_buf *json, const struct cn_token_note *note)
{
    cn_buf_printf(json,
                  "\n{\"time\":%" PRId64 ",\"revoked\":%s,\"id\":\"%s\",\"name\":", note->time_ms,
                  note->revoked ? "true" : "false", note->id);
    cn_buf_append_json(json, note->name, strlen(note->name));
    cn_buf_printf(json, ",\"scopes\":%u}", note->scopes);
}

static void add_note(struct cn_tokens *tokens, const struct entry *entry, unsigned scopes,
                     bool revoked, int64_t now_ms)
{
    CN_ASSERT(tokens->note_count < CN_ARRAY_COUNT(tokens->notes));
    struct cn_token_note *note = &tokens->notes[tokens->note_count++];
    *note = (struct cn_token_note){.time_ms = now_ms, .revoked = revoked, .scopes = scopes};
    memcpy(note->id, entry->id, sizeof(note->id));
    memcpy(note->name, entry->name, sizeof(note->name));
}

/* With the turn. What is checked: everything behind the checksum's own line. */
static int write_all(struct cn_tokens *tokens, struct cn_err *err)
{
    struct cn_buf list = {0}, file = {0};
    for (size_t i = 0; i < tokens->count; i++) {
        const struct entry *entry = &tokens->entries[i];
        if (!entry->scopes)
            continue; /* T4 */
        cn_buf_printf(&list, "%s\n{\"id\":\"%s\",\"name\":", list.size ? "," : "", entry->id);
        cn_buf_append_json(&list, entry->name, strlen(entry->name));
        cn_buf_printf(&list, ",\"scopes\":%u,\"created\":%" PRId64, entry->scopes,
                      entry->created_ms);
        if (entry->expires_ms)
            cn_buf_printf(&list, ",\"expires\":%" PRId64, entry->expires_ms);
        cn_buf_append_str(&list, ",\"sha256\":\"");
        cn_hex_append(&list, entry->hash, HASH_SIZE);
        cn_buf_append_str(&list, "\"}");
    }
    size_t first = tokens->note_count > CN_TOKENS_NOTE_MAX;
    cn_buf_append_str(&list, "],\"notes\":[");
    for (size_t i = first; i < tokens->note_count; i++) {
        cn_buf_append_str(&list, i > first ? "," : "");
        append_note(&list, &tokens->notes[i]);
    }
    cn_buf_append_str(&list, "]}\n");
    cn_buf_printf(&file, "{\"crc32c\":\"%08x\",\"tokens\":[", cn_crc32c(0, list.data, list.size));
    cn_buf_append(&file, list.data, list.size);
    const struct cn_tokens_common *common = tokens->common;
    int rc = common ? common->keep(common->data, cn_buf_text(&file), err) : 0;
    if (rc == 0) {
        rc = cn_disk_replace(tokens->disk, FILE_NAME, file.data, file.size);
        if (rc < 0 && !common)
            cn_err_errno(err, -rc, "cannot write " FILE_NAME);
        else
            rc = 0; /* T6: a copy, which the next start makes again */
    }
    cn_buf_fini(&list);
    cn_buf_fini(&file);
    return rc;
}

/* With a note that was added for it. */
static int save(struct cn_tokens *tokens, struct cn_err *err)
{
    int rc = write_all(tokens, err);
    pthread_mutex_lock(&tokens->lock);
    if (rc < 0)
        tokens->note_count--; /* T5 */
    else if (tokens->note_count > CN_TOKENS_NOTE_MAX)
        memmove(tokens->notes, tokens->notes + 1, --tokens->note_count * sizeof(*tokens->notes));
    pthread_mutex_unlock(&tokens->lock);
    return rc;
}

static bool read_note(const struct cn_json *item, struct cn_token_note *note)
{
    const char *id = cn_json_text(item, "id"), *name = cn_json_text(item, "name");
    const struct cn_json *revoked = cn_json_find(item, "revoked");
    if (!id || strlen(id) != 32 || !name || strlen(name) > CN_TOKEN_NAME_MAX)
        return false;
    *note = (struct cn_token_note){
        .time_ms = cn_json_int(item, "time"),
        .revoked = revoked && revoked->boolean,
        .scopes = (unsigned)cn_json_int(item, "scopes") & CN_SCOPE_TOKENS,
    };
    snprintf(note->id, sizeof(note->id), "%s", id);
    snprintf(note->name, sizeof(note->name), "%s", name);
    return true;
}

/* A file of before has none. */
static bool read_notes(struct cn_tokens *tokens, const struct cn_json *items)
{
    bool good = true;
    for (const struct cn_json *item = items ? items->first : NULL; item && good;
         item = item->next) {
        good = tokens->note_count < CN_TOKENS_NOTE_MAX &&
               read_note(item, &tokens->notes[tokens->note_count]);
        tokens->note_count += good;
    }
    return good;
}

static bool read_entry(const struct cn_json *item, struct entry *entry)
{
    const char *id = cn_json_text(item, "id"), *name = cn_json_text(item, "name");
    const char *hash = cn_json_text(item, "sha256");
    if (!id || strlen(id) != 32 || !name || strlen(name) > CN_TOKEN_NAME_MAX || !hash ||
        strlen(hash) != (size_t)2 * HASH_SIZE || !cn_hex_decode(hash, HASH_SIZE, entry->hash))
        return false;
    snprintf(entry->id, sizeof(entry->id), "%s", id);
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    entry->scopes = (unsigned)cn_json_int(item, "scopes") & CN_SCOPE_TOKENS;
    entry->created_ms = cn_json_int(item, "created");
    entry->expires_ms = cn_json_int(item, "expires");
    return true;
}

static int parse(struct cn_tokens *tokens, const struct cn_buf *text, struct cn_err *err)
{
    static const char mark[] = "\"tokens\":[";
    struct cn_json *root = cn_json_parse((const char *)text->data, text->size, NULL);
    const char *crc = cn_json_text(root, "crc32c");
    const uint8_t *list = memmem(text->data, text->size, mark, sizeof(mark) - 1);
    char want[9] = "";
    if (list) {
        list += sizeof(mark) - 1;
        snprintf(want, sizeof(want), "%08x",
                 cn_crc32c(0, list, text->size - (size_t)(list - text->data)));
    }
    bool good = crc && strcmp(crc, want) == 0;
    const struct cn_json *items = cn_json_find(root, "tokens");
    for (const struct cn_json *item = items ? items->first : NULL; item && good;
         item = item->next) {
        tokens->entries =
            cn_realloc(tokens->entries, (tokens->count + 1) * sizeof(*tokens->entries));
        good = tokens->count < CN_TOKENS_MAX && read_entry(item, &tokens->entries[tokens->count]);
        tokens->count += good;
    }
    good = good && read_notes(tokens, cn_json_find(root, "notes"));
    cn_json_free(root);
    return good ? 0
                : cn_err_set(err, CN_ECORRUPT,
                             FILE_NAME " is damaged: remove it, and make new tokens"); /* T3 */
}

int cn_tokens_open(struct cn_disk *disk, struct cn_tokens **out, struct cn_err *err)
{
    struct cn_tokens *tokens = CN_NEW(struct cn_tokens);
    struct cn_disk_file *file;
    struct cn_buf text = {0};
    tokens->disk = disk;
    pthread_mutex_init(&tokens->turn, NULL);
    pthread_mutex_init(&tokens->lock, NULL);
    int rc = cn_disk_open(disk, FILE_NAME, CN_DISK_READONLY, &file);
    if (rc == 0) {
        int64_t size = cn_disk_size(file);
        cn_buf_reserve(&text, FILE_SIZE_MAX);
        int64_t count =
            size > FILE_SIZE_MAX ? -EFBIG : cn_disk_read(file, text.data, (size_t)size, 0);
        cn_disk_close(file);
        text.size = count > 0 ? (size_t)count : 0;
        rc = count < 0 ? cn_err_errno(err, (int)-count, "cannot read " FILE_NAME)
                       : parse(tokens, &text, err);
    } else if (rc == -ENOENT) {
        rc = 0;
    } else {
        cn_err_errno(err, -rc, "cannot read " FILE_NAME);
    }
    cn_buf_fini(&text);
    if (rc < 0) {
        cn_tokens_close(tokens);
        return rc;
    }
    *out = tokens;
    return 0;
}

void cn_tokens_close(struct cn_tokens *tokens)
{
    if (!tokens)
        return;
    pthread_mutex_destroy(&tokens->turn);
    pthread_mutex_destroy(&tokens->lock);
    cn_free(tokens->entries);
    cn_free(tokens);
}

/* --- in common (T6) ----------------------------------------------------------------------------
 */

/* They become what another list is. */
static void adopt(struct cn_tokens *tokens, struct cn_tokens *other)
{
    pthread_mutex_lock(&tokens->lock);
    struct entry *before = tokens->entries;
    tokens->entries = other->entries;
    other->entries = before;
    tokens->count = other->count;
    memcpy(tokens->notes, other->notes, sizeof(tokens->notes));
    tokens->note_count = other->note_count;
    pthread_mutex_unlock(&tokens->lock);
}

/* With the turn: they are what others have. 1, or 0 if nobody has kept any. */
static int refresh(struct cn_tokens *tokens, struct cn_err *err)
{
    struct cn_buf text = {0};
    if (!tokens->common)
        return 0;
    int rc = tokens->common->fetch(tokens->common->data, &text, err);
    if (rc == 1) {
        struct cn_tokens *other = CN_NEW(struct cn_tokens);
        rc = parse(other, &text, err);
        if (rc == 0) {
            adopt(tokens, other);
            (void)cn_disk_replace(tokens->disk, FILE_NAME, text.data, text.size); /* a copy */
            rc = 1;
        }
        cn_free(other->entries);
        cn_free(other);
    }
    cn_buf_fini(&text);
    return rc;
}

int cn_tokens_refresh(struct cn_tokens *tokens, struct cn_err *err)
{
    pthread_mutex_lock(&tokens->turn);
    int rc = refresh(tokens, err);
    pthread_mutex_unlock(&tokens->turn);
    return rc < 0 ? rc : 0;
}

int cn_tokens_share(struct cn_tokens *tokens, const struct cn_tokens_common *common,
                    struct cn_err *err)
{
    pthread_mutex_lock(&tokens->turn);
    tokens->common = common;
    int rc = refresh(tokens, err);
    if (rc == 0)
        rc = write_all(tokens, err);
    pthread_mutex_unlock(&tokens->turn);
    return rc < 0 ? rc : 0;
}

static int spread(struct cn_tokens *tokens, int rc, struct cn_err *err)
{
    return rc == 0 && tokens->common ? tokens->common->spread(tokens->common->data, err) : rc;
}

/* --- tokens ------------------------------------------------------------------------------------
 */

static bool name_is_good(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size <= CN_TOKEN_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@ ") ==
               size;
}

/* With the turn: the index, or -1. */
static int find(const struct cn_tokens *tokens, const char *id_or_name)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (strcmp(tokens->entries[i].id, id_or_name) == 0 ||
            strcmp(tokens->entries[i].name, id_or_name) == 0)
            return (int)i;
    }
    return -1;
}

static int add(struct cn_tokens *tokens, const struct entry *entry, struct cn_err *err)
{
    if (tokens->count == CN_TOKENS_MAX)
        return cn_err_set(err, CN_ELIMIT, "there are %d tokens; revoke one", CN_TOKENS_MAX);
    if (find(tokens, entry->name) >= 0)
        return cn_err_set(err, CN_EEXISTS, "there is a token named %s", entry->name);
    pthread_mutex_lock(&tokens->lock);
    tokens->entries = cn_realloc(tokens->entries, (tokens->count + 1) * sizeof(*tokens->entries));
    tokens->entries[tokens->count++] = *entry;
    add_note(tokens, entry, entry->scopes, false, entry->created_ms);
    pthread_mutex_unlock(&tokens->lock);
    int rc = save(tokens, err);
    pthread_mutex_lock(&tokens->lock);
    tokens->count -= rc < 0;
    pthread_mutex_unlock(&tokens->lock);
    return rc;
}

int cn_tokens_create(struct cn_tokens *tokens, const struct cn_token_wish *wish,
                     char token[CN_TOKEN_SIZE], char id[33], struct cn_err *err)
{
    struct entry entry = {
        .scopes = wish->scopes, .created_ms = wish->now_ms, .expires_ms = wish->expires_ms};
    uint8_t random[20];
    CN_ASSERT(wish->scopes && !(wish->scopes & ~(unsigned)CN_SCOPE_TOKENS));
    if (!name_is_good(wish->name))
        return cn_err_set(err, CN_EINVALID,
                          "a token's name has 1 to %d letters, digits, spaces or -_.@",
                          CN_TOKEN_NAME_MAX);
    snprintf(entry.name, sizeof(entry.name), "%s", wish->name);
    cn_depot_digits(entry.id);
    cn_rand_secure(random, sizeof(random));
    int prefix = snprintf(token, CN_TOKEN_SIZE, PREFIX);
    cn_hex_encode(random, sizeof(random), token + prefix);
    token[CN_TOKEN_SIZE - 1] = 0;
    OPENSSL_cleanse(random, sizeof(random));
    hash_token(token, CN_TOKEN_SIZE - 1, entry.hash); /* T1 */
    int rc;
    pthread_mutex_lock(&tokens->turn);
    do {
        rc = refresh(tokens, err);
        if (rc >= 0)
            rc = add(tokens, &entry, err);
    } while (rc == CN_EEXISTS && find(tokens, entry.name) < 0); /* others were quicker: T6 */
    pthread_mutex_unlock(&tokens->turn);
    snprintf(id, 33, "%s", entry.id);
    return spread(tokens, rc, err);
}

/* With the turn. */
static int revoke(struct cn_tokens *tokens, size_t at, int64_t now_ms, struct cn_err *err)
{
    struct entry *entry = &tokens->entries[at];
    pthread_mutex_lock(&tokens->lock);
    add_note(tokens, entry, entry->scopes, true, now_ms);
    entry->scopes = 0; /* T2: it is refused even if the disk fails */
    pthread_mutex_unlock(&tokens->lock);
    int rc = save(tokens, err);
    if (rc < 0) {
        cn_err_context(err, "the token is refused until the next start only; revoke it again");
        return rc;
    }
    pthread_mutex_lock(&tokens->lock);
    memmove(entry, entry + 1, (--tokens->count - at) * sizeof(*entry)); /* T4 */
    pthread_mutex_unlock(&tokens->lock);
    return 0;
}

int cn_tokens_revoke(struct cn_tokens *tokens, const char *id_or_name, int64_t now_ms,
                     struct cn_err *err)
{
    pthread_mutex_lock(&tokens->turn);
    int rc = refresh(tokens, err), at = find(tokens, id_or_name);
    if (rc < 0) {
        cn_err_context(err, "the token is not revoked");
    } else if (at < 0) {
        rc = cn_err_set(err, CN_ENOTFOUND, "there is no token %.64s", id_or_name);
    } else {
        rc = revoke(tokens, (size_t)at, now_ms, err);
    }
    pthread_mutex_unlock(&tokens->turn);
    return spread(tokens, rc, err);
}

size_t cn_tokens_notes(struct cn_tokens *tokens, struct cn_token_note notes[CN_TOKENS_NOTE_MAX])
{
    pthread_mutex_lock(&tokens->lock);
    size_t count = tokens->note_count;
    CN_ASSERT(count <= CN_TOKENS_NOTE_MAX);
    memcpy(notes, tokens->notes, count * sizeof(*notes));
    pthread_mutex_unlock(&tokens->lock);
    return count;
}

void cn_tokens_list(struct cn_tokens *tokens, struct cn_buf *json)
{
    pthread_mutex_lock(&tokens->lock);
    cn_buf_append_byte(json, '[');
    for (size_t i = 0; i < tokens->count; i++) {
        const struct entry *entry = &tokens->entries[i];
        cn_buf_printf(json, "%s{\"id\":\"%s\",\"name\":", i ? "," : "", entry->id);
        cn_buf_append_json(json, entry->name, strlen(entry->name));
        cn_buf_append_str(json, ",\"scopes\":");
        append_scopes(json, entry->scopes);
        cn_buf_printf(json, ",\"created\":%" PRId64, entry->created_ms);
        if (entry->expires_ms)
            cn_buf_printf(json, ",\"expires\":%" PRId64, entry->expires_ms);
        cn_buf_append_byte(json, '}');
    }
    cn_buf_append_byte(json, ']');
    pthread_mutex_unlock(&tokens->lock);
}

/* T2 */
static unsigned scopes_at(const struct entry *entry, int64_t now_ms)
{
    return entry->expires_ms && entry->expires_ms <= now_ms ? 0 : entry->scopes;
}

unsigned cn_tokens_check(struct cn_tokens *tokens, const char *token, size_t size, int64_t now_ms,
                         char id[33], char name[CN_TOKEN_NAME_MAX + 1])
{
    uint8_t hash[HASH_SIZE];
    unsigned scopes = 0;
    if (size != CN_TOKEN_SIZE - 1)
        return 0;
    hash_token(token, size, hash);
    pthread_mutex_lock(&tokens->lock);
    for (size_t i = 0; i < tokens->count; i++) {
        const struct entry *entry = &tokens->entries[i];
        if (CRYPTO_memcmp(entry->hash, hash, HASH_SIZE) != 0)
            continue;
        scopes = scopes_at(entry, now_ms);
        snprintf(id, 33, "%s", entry->id);
        snprintf(name, CN_TOKEN_NAME_MAX + 1, "%s", entry->name);
    }
    pthread_mutex_unlock(&tokens->lock);
    return scopes;
}

unsigned cn_tokens_scopes_of(struct cn_tokens *tokens, const char *id, int64_t now_ms)
{
    unsigned scopes = 0;
    pthread_mutex_lock(&tokens->lock);
    for (size_t i = 0; i < tokens->count; i++) {
        if (strcmp(tokens->entries[i].id, id) == 0)
            scopes = scopes_at(&tokens->entries[i], now_ms);
    }
    pthread_mutex_unlock(&tokens->lock);
    return scopes;
}
