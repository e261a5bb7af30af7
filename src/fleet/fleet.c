/* SPDX-License-Identifier: Apache-2.0 */
/* fleet/fleet.c - leads and follows deployments. See fleet.h.
 *
 * What the leader has of its change (`lead`) belongs to the thread that changes: the depot lets one
 * in at a time. The lock guards what is known of the engine and is never held over a question. */
#include "fleet/fleet.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/cond.h"
#include "base/diag.h"
#include "base/err.h"
#include "base/mem.h"
#include "fleet/cluster.h"
#include "fleet/version_files.h"
#include "membership/poller.h"
#include "membership/registry.h"
#include "shard/host.h"
#include "v4/depot.h"
#include "v4/tokens.h"

enum {
    HOLD_MS = 60000,   /* another node deploys */
    CATCH_MS = 30000,  /* this node learns what others have done */
    SPREAD_MS = 30000, /* the others serve it, too */
    TOKENS_MS = 5000,
    ASK_MS = 60,
    LOOK_MS = 1000,
    RETRY_MS = 500,
};

/* What is known of the engine's row. */
struct place {
    uint64_t version, serial;
};

struct cn_fleet {
    struct cn_cluster *cluster;
    const struct cn_registry *registry; /* the cluster's */
    struct cn_version_files version_files;
    struct cn_depot_common common;
    struct cn_tokens_common tokens_common;
    struct cn_depot *depot;
    struct cn_tokens *tokens;
    int (*deploy)(void *data, struct cn_err *err);
    void *deploy_data;
    char disk[24]; /* its id, as the engine reads it */
    struct {
        char who[33], change[24], version[24];
    } lead;
    uint64_t tokens_known; /* under the lock of the tokens */
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    struct cn_poller *poller; /* of the thread */
    struct place current;     /* adopted here */
    uint64_t loaded;          /* the serial that lanes run */
    uint64_t tokens_version;
    bool serves, ending;
    char left_over[33]; /* a change whose end the engine has not heard of; "": none */
    char trouble[CN_ERR_TEXT_MAX];
};

static void lock(struct cn_fleet *fleet)
{
    pthread_mutex_lock(&fleet->lock);
}

static void unlock(struct cn_fleet *fleet)
{
    pthread_mutex_unlock(&fleet->lock);
}

/* Waits a moment. False: the server stops, or the time is over. */
static bool pause_until(struct cn_fleet *fleet, int64_t ms, int64_t end_ms)
{
    lock(fleet);
    if (!fleet->ending)
        (void)cn_cond_wait_ms(&fleet->changed, &fleet->lock, ms);
    bool goes_on = !fleet->ending;
    unlock(fleet);
    return goes_on && cn_host_clock_ms() < end_ms;
}

static bool is_ending(struct cn_fleet *fleet)
{
    lock(fleet);
    bool ending = fleet->ending;
    unlock(fleet);
    return ending;
}

static int set_ending(struct cn_err *err)
{
    return cn_err_set(err, CN_ECLOSED, "the server is stopping");
}

/* One answer; the buffer is emptied first. 1, or 0 if it is NULL. */
static int ask(struct cn_fleet *fleet, const char *sql, const char *const *values, size_t count,
               struct cn_buf *text, struct cn_err *err)
{
    cn_buf_clear(text);
    int rc = cn_registry_ask(fleet->registry, sql, values, count, text, err);
    cn_buf_text(text);
    return rc;
}

static bool begins(const struct cn_buf *text, const char *word)
{
    return strncmp((const char *)text->data, word, strlen(word)) == 0;
}

static void put_number(char text[24], uint64_t number)
{
    snprintf(text, 24, "%" PRIu64, number);
}

/* --- states and their files ------------------------------------------------------------------- */

/* "VERSION SERIAL STATE" */
static struct cn_depot_state *parse_state(const char *text, struct place *place, struct cn_err *err)
{
    char *end;
    place->version = strtoull(text, &end, 10);
    place->serial = strtoull(end, &end, 10);
    if (!place->version || !place->serial || *end != ' ') {
        cn_err_set(err, CN_EPROTOCOL, "the engine's state of deployments is none");
        return NULL;
    }
    struct cn_depot_state *state = cn_depot_state_read(end + 1, strlen(end + 1), err);
    if (!state)
        cn_err_context(err, "the engine's state of deployments");
    return state;
}

