/* SPDX-License-Identifier: Apache-2.0 */
/* worker/script.h - a deployed script and a set of them.
 *
 * A script is what a project becomes after bundling: one text that evaluates to
 * a function, the binary files it imports, its settings. A deployment is the set
 * of scripts that a server runs, with the routes that pick one of them; a reload
 * makes a new deployment and leaves the old one to the requests that run on it.
 *
 * Several versions of a worker can be in a deployment: a roll-out.
 *
 *   R1  Each is a script of its own. The first, the newest, has the routes, schedules and consumers
 *       of all; the others are `beside`, and are found through it by cn_deployment_pick().
 *   R2  What picks is a number, and the same one picks the same version while the shares stay. The
 *       newest has the lowest numbers: as its share grows it takes some and gives none back.
 *   R3  An object's number is made of its id: it runs one version at a time, and is of the same one
 *       after a restart.
 *   R4  A version that calls its own worker gets itself.
 *
 * A script that does not start:
 *
 *   F1  One that is new takes its deployment with it: that is refused, what served serves on. One
 *       that was deployed before (`tolerated`) fails alone: the others serve, requests for it are
 *       answered 503, calls to it and its objects fail and can be tried again, its queues and
 *       alarms wait. It is started again later, ever more seldom (lane.c).
 *   F2  One whose files are damaged is `broken`: it is not started at all.
 *   F3  What is wrong is part of the script, for whoever asks: cn_script_failure().
 *
 * Threads:   both are immutable once made and shared by all lanes.
 * Ownership: counted references, atomic. */
#ifndef CN_WORKER_SCRIPT_H
#define CN_WORKER_SCRIPT_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_assets;
struct cn_buf;
struct cn_err;
struct cn_sourcemap;
struct cn_sourcemap_place;

/* A version's share of new requests is counted in hundredths of a percent. */
#define CN_SHARE_ALL 10000u

/* A route such as "*.example.com/api*": a host, which may begin with a star, and a path, which
 * may end with one. A scheme before them is ignored. */
struct cn_route {
    char *host;      /* owned; lower-case, without the "*" */
    char *path;      /* owned; without the "*" */
    bool any_prefix; /* the host began with "*" */
    bool any_suffix; /* the path ended with "*" */
};

struct cn_script_file {
    char *name;     /* owned; as the bundle asks for it */
    uint8_t *bytes; /* owned */
    size_t size;
};

struct cn_modules;
struct cn_module_class;
struct cn_namespace;

/* A Durable Object class that the script exports, or has from a module. */
struct cn_script_class {
    char *name;                             /* owned */
    struct cn_namespace *ns;                /* the node's */
    const struct cn_module_class *compiled; /* of script->modules; NULL: it is JavaScript */
};

/* A queue whose messages the script takes. */
struct cn_script_consumer {
    struct cn_namespace *ns;           /* of the queue */
    struct cn_namespace *dead_letters; /* NULL: none */
    unsigned batch_count, timeout_ms, max_retries;
    unsigned max_concurrency; /* 0: as many as there are messages for, within bounds */
    int64_t retry_delay_s;
    bool pulls;             /* over HTTP: no handler is called */
    unsigned visibility_ms; /* of a pull; 0: the default */
};

struct cn_script {
    atomic_uint refs;
    char *name;         /* of the worker */
    char *version;      /* its id, if it was deployed by upload; else NULL */
    unsigned share;     /* of new requests, up to CN_SHARE_ALL */
    bool beside;        /* R1 */
    size_t next;        /* the place of the worker's next version in the deployment; 0: none */
    char *source;       /* "(function(__cairn){...})", UTF-8 */
    char *url;          /* the name of the source in stack traces */
    char *map_path;     /* source map; read when a stack must be explained; NULL: none */
    char *env_json;     /* {"NAME": value}: vars and secrets */
    char *options_json; /* compatibility flags and the like: __options of the prelude */
    char *about_json;   /* for administration: {"main","routes","exports","deployedAt"}; or NULL */
    struct cn_script_file *files;
    size_t file_count;
    struct cn_route *routes;
    size_t route_count;
    struct cn_script_class *classes;
    size_t class_count;
    struct cn_modules *modules; /* a reference; NULL: none */
    /* Of these: the class that gets its events (module/worker.h); NULL: none. */
    const struct cn_module_class *front;
    struct cn_namespace **namespaces; /* owned array: what its bindings reach, by index */
    size_t namespace_count;
    uint32_t *granted; /* owned array: the namespaces of services that its bindings name */
    size_t granted_count;
    struct cn_script_consumer *consumers; /* owned array */
    size_t consumer_count;
    char **crons; /* owned: cron expressions as written, valid */
    size_t cron_count;
    struct cn_namespace *cron_ns; /* where their runs are known; NULL without any */
    char **tails;                 /* owned: names of the workers that are told of its invocations */
    size_t tail_count;
    char *email_dir;          /* owned; where `cairn dev` keeps email; NULL: nowhere */
    double trace_rate;        /* the share of its invocations that become spans, 0 to 1 */
    uint64_t cpu_limit_ms;    /* per turn */
    struct cn_assets *assets; /* a reference; NULL: none */
    bool has_source;          /* false: nothing but assets */
    uint64_t start_limit_ms;  /* CPU time of its start; 0: cpu_limit_ms */
    bool tolerated;           /* F1 */
    char *broken;             /* owned; why it cannot be started; NULL: it can (F2) */
    char *way_back;           /* owned; what can be done if it does not serve; NULL: not known */
    bool keeps_stubs;         /* stubs of it may be stored (allow_irrevocable_stub_storage) */

