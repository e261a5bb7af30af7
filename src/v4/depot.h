/* SPDX-License-Identifier: Apache-2.0 */
/* v4/depot.h - workers that were deployed by upload: what is known of them, durably.
 *
 *     DATA/deployed/state.json        what is deployed: workers, their versions, which one serves
 *     DATA/deployed/key               with which secrets are encrypted (mode 0600)
 *     DATA/deployed/versions/ID.json  a version: modules, bindings, compatibility, limits
 *     DATA/deployed/code/ID/          src/ (modules as uploaded), bundle/, assets/, and checksums
 *     DATA/deployed/assets/WORKER/    files of assets by the hash that their sender gave them
 *     DATA/deployed/transfers/        files on their way in and out; nothing after a start
 *
 * Terms: docs/understand/glossary.md.
 *
 * A version is written once and never changed. What serves is said by one file, state.json, which
 * is replaced as a whole. The life of a deployment:
 *
 *     upload ──► files of the version, synced ──► built ──► instances start on the first lane
 *                                                                 │
 *        the old version serves on ◄── refused at any of these    ▼
 *                                       state.json replaced, then classes.json: it is deployed
 *
 *   D1  state.json names only versions whose files, built ones too, were synced before.
 *   D2  Code, bindings, migrations, assets, schedules and routes that belong together become
 *       current by one replacement of state.json. Before it a restart has the old version, after
 *       it the new one. classes.json follows from it: a restart brings it in line.
 *   D3  state.json is replaced only when instances of every worker have started with it, and before
 *       a request reaches them.
 *   D4  A secret is on disk only encrypted, with a nonce of its own; its worker and its name are
 *       authenticated with it, so that it is of no use in another place.
 *   D5  Names from outside (modules, assets) become paths only after cn_depot_path_is_good(): they
 *       stay inside their folder.
 *   D6  What no state names is garbage: of an upload that was refused or cut short. It is removed
 *       at the next start, and versions past CN_DEPOT_VERSION_MAX with the change that they fall
 *       out of.
 *   D7  One change at a time. Who reads has a reference to a state, which nobody changes.
 *   D8  A change that was given up (the server stops, it did not start) is never committed
 *       afterwards, and one that was committed is never given up: files of a version go only when
 *       no state can name it any more.
 *   DA  Who changed what is part of the state that the change made: it is durable with the change,
 *       and not without it. The last CN_DEPOT_NOTE_MAX are kept.
 *
 *   DB  Several servers may have one depot together (struct cn_depot_common): then what is deployed
 *       is said by what they share, and this directory has a copy of the state and of the versions
 *       that it needs. A change begins when nobody else changes, is tried here, is offered to the
 *       others, and is committed where all can see it before it is anywhere else.
 *
 *   DC  Who asked for a change may have lost the right to it while it waited, was built or was
 *       started: that is looked at again right before the state is replaced (CN_EDENIED).
 *
 *   D9  code/ID/sums.json has the CRC-32C of each module and asset as it was uploaded, and
 *       code/ID/bundle.json those of what was built of them. Both are looked at before a version is
 *       served for the first time since a start, and by cn_depot_check(). What was built is built
 *       again if it is damaged; a version that is damaged otherwise is not served, and the others
 *       are (deploy/hosted.h, H5). Nothing is rolled back by itself.
 *
 * Threads:   any; see D7.
 * Ownership: the owner's; opened after the data directory, closed before it. */
#ifndef CN_V4_DEPOT_H
#define CN_V4_DEPOT_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

struct cn_depot;
struct cn_disk;

#define CN_DEPOT_ID_SIZE 37      /* a UUID and its NUL */
#define CN_DEPOT_SCRIPT_MAX 1000 /* workers */
#define CN_DEPOT_VERSION_MAX 100 /* of a worker that are kept */
#define CN_DEPOT_ROLLOUT_MAX 2   /* versions that serve at the same time */
#define CN_DEPOT_SHARE_ALL 10000u
#define CN_DEPOT_RESOURCE_MAX 10000
#define CN_DEPOT_NOTE_MAX 1000 /* of who changed what, that are kept */
#define CN_DEPOT_STATE_SIZE_MAX (64u << 20)
#define CN_DEPOT_VERSION_SIZE_MAX (32u << 20)
#define CN_DEPOT_MODULE_SIZE_MAX (64u << 20)
#define CN_DEPOT_TRANSFERS "deployed/transfers"