static struct cn_depot_state *read_state(struct cn_fleet *fleet, const char *first,
                                         struct place *place, struct cn_err *err)
{
    struct cn_buf text = {0};
    const char *values[] = {first};
    struct cn_depot_state *state = NULL;
    int rc = ask(fleet, "cairn.depot_read($1::text)", values, 1, &text, err);
    if (rc == 0)
        cn_err_set(err, CN_EPROTOCOL, "the engine has no state of deployments");
    if (rc == 1)
        state = parse_state((const char *)text.data, place, err);
    cn_buf_fini(&text);
    return state;
}

static int need(void *data, const char *version, const char *code, struct cn_err *err)
{
    struct cn_fleet *fleet = data;
    int rc = 0;
    if (!code || strcmp(version, code) != 0)
        rc = cn_version_files_fetch(&fleet->version_files, version, false, err);
    return rc == 0 && code ? cn_version_files_fetch(&fleet->version_files, code, true, err) : rc;
}

/* Fetches what a version has and is not here. */
static int fetch_version(struct cn_fleet *fleet, const struct cn_depot_version *version, bool code,
                         struct cn_err *err)
{
    int rc = 0;
    if (!cn_version_files_has(&fleet->version_files, version->id, false))
        rc = cn_version_files_fetch(&fleet->version_files, version->id, false, err);
    if (rc == 0 && code && !cn_version_files_has(&fleet->version_files, version->code, true))
        rc = cn_version_files_fetch(&fleet->version_files, version->code, true, err);
    return rc;
}

/* Files of all versions, and the code of those that serve: others are fetched when they are needed
 * (need()). One that cannot be had does not keep the others away; the first of those is told. */
static int fetch_state(struct cn_fleet *fleet, const struct cn_depot_state *state,
                       struct cn_err *err)
{
    for (size_t i = 0; i < state->script_count; i++) {
        const struct cn_depot_script *script = &state->scripts[i];
        for (size_t k = 0; k < script->version_count; k++) {
            const struct cn_depot_version *version = &script->versions[k];
            struct cn_err why = {0};
            int rc = is_ending(fleet) ? set_ending(&why)
                                      : fetch_version(fleet, version,
                                                      cn_depot_serves(script, version->id), &why);
            if (rc < 0 && !err->code)
                *err = why;
            if (rc == CN_ETIMEOUT || rc == CN_ECLOSED) {
                *err = why;
                return rc;
            }
        }
    }
    return err->code;
}

/* --- leading ---------------------------------------------------------------------------------- */

/* Whether the engine has heard of the end of a change; `ids` are what the state with that version
 * names. */
static bool end_change(struct cn_fleet *fleet, const char *who, const char *version,
                       const char *ids)
{
    struct cn_buf told = {0};
    struct cn_err err = {0};
    const char *values[] = {who, version, ids};
    int rc =
        ask(fleet, "cairn.depot_end($1::text, $2::bigint, $3::text[])", values, 3, &told, &err);
    cn_buf_fini(&told);
    return rc >= 0;
}

/* All that a state names of bundles, as a list. */
static char *name_all(const struct cn_depot_state *state, struct cn_buf *ids)
{
    for (size_t i = 0; i < state->script_count; i++)
        for (size_t k = 0; k < state->scripts[i].version_count; k++) {
            const struct cn_depot_version *version = &state->scripts[i].versions[k];
            cn_version_files_array_add(ids, version->id);
            if (strcmp(version->id, version->code) != 0)
                cn_version_files_array_add(ids, version->code);
        }
    return cn_version_files_array_end(ids);
}

/* What is not part of the state that is current here goes, if it is that of the engine, too. (The
 * version is read before the state: one that is adopted meanwhile has another.) */
static void let_go(struct cn_fleet *fleet)
{
    struct cn_buf ids = {0};
    char version[24];
    lock(fleet);
    put_number(version, fleet->current.version);
    unlock(fleet);
    struct cn_depot_state *state = cn_depot_take(fleet->depot);
    bool heard = end_change(fleet, fleet->lead.who, version, name_all(state, &ids));
    cn_depot_state_unref(state);
    cn_buf_fini(&ids);
    lock(fleet);
    if (!heard) /* the follower says it again */
        memcpy(fleet->left_over, fleet->lead.who, sizeof(fleet->left_over));
    unlock(fleet);
}

