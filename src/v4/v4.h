/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4.h - the part of the platform's API (version 4) that wrangler uses, on the admin
 * listener under /client/v4.
 *
 *   W1  A request is for the account of this server and no other.
 *   W2  A route names the scope that its caller needs: read to look, deploy to change what is
 *       served, data to write data. The upload of assets has a token of its own, which is good for
 *       the files of one session.
 *   W3  What is asked for and not built is refused with a sentence; an unknown path is a 404 of the
 *       platform's form.
 *   W4  Every change is told in the log with the name of the token.
 *   W5  What is wrong with a version is its sender's to mend: 400, never a code that stands for the
 *       token, the path or the server, for which wrangler asks to log in or tries again.
 *
 * Threads:   each call on its own; what they share has locks.
 * Ownership: the owner's memory. */
#ifndef CN_V4_V4_H
#define CN_V4_V4_H
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/handler.h"
#include "v4/depot.h"

struct cn_manifest;
struct cn_taps;
struct cn_tokens;

#define CN_V4_UPLOAD_MAX (64u << 20)          /* bytes of a script with its modules */
#define CN_V4_MODULE_MAX 1000                 /* modules of a script */
#define CN_V4_BINDING_MAX 500                 /* bindings of a script */
#define CN_V4_MESSAGE_MAX 1000u               /* bytes of a version's message, and of its tag */
#define CN_V4_MIGRATIONS_MAX (64u << 10)      /* bytes of the migrations of an upload */
#define CN_V4_SESSION_MAX 64                  /* uploads of assets at once, */
#define CN_V4_SESSIONS_MEMORY_MAX (64u << 20) /* and the bytes of their manifests together */
#define CN_V4_SESSION_MS (60 * 60 * 1000)
#define CN_V4_TRANSFER_MAX 16      /* files with an address of their own, */
#define CN_V4_TRANSFER_TOKEN_MAX 4 /* and of one token */
#define CN_V4_EXPORT_MAX 4         /* that are made at the same time, */
#define CN_V4_EXPORT_TOKEN_MAX 2   /* and for one token */
#define CN_V4_EXPORT_SIZE_MAX (4ull << 30)
#define CN_V4_TRANSFER_SIZE_MAX CN_CONTROL_BODY_MAX
#define CN_V4_TRANSFER_MS (60 * 60 * 1000)

/* A file that goes in or out by an address of its own (v4_transfers.c). */
struct cn_v4_transfer {
    char name[33]; /* of the file; empty: not in use */
    char secret[33];
    char md5[33]; /* of what is to come; empty: it goes out */
    char of[64];  /* the database */
    char by[33];  /* the id of the token that asked for it; empty: the operator */
    int64_t until_ms;
    bool busy, whole;
};

/* One that is being made to go out. */
struct cn_v4_export {
    struct cn_control_call *call;
    char name[33]; /* of the file in `folder`, which is owned */
    char *folder;
    uint64_t left; /* bytes that it may still take (F4) */
};

/* An upload of assets. */
struct cn_v4_session {
    char token[65];  /* empty: not in use */
    char worker[64]; /* its name */
    char by[33];     /* the id of the token that began it; empty: the operator */
    int64_t until_ms;
    struct cn_manifest *manifest; /* a reference */
};

struct cn_v4 {
    struct cn_depot *depot; /* NULL: nothing can be deployed here */
    struct cn_tokens *tokens;
    struct cn_taps *taps; /* who listens to workers; NULL: nobody can */
    const char *no_depot; /* why; static */
    const char *no_build; /* why no version can be built; static; NULL: they can */
    /* Checks and builds a version that is on disk. */
    int (*build)(void *data, const struct cn_depot_script *script, const char *version,
                 struct cn_err *err);
    void *build_data;
    pthread_mutex_t lock; /* guards what follows */
    struct cn_v4_session sessions[CN_V4_SESSION_MAX];
    struct cn_v4_transfer transfers[CN_V4_TRANSFER_MAX];
};