/* What the list of versions shows; the rest is in the version's file. */
struct cn_depot_version {
    char id[CN_DEPOT_ID_SIZE];
    char code[CN_DEPOT_ID_SIZE]; /* of the version whose folder in code/ it has */
    int64_t number;              /* counts from 1 */
    int64_t created_ms;
    char *source, *author, *message, *tag; /* owned; author: the token's name */
};

/* A version with its share of new requests, in hundredths of a percent. */
struct cn_depot_share {
    char version[CN_DEPOT_ID_SIZE];
    unsigned share;
};

/* Which versions serve: together they have CN_DEPOT_SHARE_ALL. The newest comes first (R2 of
 * worker/script.h). */
struct cn_depot_shares {
    struct cn_depot_share items[CN_DEPOT_ROLLOUT_MAX];
    size_t count;
};

struct cn_depot_deployment {
    char id[CN_DEPOT_ID_SIZE];
    struct cn_depot_shares shares;
    int64_t created_ms;
    char *source, *author, *message; /* owned */
};

struct cn_depot_texts {
    char **items; /* owned, and each of them */
    size_t count;
};

struct cn_depot_script {
    char *name;
    char id[33]; /* wrangler's "tag" of a script */
    int64_t created_ms, modified_ms, next_number;
    struct cn_depot_shares serving; /* count 0: none was deployed yet */
    bool subdomain, previews;       /* NAME.DOMAIN leads to it */
    struct cn_depot_texts crons, routes;
    struct cn_depot_texts domains;     /* host names */
    struct cn_depot_texts migrations;  /* each is JSON, an entry of `migrations` with its tag */
    struct cn_depot_texts consumers;   /* each is JSON, an entry of queues.consumers with "id" */
    struct cn_depot_version *versions; /* owned; oldest first */
    size_t version_count;
    struct cn_depot_deployment *deployments; /* owned; oldest first, the last one serves */
    size_t deployment_count;
};

/* A namespace of KV, a database of D1, a queue: what was created under a name and has an id. */
struct cn_depot_resource {
    char *kind; /* "kv", "d1", "r2", "queue" */
    char *id, *name;
    int64_t created_ms;
};

/* Who changed what. */
struct cn_depot_note {
    int64_t time_ms;
    char token[33]; /* its id; empty: the operator's */
    char *by;       /* its name */
    char *action, *worker, *detail;
};

struct cn_depot_state {
    atomic_uint refs;
    char account[33];
    struct cn_depot_script *scripts; /* owned; by name */
    size_t script_count;
    struct cn_depot_resource *resources; /* owned; oldest first */
    size_t resource_count;
    struct cn_depot_note *notes; /* owned; oldest first (DA) */
    size_t note_count;
    struct cn_depot_texts gone;    /* workers that were deleted: their classes go with them */
    struct cn_depot_texts pullers; /* consumers over HTTP: each is JSON, of queues.consumers */
};

#define CN_DEPOT_KEY_SIZE 32

/* DB: what servers that share a depot do together. By the thread that changes, which may block. */
struct cn_depot_common {
    void *data;
    uint8_t key[CN_DEPOT_KEY_SIZE]; /* for secrets, in the place of deployed/key */
    struct cn_depot_state *first;   /* the current state, when the depot is opened */
    /* Waits until nobody else changes, and the state here is the current one. */
    int (*begin)(void *data, struct cn_err *err);
    /* What is new in a state goes to the others; if it `deploys`, waits until all can serve it. */
    int (*offer)(void *data, const struct cn_depot_state *before,
                 const struct cn_depot_state *state, bool deploys, struct cn_err *err);
    /* Makes it the current one, with the table of classes (empty: as it is). On a lane, too. */
    int (*commit)(void *data, const struct cn_depot_state *state, bool deploys,
                  const struct cn_buf *classes, struct cn_err *err);
    /* The change that was begun is over. */
    void (*end)(void *data, bool committed);
    /* Fetches the files of a version, and of the code that it has. */
    int (*need)(void *data, const char *version, const char *code, struct cn_err *err);
};