static int hold(struct cn_fleet *fleet, uint64_t *version, struct cn_err *err)
{
    struct cn_buf told = {0};
    const char *values[] = {fleet->lead.who, fleet->disk};
    int64_t end_ms = cn_host_clock_ms() + HOLD_MS;
    int rc;
    cn_depot_digits(fleet->lead.who);
    do
        rc = ask(fleet, "cairn.depot_hold($1::text, $2::bigint)", values, 2, &told, err);
    while (rc == 1 && begins(&told, "held ") && pause_until(fleet, ASK_MS * 4, end_ms));
    if (rc == 1 && begins(&told, "held "))
        rc = is_ending(fleet)
                 ? set_ending(err)
                 : cn_err_set(err, CN_EOVERLOADED, "node %s has been deploying for %d s: try later",
                              (const char *)told.data + strlen("held "), HOLD_MS / 1000);
    if (rc == 1) {
        char *end;
        uint64_t change = strtoull((const char *)told.data + strlen("mine "), &end, 10);
        *version = strtoull(end, NULL, 10);
        put_number(fleet->lead.change, change);
        put_number(fleet->lead.version, *version);
    }
    cn_buf_fini(&told);
    return rc < 0 ? rc : 0;
}

/* Until the state here is the one that is changed, and served. */
static int catch_up(struct cn_fleet *fleet, uint64_t version, struct cn_err *err)
{
    int64_t end_ms = cn_host_clock_ms() + CATCH_MS;
    for (;;) {
        lock(fleet);
        bool here = fleet->serves && fleet->current.version == version &&
                    fleet->loaded == fleet->current.serial;
        struct cn_err why = {0};
        if (!here)
            cn_err_set(&why, CN_EOVERLOADED,
                       "this node does not serve yet what was deployed last%s%s: try later",
                       *fleet->trouble ? ": " : "", fleet->trouble);
        unlock(fleet);
        if (here)
            return 0;
        if (!pause_until(fleet, ASK_MS, end_ms)) {
            *err = why;
            return is_ending(fleet) ? set_ending(err) : why.code;
        }
    }
}

static int begin(void *data, struct cn_err *err)
{
    struct cn_fleet *fleet = data;
    uint64_t version = 0;
    int rc = hold(fleet, &version, err);
    if (rc < 0)
        return rc;
    rc = catch_up(fleet, version, err);
    if (rc < 0)
        let_go(fleet);
    return rc;
}

static bool has_version(const struct cn_depot_state *state, const char *name, const char *id)
{
    const struct cn_depot_script *script = cn_depot_find(state, name);
    return script && cn_depot_find_version(script, id);
}

static int put_new(struct cn_fleet *fleet, const struct cn_depot_state *before,
                   const struct cn_depot_state *state, struct cn_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < state->script_count && rc == 0; i++) {
        const struct cn_depot_script *script = &state->scripts[i];
        for (size_t k = 0; k < script->version_count && rc == 0; k++) {
            const char *id = script->versions[k].id;
            if (!has_version(before, script->name, id))
                rc = cn_version_files_put(&fleet->version_files, fleet->lead.who, id, err);
        }
    }
    return rc;
}

/* W2 */
static int await_ready(struct cn_fleet *fleet, struct cn_err *err)
{
    struct cn_buf told = {0};
    const char *values[] = {fleet->lead.change, fleet->disk};
    int64_t end_ms = cn_host_clock_ms() + CN_FLEET_READY_MS;
    int rc;
    do
        rc = ask(fleet, "cairn.depot_asked($1::bigint, $2::bigint)", values, 2, &told, err);
    while (rc == 1 && begins(&told, "wait ") && pause_until(fleet, ASK_MS, end_ms));
    if (rc == 1 && begins(&told, "failed ")) {
        const char *node = (const char *)told.data + strlen("failed ");
        int size = (int)strcspn(node, " ");
        rc = cn_err_set(err, CN_EINVALID, "node %.*s cannot serve it:%s; nothing was changed", size,
                        node, node + size);
    } else if (rc == 1 && begins(&told, "wait ")) {
        rc = is_ending(fleet)
                 ? set_ending(err)
                 : cn_err_set(err, CN_EOVERLOADED,
                              "%s did not say in %d s whether it can be served there; nothing was "
                              "changed",
                              (const char *)told.data + strlen("wait "), CN_FLEET_READY_MS / 1000);
    }
    cn_buf_fini(&told);
    return rc < 0 ? rc : 0;
}