    pthread_mutex_t map_lock; /* guards the four below */
    struct cn_sourcemap *map; /* owned; NULL: not read yet, or not readable */
    bool map_tried;
    char *failure;         /* owned: why it did not start when it was last tried; NULL: it did */
    unsigned failed_lanes; /* on which it is not running for that */
};

/* An empty script to be filled by its maker (strings from cn_strdup) before it is shared. */
struct cn_script *cn_script_new(void);
struct cn_script *cn_script_ref(struct cn_script *script);
void cn_script_unref(struct cn_script *script);
void cn_script_add_file(struct cn_script *script, const char *name, uint8_t *bytes, size_t size);
/* Appends a text with a stack in which places are named by the user's own files; with `frame`, the
 * source lines around the first one follow. Any thread. */
void cn_script_explain(struct cn_script *script, const char *text, size_t length, bool frame,
                       struct cn_buf *out);
/* Where a place (from 1) of its source comes from, by its source map; false: that is not known. The
 * texts are good while the script is. Any thread. */
bool cn_script_find_place(struct cn_script *script, uint32_t line, uint32_t column,
                          struct cn_sourcemap_place *place);
/* F1: by upload, and for the first time. */
bool cn_script_is_new(const struct cn_script *script);
/* F3: why it does not serve, whole or on some lanes; owned. NULL: it does. Any thread. */
char *cn_script_failure(struct cn_script *script);
/* It did not start on one more lane. True: nobody has said so yet. */
bool cn_script_failed(struct cn_script *script, const char *text);
/* On one of these it has, after all. */
void cn_script_recovered(struct cn_script *script);
/* Takes its schedules and consumers from it (R1). */
void cn_script_drop_triggers(struct cn_script *script);
void cn_script_add_route(struct cn_script *script, const char *pattern);

void cn_script_add_class(struct cn_script *script, const char *name, struct cn_namespace *ns,
                         const struct cn_module_class *compiled);
/* Returns the index by which the script's binding names it. */
size_t cn_script_add_namespace(struct cn_script *script, struct cn_namespace *ns);
/* Bindings of the script name this namespace of a service; natives reach no other. */
void cn_script_grant(struct cn_script *script, uint32_t namespace_id);
bool cn_script_is_granted(const struct cn_script *script, uint32_t namespace_id);

struct cn_deployment {
    atomic_uint refs;
    struct cn_script **scripts; /* references */
    size_t script_count;
    /* Called once, when every script has started on the first lane, on a thread that may wait and
     * before a request reaches them: what must be durable with the deployment is made so. Negative:
     * the deployment is refused, the former one serves on. May be NULL. */
    int (*commit)(void *data, struct cn_err *err);
    void *commit_data;
    bool rehearsal; /* it is tried (S2 of server.c) and comes to no lane */
};

struct cn_deployment *cn_deployment_new(void);
/* Takes over the caller's reference to the script. One that is `beside` comes after its first. */
void cn_deployment_add(struct cn_deployment *deployment, struct cn_script *script);
struct cn_deployment *cn_deployment_ref(struct cn_deployment *deployment);
void cn_deployment_unref(struct cn_deployment *deployment);

/* Index of the script whose route fits best (longest host, then longest path; a script
 * without routes fits everything, last), or -1. `host` may carry a port, which is ignored. */
int cn_deployment_match(const struct cn_deployment *deployment, const char *host, size_t host_size,
                        const char *path, size_t path_size);

/* R2: which of the worker's versions, of which `first` is the first. */
size_t cn_deployment_pick(const struct cn_deployment *deployment, size_t first, uint64_t number);
/* The place of the version with this id, or -1. */
int cn_deployment_find_version(const struct cn_deployment *deployment, size_t first, const char *id,
                               size_t id_size);

#endif