/* --- states (depot_state.c) ------------------------------------------------------------------ */

struct cn_depot_state *cn_depot_state_new(void); /* with an account of its own */
struct cn_depot_state *cn_depot_state_copy(const struct cn_depot_state *state);
struct cn_depot_state *cn_depot_state_ref(struct cn_depot_state *state);
void cn_depot_state_unref(struct cn_depot_state *state); /* NULL is fine */
void cn_depot_state_write(const struct cn_depot_state *state, struct cn_buf *json);
/* NULL: it is none. */
struct cn_depot_state *cn_depot_state_read(const char *text, size_t size, struct cn_err *err);

struct cn_depot_script *cn_depot_find(const struct cn_depot_state *state, const char *name);
struct cn_depot_script *cn_depot_add_script(struct cn_depot_state *state, const char *name,
                                            int64_t now_ms);
void cn_depot_remove_script(struct cn_depot_state *state, const char *name);
const struct cn_depot_version *cn_depot_find_version(const struct cn_depot_script *script,
                                                     const char *id);
/* Whether the version serves, whatever its share. */
bool cn_depot_serves(const struct cn_depot_script *script, const char *version);
/* The newest of those that serve, or "". */
const char *cn_depot_serving(const struct cn_depot_script *script);
/* Adds a version; its texts are copied, its number is given. */
struct cn_depot_version *cn_depot_add_version(struct cn_depot_script *script,
                                              const struct cn_depot_version *version);
/* Makes versions of the script those that serve; they need not be in order. */
void cn_depot_deploy_shares(struct cn_depot_script *script, const struct cn_depot_shares *shares,
                            const char *source, const char *author, const char *message,
                            int64_t now_ms);
/* The same with one version for everything. */
void cn_depot_deploy_version(struct cn_depot_script *script, const char *version,
                             const char *source, const char *author, const char *message,
                             int64_t now_ms);
const struct cn_depot_resource *cn_depot_resource(const struct cn_depot_state *state,
                                                  const char *kind, const char *id,
                                                  const char *name);
void cn_depot_add_resource(struct cn_depot_state *state, const char *kind, const char *id,
                           const char *name, int64_t now_ms);
void cn_depot_remove_resource(struct cn_depot_state *state, const char *kind, const char *id);
/* One that is there gets another name. */
void cn_depot_rename_resource(struct cn_depot_state *state, const char *kind, const char *id,
                              const char *name);
/* DA; texts are copied. */
void cn_depot_add_note(struct cn_depot_state *state, const struct cn_depot_note *note);
void cn_depot_texts_add(struct cn_depot_texts *texts, const char *text);
void cn_depot_texts_clear(struct cn_depot_texts *texts);

/* A new UUID of version 4; and 32 digits. */
void cn_depot_uuid(char text[CN_DEPOT_ID_SIZE]);
void cn_depot_digits(char text[33]);
/* "2026-11-15T06:00:00.000000Z" as a JSON string. */
void cn_depot_append_time(struct cn_buf *json, int64_t time_ms);

/* --- the depot ------------------------------------------------------------------------------- */

/* Opens it, removing garbage (D6); `domain` is that of the server (borrowed), or NULL; `common` is
 * borrowed: NULL: it is this server's alone. */
int cn_depot_open(struct cn_disk *disk, const char *root, const char *domain,
                  const struct cn_depot_common *common, struct cn_depot **depot,
                  struct cn_err *err);
void cn_depot_close(struct cn_depot *depot); /* NULL is fine */
struct cn_disk *cn_depot_disk(const struct cn_depot *depot);

/* The files of a depot that nobody has opened yet: a data directory that is being restored. */
int cn_depot_restore(struct cn_disk *disk, const struct cn_depot_state *state,
                     const uint8_t key[CN_DEPOT_KEY_SIZE], struct cn_err *err);