static int set_lost(struct cn_err *err)
{
    return cn_err_set(err, CN_ECLOSED,
                      "others have taken this node for dead while it deployed; nothing was "
                      "changed: try again");
}

static int offer(void *data, const struct cn_depot_state *before,
                 const struct cn_depot_state *state, bool deploys, struct cn_err *err)
{
    struct cn_fleet *fleet = data;
    struct cn_buf text = {0}, told = {0};
    int rc = put_new(fleet, before, state, err);
    if (rc == 0 && deploys) {
        cn_depot_state_write(state, &text);
        const char *values[] = {fleet->lead.who, fleet->lead.version, cn_buf_text(&text)};
        rc = ask(fleet, "cairn.depot_offer($1::text, $2::bigint, $3::text)", values, 3, &told, err);
        rc = rc < 0 ? rc : begins(&told, "done") ? await_ready(fleet, err) : set_lost(err);
    }
    cn_buf_fini(&text);
    cn_buf_fini(&told);
    return rc < 0 ? rc : 0;
}

static int took(struct cn_fleet *fleet, const struct cn_buf *told, bool deploys, struct cn_err *err)
{
    char *end;
    if (begins(told, "classes"))
        return cn_err_set(err, CN_EEXISTS,
                          "another node has changed the classes meanwhile; nothing was changed: "
                          "deploy again");
    if (begins(told, "wait ") || begins(told, "failed "))
        return cn_err_set(err, CN_EABORTED, "a node began to serve meanwhile: %s",
                          (const char *)told->data);
    if (!begins(told, "done "))
        return set_lost(err);
    lock(fleet);
    fleet->current.version = strtoull((const char *)told->data + strlen("done "), &end, 10);
    fleet->current.serial = strtoull(end, NULL, 10);
    fleet->loaded = fleet->current.serial;
    unlock(fleet);
    return 0;
}

/* W3 */
static int commit(void *data, const struct cn_depot_state *state, bool deploys,
                  const struct cn_buf *classes, struct cn_err *err)
{
    struct cn_fleet *fleet = data;
    struct cn_buf text = {0}, table = {0}, told = {0};
    char known[24];
    put_number(known, cn_cluster_ledger_version(fleet->cluster));
    cn_depot_state_write(state, &text);
    if (classes && classes->size)
        cn_buf_append(&table, classes->data, classes->size);
    const char *values[] = {fleet->lead.who,
                            fleet->lead.change,
                            fleet->lead.version,
                            cn_buf_text(&text),
                            deploys ? "t" : "f",
                            fleet->disk,
                            known,
                            table.size ? cn_buf_text(&table) : NULL};
    int rc = ask(fleet,
                 "cairn.depot_commit($1::text, $2::bigint, $3::bigint, $4::text, $5::boolean, "
                 "$6::bigint, $7::bigint, $8::text)",
                 values, CN_ARRAY_COUNT(values), &told, err);
    if (rc >= 0)
        rc = took(fleet, &told, deploys, err);
    else if (rc == CN_ETIMEOUT)
        cn_err_context(err, "it is not known whether it was deployed");
    cn_buf_fini(&text);
    cn_buf_fini(&table);
    cn_buf_fini(&told);
    return rc;
}

/* Until all nodes know as much. The names of those that do not yet; "": all do. */
static void await_others(struct cn_fleet *fleet, uint64_t version, uint64_t tokens, int64_t ms,
                         char *names, size_t size)
{
    struct cn_buf told = {0};
    struct cn_err err = {0};
    char known[2][24];
    const char *values[] = {known[0], known[1]};
    int64_t end_ms = cn_host_clock_ms() + ms;
    int rc;
    put_number(known[0], version);
    put_number(known[1], tokens);
    do
        rc = ask(fleet, "cairn.depot_behind($1::bigint, $2::bigint)", values, 2, &told, &err);
    while (rc == 1 && pause_until(fleet, ASK_MS, end_ms));
    snprintf(names, size, "%.200s", rc == 1 ? (const char *)told.data : rc < 0 ? err.text : "");
    cn_buf_fini(&told);
}

static int tell(struct cn_fleet *fleet, struct cn_err *err);