void cn_v4_init(struct cn_v4 *v4);
void cn_v4_fini(struct cn_v4 *v4);

/* For struct cn_control, with the struct cn_v4 as more_data. */
extern const struct cn_control_route cn_v4_routes[];
int cn_v4_check(struct cn_control_call *call, struct cn_err *err);
void cn_v4_pause(void *v4, bool on);
bool cn_v4_is_good(void *v4, const struct cn_guard_who *who); /* T2; no id: the operator */
/* For struct cn_admin_options.find_token. */
void cn_v4_find_token(void *v4, const char *token, size_t size, struct cn_guard_who *who);

/* --- shared by its files -----------------------------------------------------------------------
 */

struct cn_v4 *cn_v4_of(const struct cn_control_call *call);
int64_t cn_v4_now(void);
/* Fails with a code of the platform. */
int cn_v4_fail(struct cn_control_call *call, struct cn_err *err, int rc, int code,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Returns `rc`. If it says that the request is wrong, and nobody has said how, that gets a code. */
int cn_v4_invalid(struct cn_control_call *call, int rc);
/* The script that path[index] names, in a state of the caller's; NULL with an error. */
struct cn_depot_script *cn_v4_script(struct cn_control_call *call,
                                     const struct cn_depot_state *state, size_t index,
                                     struct cn_err *err);
/* Whether a worker may have this name. */
bool cn_v4_name_is_good(const char *name);
/* Begins a change of the caller's (DC of depot.h); NULL with an error. It ends by one of the two
 * that follow, or by cn_depot_change_drop(). */
struct cn_depot_state *cn_v4_change(struct cn_control_call *call, struct cn_err *err);
/* Ends it without a deployment: what serves is as it was. */
int cn_v4_keep(struct cn_control_call *call, struct cn_depot_state *state, struct cn_err *err);
/* Ends it by deploying it. */
int cn_v4_deploy(struct cn_control_call *call, struct cn_depot_state *state, struct cn_err *err);
/* W5: what became of a version that does not build or start. */
int cn_v4_refused(struct cn_control_call *call, int rc, struct cn_err *err);
/* ,"NAME":"TEXT" */
void cn_v4_put_text(struct cn_buf *json, const char *name, const char *text);
/* Runs another call of the control API with the rights of this one, which has been checked: `body`
 * (NULL: the caller's own) goes in; what it answers goes to `out`, or, if that is NULL, out as it
 * is. Returns its status. */
int cn_v4_forward(struct cn_control_call *call, const char *method, const char *target,
                  const struct cn_buf *body, struct cn_buf *out);

/* The same with the caller's own body; what it answers well goes out as it comes, an error to
 * `out`. */
int cn_v4_forward_out(struct cn_control_call *call, const char *method, const char *target,
                      struct cn_buf *out);

/* The same, with what it answers well going to `write`, and an error to `out`; 507: that has
 * failed, and `err` says why. */
struct cn_v4_sink {
    int (*write)(void *data, const void *bytes, size_t size, struct cn_err *err);
    void *data;
    struct cn_err err;
};
int cn_v4_forward_to(struct cn_control_call *call, const char *method, const char *target,
                     struct cn_v4_sink *sink, struct cn_buf *out);

/* Handlers: one file each. v4_scripts.c: */
int cn_v4_get_service(struct cn_control_call *call, struct cn_err *err);
int cn_v4_list_scripts(struct cn_control_call *call, struct cn_err *err);
int cn_v4_workers(struct cn_control_call *call, struct cn_err *err);
int cn_v4_worker(struct cn_control_call *call, struct cn_err *err);
int cn_v4_delete_script(struct cn_control_call *call, struct cn_err *err);
int cn_v4_settings(struct cn_control_call *call, struct cn_err *err);
int cn_v4_patch_bindings(struct cn_control_call *call, struct cn_err *err);
int cn_v4_patch_settings(struct cn_control_call *call, struct cn_err *err);
int cn_v4_subdomain(struct cn_control_call *call, struct cn_err *err);
int cn_v4_script_subdomain(struct cn_control_call *call, struct cn_err *err);
int cn_v4_schedules(struct cn_control_call *call, struct cn_err *err);
int cn_v4_routes_put(struct cn_control_call *call, struct cn_err *err);
int cn_v4_domains_put(struct cn_control_call *call, struct cn_err *err);
/* v4_references.c: */
int cn_v4_references(struct cn_control_call *call, struct cn_err *err);
int cn_v4_producers(struct cn_control_call *call, struct cn_err *err);
/* Q1 */
int cn_v4_check_needed(struct cn_control_call *call, const struct cn_depot_state *state,
                       const char *worker, struct cn_err *err);
/* v4_zones.c: */
int cn_v4_zones(struct cn_control_call *call, struct cn_err *err);
int cn_v4_zone_routes(struct cn_control_call *call, struct cn_err *err);
int cn_v4_domains(struct cn_control_call *call, struct cn_err *err);
int cn_v4_domains_changeset(struct cn_control_call *call, struct cn_err *err);
/* The worker that has the custom domain, or NULL. */
const struct cn_depot_script *cn_v4_domain_owner(const struct cn_depot_state *state,
                                                 const char *hostname);
/* v4_versions.c: */
int cn_v4_list_versions(struct cn_control_call *call, struct cn_err *err);
int cn_v4_get_version(struct cn_control_call *call, struct cn_err *err);
int cn_v4_list_deployments(struct cn_control_call *call, struct cn_err *err);
int cn_v4_get_deployment(struct cn_control_call *call, struct cn_err *err);
int cn_v4_make_deployment(struct cn_control_call *call, struct cn_err *err);
/* Answers with the version `id` of the script that the path names. */
int cn_v4_answer_version(struct cn_control_call *call, const char *id, struct cn_err *err);
/* The version as the platform shows it. */
void cn_v4_append_version(struct cn_buf *json, const struct cn_depot_version *version,
                          const struct cn_json *file);
/* ,"bindings":[...] of a version's file as they are shown: a secret without its text. */
void cn_v4_append_bindings(struct cn_buf *json, const struct cn_json *file);
/* v4_tails.c: */
int cn_v4_taps_relay(struct cn_control_call *call, struct cn_err *err);
int cn_v4_tails(struct cn_control_call *call, struct cn_err *err);
/* v4_upload.c: */
int cn_v4_put_script(struct cn_control_call *call, struct cn_err *err);
int cn_v4_post_version(struct cn_control_call *call, struct cn_err *err);
/* v4_secrets.c: */
int cn_v4_secrets(struct cn_control_call *call, struct cn_err *err);
int cn_v4_patch_version(struct cn_control_call *call, struct cn_err *err);
/* v4_graphql.c: */
int cn_v4_graphql(struct cn_control_call *call, struct cn_err *err);
/* v4_content.c: */
int cn_v4_content(struct cn_control_call *call, struct cn_err *err);
/* v4_assets.c: */
int cn_v4_assets_session(struct cn_control_call *call, struct cn_err *err);
int cn_v4_assets_upload(struct cn_control_call *call, struct cn_err *err);
/* Links the files of assets that the metadata asks for into the version `id`, whose predecessor's
 * file is `previous` (or NULL), and writes ,"assets":{...}, if it has any. */
int cn_v4_assets_keep(struct cn_v4 *v4, const char *id, const char *worker,
                      const struct cn_json *metadata, const struct cn_json *previous,
                      struct cn_buf *json, struct cn_err *err);
/* Boundary of a multipart body, in `text`; false: it is none. */
bool cn_v4_boundary(const char *content_type, char text[80]);

/* v4_data.c: */
int cn_v4_kv_namespaces(struct cn_control_call *call, struct cn_err *err);
int cn_v4_kv_namespace(struct cn_control_call *call, struct cn_err *err);
int cn_v4_kv_keys(struct cn_control_call *call, struct cn_err *err);
int cn_v4_kv_value(struct cn_control_call *call, struct cn_err *err);
int cn_v4_kv_bulk(struct cn_control_call *call, struct cn_err *err);
/* v4_d1.c: */
int cn_v4_d1_databases(struct cn_control_call *call, struct cn_err *err);
int cn_v4_d1_database(struct cn_control_call *call, struct cn_err *err);
int cn_v4_d1_query(struct cn_control_call *call, struct cn_err *err);
int cn_v4_d1_import(struct cn_control_call *call, struct cn_err *err);
int cn_v4_d1_export(struct cn_control_call *call, struct cn_err *err);
int cn_v4_d1_time_travel(struct cn_control_call *call, struct cn_err *err);
/* v4_transfers.c: */
int cn_v4_transfer(struct cn_control_call *call, struct cn_err *err);
/* F1: who has this secret; false: it is none. */
bool cn_v4_transfer_find(struct cn_v4 *v4, const char *secret, size_t size,
                         struct cn_guard_who *who);
/* A file with this MD5 may come to the address; its name. */
int cn_v4_transfer_begin(struct cn_control_call *call, const char *md5, char name[33],
                         struct cn_buf *url, struct cn_err *err);
/* What has come, for the database of the path; the file goes. */
int cn_v4_transfer_take(struct cn_control_call *call, const char *name, const char *md5,
                        struct cn_buf *bytes, struct cn_err *err);
/* A file for the database of the path is going to be made in the folder. */
int cn_v4_export_begin(struct cn_control_call *call, struct cn_v4_export *export,
                       struct cn_err *err);
/* F4: whether so many bytes more may be written for it. */
int cn_v4_export_take(struct cn_v4_export *export, size_t size, struct cn_err *err);
/* It is there, and may be fetched at the address; or it failed by `rc`, which is returned, and
 * goes. */
int cn_v4_export_end(struct cn_v4_export *export, int rc, struct cn_buf *url);
int cn_v4_write_all(int fd, const void *bytes, size_t size, struct cn_err *err);
/* v4_services.c: */
int cn_v4_r2_buckets(struct cn_control_call *call, struct cn_err *err);
int cn_v4_r2_bucket(struct cn_control_call *call, struct cn_err *err);
int cn_v4_r2_object(struct cn_control_call *call, struct cn_err *err);
int cn_v4_queues(struct cn_control_call *call, struct cn_err *err);
int cn_v4_queue(struct cn_control_call *call, struct cn_err *err);
int cn_v4_consumers(struct cn_control_call *call, struct cn_err *err);
/* Who pulls from the queue over HTTP, as queues.consumers has it; the caller frees it. NULL: nobody
 * may. */
struct cn_json *cn_v4_puller(const struct cn_depot_state *state, const char *queue);
/* v4_messages.c: */
int cn_v4_queue_messages(struct cn_control_call *call, struct cn_err *err);
/* What these two share: a slash and a percent-encoded segment; an error of a call that was
 * forwarded and failed, else 0; a list with its result_info; whether the first page is asked for; a
 * resource created and forgotten. */
void cn_v4_segment(struct cn_buf *target, const void *bytes, size_t size);
int cn_v4_forwarded(struct cn_control_call *call, int status, struct cn_buf *out, int code,
                    struct cn_err *err);
int cn_v4_list(struct cn_control_call *call, struct cn_buf *items, size_t count);
bool cn_v4_is_first_page(const struct cn_control_call *call);
int cn_v4_create(struct cn_control_call *call, const char *kind, const char *name, const char *id,
                 int taken_code, struct cn_err *err);
int cn_v4_forget(struct cn_control_call *call, const char *kind, const char *id,
                 struct cn_err *err);
int cn_v4_answer_null(struct cn_control_call *call);
/* v4_audit.c: notes who makes the change that the state is of. */
void cn_v4_note(struct cn_control_call *call, struct cn_depot_state *state, const char *action,
                const char *worker, const char *detail);
int cn_v4_api_audit(struct cn_control_call *call, struct cn_err *err);
/* v4_tokens.c: */
int cn_v4_api_tokens(struct cn_control_call *call, struct cn_err *err);

#endif