/* The state as it is; a reference of the caller's. */
struct cn_depot_state *cn_depot_take(struct cn_depot *depot);
/* What the next deployment is made of: the state that is being changed to, or the current one. */
struct cn_depot_state *cn_depot_take_next(struct cn_depot *depot);
/* Makes `started` durable, which came from cn_depot_take_next() and has started (D3), unless nobody
 * wants it any more. On a lane. 1: and `classes` with it (DB). */
int cn_depot_commit(struct cn_depot *depot, const struct cn_depot_state *started,
                    const struct cn_buf *classes, struct cn_err *err);
/* Whether what cn_depot_take_next() gives is only to be tried. */
bool cn_depot_rehearses(struct cn_depot *depot);

/* Takes that back: something that belongs to it could not be made durable. */
void cn_depot_revert(struct cn_depot *depot);

/* Begins a change: the caller gets a state to alter and is alone until cn_depot_change_end(). NULL:
 * others change it (DB). */
struct cn_depot_state *cn_depot_change_begin(struct cn_depot *depot, struct cn_err *err);
/* Ends it: with `deploy` by a deployment that must succeed; without, the state is replaced as it
 * is, which must not change what serves. The state is the depot's from here on. */
int cn_depot_change_end(struct cn_depot *depot, struct cn_depot_state *state,
                        int (*deploy)(void *data, struct cn_err *err), void *data,
                        struct cn_err *err);
/* DC: who is asked whether the change may still happen, until its end; by who has begun it. */
void cn_depot_change_guard(struct cn_depot *depot, bool (*may)(void *data), void *data);
/* No change begins while it is on; by one thread. */
void cn_depot_pause(struct cn_depot *depot, bool on);
/* Nothing is changed. */
void cn_depot_change_drop(struct cn_depot *depot, struct cn_depot_state *state);

/* DB: what others have done. False: a change is under way here; else nobody begins one until the
 * end. By one thread. */
bool cn_depot_follow_begin(struct cn_depot *depot);
/* The state, of which the caller gives a reference away, is the current one; what served until now
 * is there until the end. */
int cn_depot_adopt(struct cn_depot *depot, struct cn_depot_state *state, struct cn_err *err);
/* Whether the server could be deployed with the state. */
int cn_depot_rehearse(struct cn_depot *depot, struct cn_depot_state *state,
                      int (*deploy)(void *data, struct cn_err *err), void *data,
                      struct cn_err *err);
/* `served`: what is current is what is served, too. */
void cn_depot_follow_end(struct cn_depot *depot, bool served);

/* --- versions ----------------------------------------------------------------------------------
 */

/* A relative path of ordinary segments that stays inside its folder (D5). */
bool cn_depot_path_is_good(const char *path, size_t size);
/* Writes a file below code/ID/FOLDER/, with the folders on the way. Within a change, whose end
 * makes it durable before the state (D1). */
int cn_depot_put_file(struct cn_depot *depot, const char *code, const char *folder,
                      const char *path, const void *bytes, size_t size, struct cn_err *err);
/* The same with a file of assets that the worker has sent under the hash. */
int cn_depot_link_asset(struct cn_depot *depot, const char *code, const char *worker,
                        const char *path, const char *hash, struct cn_err *err);
/* A module of code/ID/ as it was uploaded. */
int cn_depot_read_module(struct cn_depot *depot, const char *code, const char *path,
                         struct cn_buf *out, struct cn_err *err);
/* D9: notes the checksums of the modules and assets of code/ID/; likewise, after all of them. */
int cn_depot_put_sums(struct cn_depot *depot, const char *code, struct cn_err *err);
/* Writes the version's file; likewise. */
int cn_depot_put_version(struct cn_depot *depot, const char *id, struct cn_buf *json,
                         struct cn_err *err);
/* The version's file; NULL with an error. The caller frees it. */
struct cn_json *cn_depot_read_version(struct cn_depot *depot, const char *id, struct cn_err *err);
/* D9: likewise for what was built; without a change under way it is durable when this returns. */
int cn_depot_put_built(struct cn_depot *depot, const char *code, bool in_change,
                       struct cn_err *err);