static void end(void *data, bool committed)
{
    struct cn_fleet *fleet = data;
    struct cn_err err = {0};
    char names[300];
    let_go(fleet);
    if (!committed)
        return;
    (void)tell(fleet, &err); /* the follower does it, too */
    lock(fleet);
    uint64_t version = fleet->current.version;
    unlock(fleet);
    await_others(fleet, version, 0, SPREAD_MS, names, sizeof(names));
    if (*names && !is_ending(fleet))
        cn_warn("cluster: it is deployed, and not served everywhere yet: %s", names);
}

/* --- following -------------------------------------------------------------------------------- */

/* Says what this node knows, if it serves that. */
static int tell(struct cn_fleet *fleet, struct cn_err *err)
{
    struct cn_buf told = {0};
    char version[24], tokens[24];
    lock(fleet);
    put_number(version, fleet->loaded == fleet->current.serial ? fleet->current.version : 0);
    put_number(tokens, fleet->tokens_version);
    unlock(fleet);
    const char *values[] = {fleet->disk, version, tokens};
    int rc =
        ask(fleet, "cairn.depot_knows($1::bigint, $2::bigint, $3::bigint)", values, 3, &told, err);
    cn_buf_fini(&told);
    return rc < 0 ? rc : 0;
}

static void set_current(struct cn_fleet *fleet, const struct place *place)
{
    lock(fleet);
    fleet->current = *place;
    unlock(fleet);
}

/* Between cn_depot_follow_begin() and its end. */
static int adopt(struct cn_fleet *fleet, struct cn_err *err)
{
    struct place place;
    struct cn_err lacking = {0};
    struct cn_depot_state *state = read_state(fleet, "", &place, err);
    if (!state)
        return err->code;
    int rc = fetch_state(fleet, state, &lacking);
    if (rc == CN_ETIMEOUT || rc == CN_ECLOSED) {
        cn_depot_state_unref(state);
        *err = lacking;
        return rc;
    }
    if (rc < 0) /* W5 */
        cn_error("cluster: %s", lacking.text);
    rc = cn_depot_adopt(fleet->depot, state, err);
    if (rc == 0)
        set_current(fleet, &place);
    return rc;
}

static bool is_loaded(struct cn_fleet *fleet)
{
    lock(fleet);
    bool loaded = fleet->loaded == fleet->current.serial;
    unlock(fleet);
    return loaded;
}

static int load(struct cn_fleet *fleet, struct cn_err *err)
{
    lock(fleet);
    uint64_t serial = fleet->current.serial;
    unlock(fleet);
    int rc = fleet->deploy(fleet->deploy_data, err);
    if (rc < 0)
        return rc;
    lock(fleet);
    fleet->loaded = serial;
    unlock(fleet);
    return 0;
}

/* Tries what is offered, and says how that went. */
static int rehearse(struct cn_fleet *fleet, uint64_t change, struct cn_err *err)
{
    struct cn_buf text = {0}, told = {0};
    struct cn_err why = {0};
    char number[24];
    put_number(number, change);
    const char *asked[] = {number};
    int rc = ask(fleet, "cairn.depot_offered($1::bigint)", asked, 1, &text, err);
    if (rc == 1) {
        struct cn_depot_state *state =
            cn_depot_state_read((const char *)text.data, text.size, &why);
        rc = state ? fetch_state(fleet, state, &why) : why.code;
        if (rc == 0)
            rc = cn_depot_rehearse(fleet->depot, state, fleet->deploy, fleet->deploy_data, &why);
        cn_depot_state_unref(state);
        if (rc < 0 && is_ending(fleet)) {
            cn_buf_fini(&text);
            return set_ending(err);
        }
        const char *values[] = {fleet->disk, number, rc < 0 ? why.text : ""};
        rc = ask(fleet, "cairn.depot_ready($1::bigint, $2::bigint, $3::text)", values, 3, &told,
                 err);
    }
    cn_buf_fini(&text);
    cn_buf_fini(&told);
    return rc < 0 ? rc : 0;
}

/* What the engine was seen to have. */
struct look {
    struct place place;
    uint64_t change, tokens;
};

