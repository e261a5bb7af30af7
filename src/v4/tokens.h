/* SPDX-License-Identifier: Apache-2.0 */
/* v4/tokens.h - who may deploy: tokens with scopes, in DATA/tokens.json.
 *
 *   T1  Only the SHA-256 of a token is kept: whoever reads the file cannot use it. A token has 160
 *       random bits, so that nothing slower than a hash is needed.
 *   T2  A token that was revoked is refused from the answer to the revocation on, and one whose
 *       time is over from then on: whatever was begun with it, a body that still comes, a change
 *       that waits for its turn or is being built, files of assets, what is still read, is refused
 *       too.
 *   T3  The file is replaced as a whole and sealed with a checksum; one that is damaged stops the
 *       server rather than let anybody in or everybody out.
 *   T4  A revocation that is not on disk has failed, and says so. The token is refused all the
 *       same; it stays in the list, without scopes, until a revocation or another change is
 *       written.
 *   T5  The file notes each token that was made or revoked: the note is durable with the change,
 *       and not without it. The last CN_TOKENS_NOTE_MAX are kept.
 *
 *   T6  Servers that have them in common keep them in one place: a change is made there, of what is
 *       there, and then in the file. It is told to have succeeded when all servers know it.
 *
 *   T7  Whether a token is good is answered from memory: nobody who asks (the admin's loop, a lane)
 *       waits for a disk, for PostgreSQL or for other servers.
 *
 * Threads:   any (locks inside).
 * Ownership: the owner's. */
#ifndef CN_V4_TOKENS_H
#define CN_V4_TOKENS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/guard.h"
#include "base/buf.h"
#include "base/err.h"

struct cn_disk;
struct cn_tokens;

#define CN_TOKENS_MAX 1000
#define CN_TOKEN_NAME_MAX 64
#define CN_TOKEN_SIZE 47 /* "cairn_" and 40 digits, and a NUL */
#define CN_TOKENS_NOTE_MAX 200
#define CN_TOKEN_SCOPES_SIZE 24 /* "read,deploy,data" and its NUL */

/* T5 */
struct cn_token_note {
    int64_t time_ms;
    bool revoked; /* false: it was made */
    char id[33], name[CN_TOKEN_NAME_MAX + 1];
    unsigned scopes;
};

/* Servers that have their tokens in common: the file is a copy. Called by one
 * thread at a time. */
struct cn_tokens_common {
    void *data;
    /* The text as it was kept last: 1, or 0 if none ever was. */
    int (*fetch)(void *data, struct cn_buf *text, struct cn_err *err);
    /* Replaces it. CN_EEXISTS: it is not what was fetched last. */
    int (*keep)(void *data, const char *text, struct cn_err *err);
    /* Waits until the others know; meanwhile others may be called. */
    int (*spread)(void *data, struct cn_err *err);
};

int cn_tokens_open(struct cn_disk *disk, struct cn_tokens **tokens, struct cn_err *err);
void cn_tokens_close(struct cn_tokens *tokens); /* NULL is fine */
/* T6: from now on they are those that others have, too; if there are none yet, these are. */
int cn_tokens_share(struct cn_tokens *tokens, const struct cn_tokens_common *common,
                    struct cn_err *err);
/* They may have been changed by others. */
int cn_tokens_refresh(struct cn_tokens *tokens, struct cn_err *err);

/* "read,deploy": the scopes (admin/guard.h), or CN_EINVALID. */
int cn_tokens_scopes(const char *text, struct cn_err *err);
/* What a token is to be. */
struct cn_token_wish {
    const char *name;
    unsigned scopes;
    int64_t now_ms, expires_ms; /* 0: never */
};
/* Makes one; `token` gets its text, which nobody can have again, `id` what it is revoked by. */
int cn_tokens_create(struct cn_tokens *tokens, const struct cn_token_wish *wish,
                     char token[CN_TOKEN_SIZE], char id[33], struct cn_err *err);
int cn_tokens_revoke(struct cn_tokens *tokens, const char *id_or_name, int64_t now_ms,
                     struct cn_err *err);
/* Copies the notes, oldest first; how many. */
size_t cn_tokens_notes(struct cn_tokens *tokens, struct cn_token_note notes[CN_TOKENS_NOTE_MAX]);
/* "read,deploy" */
void cn_tokens_scopes_text(unsigned scopes, char text[CN_TOKEN_SCOPES_SIZE]);
/* [{"id","name","scopes":[...],"created","expires" (if it does)},...] */
void cn_tokens_list(struct cn_tokens *tokens, struct cn_buf *json);
/* The scopes of a token at this time, 0 if it is none; its id and name go to `id` and `name`. */
unsigned cn_tokens_check(struct cn_tokens *tokens, const char *token, size_t size, int64_t now_ms,
                         char id[33], char name[CN_TOKEN_NAME_MAX + 1]);
/* The scopes of the token with this id; 0: there is none any more (T2). */
unsigned cn_tokens_scopes_of(struct cn_tokens *tokens, const char *id, int64_t now_ms);

#endif