/* D9: whether the version's file, its modules and its assets are what was uploaded; and what was
 * built of them. CN_ECORRUPT with a sentence. */
int cn_depot_verify(struct cn_depot *depot, const struct cn_depot_script *script,
                    const char *version, struct cn_err *err);
int cn_depot_verify_built(struct cn_depot *depot, const struct cn_depot_script *script,
                          const char *version, struct cn_err *err);
/* Calls `problem` for each of its files that is damaged or missing: the key, the state, what it
 * names of versions. Of a data directory that nobody uses; changes nothing. */
void cn_depot_check(struct cn_disk *disk, void (*problem)(void *data, const char *text),
                    void *data);
/* Removes the files of a version that no state names. */
void cn_depot_remove_version(struct cn_depot *depot, const char *id);

/* Assets of a worker, by hash (32 digits). */
bool cn_depot_has_asset(struct cn_depot *depot, const char *worker, const char *hash);
/* Files of one request on their way in (depot_arrival.c): they are there when it has ended well;
 * one that is there is whole in any case. `rc` of the end is how it went so far; it is returned, or
 * what the end itself failed with. */
struct cn_depot_arrival;
int cn_depot_arrival_begin(struct cn_depot *depot, const char *worker,
                           struct cn_depot_arrival **arrival, struct cn_err *err);
int cn_depot_arrival_put(struct cn_depot_arrival *arrival, const char *hash, const void *bytes,
                         size_t size, struct cn_err *err);
int cn_depot_arrival_end(struct cn_depot_arrival *arrival, int rc, struct cn_err *err);

/* D4: base64 of nonce, text and tag. */
void cn_depot_seal(struct cn_depot *depot, const char *worker, const char *name, const char *text,
                   size_t size, struct cn_buf *sealed);
/* The text; false: it is not what was sealed, or not with this key. */
bool cn_depot_unseal(struct cn_depot *depot, const char *worker, const char *name,
                     const char *sealed, size_t size, struct cn_buf *text);

#define CN_DEPOT_FIELD_MAX 6
/* How a binding of this type is written in a configuration: the members of the upload, and what
 * the configuration calls them. One table for both ways: an upload becomes a configuration here,
 * and a configuration an upload in cli/upload.c. */
struct cn_depot_kind {
    const char *type, *key; /* key: "a.b" is the list b of the table a; "a!" is a table, no list */
    struct {
        const char *from, *to;
    } fields[CN_DEPOT_FIELD_MAX];
};
/* NULL: there are no more. */
const struct cn_depot_kind *cn_depot_kind_at(size_t index);
/* The first 32 digits of the SHA-256 of bytes: a hash that a sender gives a file of assets. */
void cn_depot_hash(const void *bytes, size_t size, char digits[33]);

/* The configuration of the worker in this version, as the text of a wrangler.json with its secrets
 * in the clear: never on disk. (depot_config.c) */
int cn_depot_config(struct cn_depot *depot, const struct cn_depot_script *script,
                    const char *version, struct cn_buf *json, struct cn_err *err);
/* What is known of the worker without any version: its name, where requests for it come from, its
 * migrations. */
void cn_depot_bare_config(struct cn_depot *depot, const struct cn_depot_script *script,
                          struct cn_buf *json);
/* Nobody wrote that file: where it would be, and the place in it, at the beginning of a sentence
 * say nothing to who is told. Takes them away. */
void cn_depot_hide_place(const struct cn_depot *depot, struct cn_err *err);
/* The folder of the version's code, absolute. Owned. */
char *cn_depot_code_folder(struct cn_depot *depot, const struct cn_depot_script *script,
                           const char *version);
const char *cn_depot_domain(const struct cn_depot *depot);
/* The folder of files on their way in and out, absolute, made if it is not there; owned. It is
 * emptied at the next start. NULL with an error. */
char *cn_depot_transfers(struct cn_depot *depot, struct cn_err *err);

#endif