static int follow_depot(struct cn_fleet *fleet, const struct look *look, uint64_t *rehearsed,
                        struct cn_err *err)
{
    lock(fleet);
    bool other = look->place.version > fleet->current.version;
    bool behind = other || fleet->loaded != fleet->current.serial;
    bool offered = look->change && look->change != *rehearsed;
    unlock(fleet);
    if ((!behind && !offered) || !cn_depot_follow_begin(fleet->depot))
        return 0;
    int rc = other ? adopt(fleet, err) : 0;
    if (rc == 0 && !is_loaded(fleet))
        rc = load(fleet, err);
    if (rc == 0 && behind)
        rc = tell(fleet, err);
    if (rc == 0 && offered && !other) {
        rc = rehearse(fleet, look->change, err);
        if (rc == 0)
            *rehearsed = look->change;
    }
    cn_depot_follow_end(fleet->depot, is_loaded(fleet));
    return rc;
}

static int follow_tokens(struct cn_fleet *fleet, const struct look *look, struct cn_err *err)
{
    lock(fleet);
    bool other = look->tokens > fleet->tokens_version;
    unlock(fleet);
    if (!other || !fleet->tokens)
        return 0;
    int rc = cn_tokens_refresh(fleet->tokens, err);
    return rc < 0 ? rc : tell(fleet, err);
}

static void end_left_over(struct cn_fleet *fleet)
{
    char who[sizeof(fleet->left_over)];
    lock(fleet);
    memcpy(who, fleet->left_over, sizeof(who));
    unlock(fleet);
    if (!*who || !end_change(fleet, who, "0", "{}"))
        return;
    lock(fleet);
    if (strcmp(fleet->left_over, who) == 0)
        *fleet->left_over = 0;
    unlock(fleet);
}

static int look(struct cn_fleet *fleet, struct look *look, struct cn_err *err)
{
    struct cn_buf text = {0};
    int rc = cn_poller_ask(fleet->poller, "cairn.depot_look()", NULL, 0, &text, err);
    if (rc == 1 &&
        sscanf(cn_buf_text(&text), "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &look->place.version, &look->place.serial, &look->change, &look->tokens) != 4)
        rc = 0;
    if (rc == 0)
        rc = cn_err_set(err, CN_EPROTOCOL, "the engine has no state of deployments");
    cn_buf_fini(&text);
    return rc < 0 ? rc : 0;
}

/* What goes wrong is said when it is new. */
static void note_trouble(struct cn_fleet *fleet, const struct cn_err *err)
{
    const char *text = err->code ? err->text : "";
    lock(fleet);
    bool fresh = *text && strcmp(fleet->trouble, text) != 0 && !fleet->ending;
    snprintf(fleet->trouble, sizeof(fleet->trouble), "%s", text);
    unlock(fleet);
    if (fresh)
        cn_warn("cluster: what others deploy cannot be followed: %s; trying again", text);
}

static void *follow_main(void *data)
{
    struct cn_fleet *fleet = data;
    struct cn_err err = {0};
    struct cn_poller *poller = NULL;
    uint64_t rehearsed = 0;
    int rc = cn_poller_new(fleet->registry, &poller, &err);
    CN_ASSERT(rc == 0); /* the host has one like it */
    lock(fleet);
    fleet->poller = poller;
    while (!fleet->serves && !fleet->ending)
        (void)cn_cond_wait_ms(&fleet->changed, &fleet->lock, LOOK_MS);
    unlock(fleet);
    while (!is_ending(fleet)) {
        struct look seen = {0};
        err = (struct cn_err){0};
        end_left_over(fleet);
        rc = look(fleet, &seen, &err);
        if (rc == 0)
            rc = follow_tokens(fleet, &seen, &err);
        if (rc == 0)
            rc = follow_depot(fleet, &seen, &rehearsed, &err);
        note_trouble(fleet, &err);
        if (rc < 0)
            (void)pause_until(fleet, RETRY_MS, INT64_MAX);
        else
            cn_poller_wait(poller, LOOK_MS);
    }
    lock(fleet);
    fleet->poller = NULL;
    unlock(fleet);
    cn_poller_free(poller);
    return NULL;
}

/* --- tokens ----------------------------------------------------------------------------------- */

static int tokens_fetch(void *data, struct cn_buf *text, struct cn_err *err)
{
    struct cn_fleet *fleet = data;
    int rc = cn_registry_recall(fleet->registry, "tokens", text, &fleet->tokens_known, err);
    if (rc == 1) {
        lock(fleet);
        fleet->tokens_version = fleet->tokens_known;
        unlock(fleet);
    }
    return rc;
}

static int tokens_keep(void *data, const char *text, struct cn_err *err)
{
    struct cn_fleet *fleet = data;
    struct cn_buf told = {0};
    char known[24];
    put_number(known, fleet->tokens_known);
    const char *values[] = {known, text};
    int rc = ask(fleet, "cairn.depot_tokens($1::bigint, $2::text)", values, 2, &told, err);
    if (rc == 0)
        rc = cn_err_set(err, CN_EEXISTS, "another node has changed the tokens meanwhile");
    if (rc == 1) {
        fleet->tokens_known = strtoull((const char *)told.data, NULL, 10);
        lock(fleet);
        fleet->tokens_version = fleet->tokens_known;
        unlock(fleet);
        rc = 0;
    }
    cn_buf_fini(&told);
    return rc;
}

/* W6 */
static int tokens_spread(void *data, struct cn_err *err)
{
    struct cn_fleet *fleet = data;
    char names[300];
    struct cn_err told = {0};
    lock(fleet);
    uint64_t version = fleet->tokens_version;
    bool serves = fleet->serves;
    unlock(fleet);
    if (!serves)
        return 0;
    (void)tell(fleet, &told);
    await_others(fleet, 0, version, TOKENS_MS, names, sizeof(names));
    return *names ? cn_err_set(err, CN_ETIMEOUT,
                               "it is done, but these nodes have not said that they know of it: %s",
                               names)
                  : 0;
}

int cn_fleet_share_tokens(struct cn_fleet *fleet, struct cn_tokens *tokens, struct cn_err *err)
{
    int rc;
    fleet->tokens_common =
        (struct cn_tokens_common){fleet, tokens_fetch, tokens_keep, tokens_spread};
    do
        rc = cn_tokens_share(tokens, &fleet->tokens_common, err);
    while (rc == CN_EEXISTS || cn_cluster_is_away(fleet->cluster, rc, err));
    fleet->tokens = tokens;
    return rc;
}

/* --- its life --------------------------------------------------------------------------------- */

/* The key that secrets are encrypted with: every node can make it, and nobody without the engine.
 */
void cn_fleet_key(const uint8_t *secret, uint8_t *key)
{
    static const char purpose[] = "secrets of workers";
    unsigned size = 0;
    const uint8_t *made = HMAC(EVP_sha256(), secret, CN_CLUSTER_SECRET_SIZE,
                               (const uint8_t *)purpose, sizeof(purpose) - 1, key, &size);
    CN_ASSERT(made && size == CN_DEPOT_KEY_SIZE);
}

static void make_key(struct cn_fleet *fleet)
{
    uint8_t secret[CN_CLUSTER_SECRET_SIZE];
    cn_cluster_whole_secret(fleet->cluster, secret);
    cn_fleet_key(secret, fleet->common.key);
    OPENSSL_cleanse(secret, sizeof(secret));
}

/* This life of the node does not serve yet, whatever the one before did (W4). */
static int arrive(struct cn_fleet *fleet, struct cn_err *err)
{
    struct cn_buf told = {0};
    const char *values[] = {fleet->disk};
    int rc;
    do
        rc = ask(fleet, "cairn.depot_leaves($1::bigint)", values, 1, &told, err);
    while (cn_cluster_is_away(fleet->cluster, rc, err));
    cn_buf_fini(&told);
    return rc < 0 ? rc : 0;
}

static int read_first(struct cn_fleet *fleet, struct cn_err *err)
{
    struct cn_buf text = {0};
    struct cn_depot_state *empty = cn_depot_state_new();
    cn_depot_state_write(empty, &text);
    cn_depot_state_unref(empty);
    int rc;
    do {
        *err = (struct cn_err){0};
        struct cn_depot_state *state = read_state(fleet, cn_buf_text(&text), &fleet->current, err);
        rc = state ? 0 : err->code;
        if (state)
            rc = fetch_state(fleet, state, err);
        if (rc < 0 && rc != CN_ETIMEOUT && state) { /* W5 */
            cn_error("cluster: %s", err->text);
            *err = (struct cn_err){0};
            rc = 0;
        }
        if (rc == 0)
            fleet->common.first = state;
        else
            cn_depot_state_unref(state);
    } while (cn_cluster_is_away(fleet->cluster, rc, err));
    fleet->loaded = fleet->current.serial;
    cn_buf_fini(&text);
    return rc;
}

int cn_fleet_open(struct cn_cluster *cluster, struct cn_disk *disk, struct cn_fleet **out,
                  struct cn_err *err)
{
    struct cn_fleet *fleet = CN_NEW(struct cn_fleet);
    cn_cond_init(&fleet->changed);
    pthread_mutex_init(&fleet->lock, NULL);
    fleet->cluster = cluster;
    fleet->registry = cn_cluster_registry(cluster);
    fleet->version_files = (struct cn_version_files){fleet->registry, disk};
    snprintf(fleet->disk, sizeof(fleet->disk), "%" PRId64, (int64_t)cn_cluster_disk_id(cluster));
    fleet->common = (struct cn_depot_common){
        .data = fleet, .begin = begin, .offer = offer, .commit = commit, .end = end, .need = need};
    make_key(fleet);
    int rc = arrive(fleet, err);
    if (rc == 0)
        rc = read_first(fleet, err);
    if (rc < 0) {
        cn_fleet_close(fleet);
        return rc;
    }
    *out = fleet;
    return 0;
}

const struct cn_depot_common *cn_fleet_common(struct cn_fleet *fleet)
{
    return &fleet->common;
}

void cn_fleet_set_depot(struct cn_fleet *fleet, struct cn_depot *depot)
{
    fleet->depot = depot;
}

int cn_fleet_start(struct cn_fleet *fleet, int (*deploy)(void *data, struct cn_err *err),
                   void *data, struct cn_err *err)
{
    fleet->deploy = deploy;
    fleet->deploy_data = data;
    if (pthread_create(&fleet->thread, NULL, follow_main, fleet) != 0)
        return cn_err_set(err, CN_ENOMEM, "cannot start a thread");
    fleet->started = true;
    return 0;
}

void cn_fleet_stop(struct cn_fleet *fleet)
{
    lock(fleet);
    fleet->ending = true;
    if (fleet->poller)
        cn_poller_wake(fleet->poller);
    pthread_cond_broadcast(&fleet->changed);
    unlock(fleet);
}

void cn_fleet_close(struct cn_fleet *fleet)
{
    if (!fleet)
        return;
    cn_fleet_stop(fleet);
    if (fleet->started)
        pthread_join(fleet->thread, NULL);
    cn_depot_state_unref(fleet->common.first);
    OPENSSL_cleanse(fleet->common.key, sizeof(fleet->common.key));
    pthread_mutex_destroy(&fleet->lock);
    pthread_cond_destroy(&fleet->changed);
    cn_free(fleet);
}

/* Whether the engine lets this node serve what it has loaded: 1, 0, or an error. */
static int ask_to_serve(struct cn_fleet *fleet, struct cn_err *err)
{
    struct cn_buf told = {0};
    char version[24], serial[24];
    put_number(version, fleet->current.version);
    put_number(serial, fleet->current.serial);
    const char *values[] = {fleet->disk, version, serial};
    int rc;
    do
        rc = ask(fleet, "cairn.depot_serves($1::bigint, $2::bigint, $3::bigint)", values, 3, &told,
                 err);
    while (cn_cluster_is_away(fleet->cluster, rc, err));
    cn_buf_fini(&told);
    return rc;
}

int cn_fleet_serves(struct cn_fleet *fleet, const struct cn_depot_state *state, struct cn_err *err)
{
    lock(fleet);
    bool serves = fleet->serves;
    unlock(fleet);
    if (serves)
        return 0;
    int rc = ask_to_serve(fleet, err);
    if (rc == 1) {
        lock(fleet);
        fleet->serves = true;
        pthread_cond_broadcast(&fleet->changed);
        unlock(fleet);
        return 0;
    }
    if (rc < 0)
        return rc;
    while (
        !cn_depot_follow_begin(fleet->depot)) { /* changes wait until it serves; a copy may not */
        if (!pause_until(fleet, ASK_MS, INT64_MAX))
            return set_ending(err);
    }
    do
        rc = adopt(fleet, err);
    while (cn_cluster_is_away(fleet->cluster, rc, err));
    lock(fleet);
    fleet->loaded = fleet->current.serial; /* before it serves: it will be */
    unlock(fleet);
    cn_depot_follow_end(fleet->depot, true);
    return rc < 0 ? rc
                  : cn_err_set(err, CN_EABORTED,
                               "cluster: others have deployed while this node started; loading "
                               "again");
}
