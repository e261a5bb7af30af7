/* SPDX-License-Identifier: Apache-2.0 */
/* admin/control.h - the control API: what can be asked of a data directory, as HTTP with JSON.
 *
 * One implementation serves both a running server, where requests arrive through
 * DATA/control.sock or the admin listener (admin/admin.h), and the commands on
 * a directory that no server uses, which make the same calls in their own process
 * (cli/api.h). So `cairn objects ...` prints the same in both cases. The
 * requests are described by the OpenAPI document that GET /openapi.json returns.
 *
 * A call runs from its beginning to its end on one thread, which may block: on the
 * disk, on a lane (object/access.h), on a reader that takes the answer slowly.
 *
 * A node of a cluster answers for all of them: what another node has is asked there
 * (admin/relay.h), and lists are put together (admin/spread.h).
 *
 * Threads:   any number of calls at once, each on its own thread; never a lane's.
 * Ownership: the caller owns everything. */
#ifndef CN_ADMIN_CONTROL_H
#define CN_ADMIN_CONTROL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/guard.h"
#include "admin/target.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "store/record.h"

struct cn_backup_report;
struct cn_control_call;
struct cn_control_route;
struct cn_deployment;
struct cn_disk;
struct cn_node;
struct cn_points;
struct cn_relay_net;
struct cn_exchanges;
struct cn_gather;
struct cn_shard;
struct cn_shards;

/* What the calls act on. Without shards there are no objects. */
struct cn_control {
    struct cn_disk *disk;
    const char *data_path; /* the folder of `disk` */
    struct cn_shards *shards;
    struct cn_node *node;     /* NULL: no lanes; the caller has the directory for itself */
    struct cn_points *points; /* NULL: nobody writes any */
    /* The node in which services answer if `node` is NULL: it is started when first asked for. NULL
     * with an error. May be NULL: there is none. */
    struct cn_node *(*services)(void *data, struct cn_err *err);
    void *services_data;
    /* What is served now, a reference of the caller's; NULL: nothing yet. May be NULL. */
    struct cn_deployment *(*deployment)(void *data);
    /* Deploys again and waits until that is over; NULL: nothing serves. */
    int (*deploy)(void *data, struct cn_err *err);
    int (*read_again)(void *data, struct cn_err *err); /* the same of projects on disk */
    void *deploy_data;                                 /* of these two */
    /* What is known of the cluster that this server is a node of, as JSON. NULL: it is none. */
    int (*cluster)(void *data, struct cn_buf *json, struct cn_err *err);
    /* Copies the whole cluster to a folder, and appends the answer as JSON. NULL: it is none. */
    int (*backup)(void *data, struct cn_disk *to, struct cn_backup_report *report,
                  struct cn_buf *json, struct cn_err *err);
    void *cluster_data;
    const struct cn_relay_net *relay; /* how its other nodes are asked; NULL: there are none */
    struct cn_gather *gather;         /* how they are listened to (admin/gather.h); the admin's */
    struct cn_exchanges *exchanges;   /* calls that ask back; the admin's; NULL: none can */
    /* Routes of a room above (deploy/): a table like those of handler.h, or NULL. Calls of routes
     * below /client/v4 are looked at by `check` before the route's function runs (P1 of target.h).
     */
    const struct cn_control_route *more;
    int (*check)(struct cn_control_call *call, struct cn_err *err);
    /* Whether who asked may still: asked again when a body has come to its end. May be NULL. */
    bool (*is_good)(void *data, const struct cn_guard_who *who);
    /* Holds deployments back while everything is copied. May be NULL. */
    void (*pause)(void *data, bool on);
    void *more_data; /* for them */
};

#define CN_CONTROL_BODY_MAX (64u << 20) /* in memory: JSON, SQL, a value of KV */
#define CN_CONTROL_R2_MAX (5ull << 30)  /* an object of R2 */
#define CN_CONTROL_PATH_MAX CN_TARGET_SEGMENT_MAX
#define CN_CONTROL_PARAM_MAX 16

/* Which fields of a request go with a call beside content-type. */
#define CN_CONTROL_SENT                                                                            \
    {                                                                                              \
        "cache-control", "content-disposition", "content-encoding", "content-language", "expires", \
            "cf-r2-storage-class"                                                                  \
    }

struct cn_control_param {
    char *name, *value;
};

struct cn_control_call {
    /* The request. */
    const struct cn_control *control;
    const char *method;       /* "GET" */
    const char *target;       /* path and query, as sent */
    const char *content_type; /* NULL: not said */
    const char *host;         /* by which the client has reached the listener; NULL: by none */
    bool https;
    const struct cn_buf *sent; /* fields about the body: name, NUL, value, NUL; NULL: none */
    int64_t body_size;         /* as announced; -1: not */
    struct cn_guard_who who;   /* who asks, and what for */
    bool relayed;              /* by another node: answer for this one alone (R1 of relay.h) */
    /* Takes the next piece of the body, at most `size` bytes, and may block; 0: it has ended;
     * negative: it will not come to its end. NULL: there is none. */
    int64_t (*read)(struct cn_control_call *call, void *bytes, size_t size);
    /* The answer. `write` takes a piece of the body and may block; status, type and length are
     * set before the first. Negative: nobody listens any more. `cancelled` says so as well. */
    int status;
    const char *type;     /* static storage, or in `fields` */
    int64_t length;       /* of the body; -1: not known before */
    struct cn_buf fields; /* of the head beside those: name, NUL, value, NUL; the caller frees */
    bool cut;             /* it broke off: what was written is a part */
    bool refused;         /* of one that was relayed: nothing was done nor written, R1 */
    int (*write)(struct cn_control_call *call, const void *bytes, size_t size);
    bool (*cancelled)(struct cn_control_call *call);
    /* Private. */
    struct cn_buf scratch, body;
    size_t counted; /* bytes of `body` in the account of memory (base/account.h, A4) */
    char *text;     /* owned: backs the two below */
    char *path[CN_CONTROL_PATH_MAX];
    size_t path_count;
    struct cn_buf rest; /* what follows the path of a route that ends in "**": a key, any bytes */
    struct cn_control_param params[CN_CONTROL_PARAM_MAX];
    size_t param_count;
    struct cn_json *json;   /* the body; NULL: none */
    struct cn_shard *shard; /* that the call holds (cn_control_hold()); NULL: none */
    bool away;              /* it failed because this shard is not here: */
    unsigned away_shard;
    bool body_read;
    int platform_code; /* of an error in the platform's form; 0: by the status */
};

/* Answers the request; status is set and everything written when it returns. */
void cn_control_run(struct cn_control_call *call);

/* Appends an error in the form of the platform's API; code 0: one that goes with the status. */
void cn_control_append_platform_error(struct cn_buf *out, int status, int code, const char *text);
/* The HTTP status that says an error, and its name in the answer. */
int cn_control_status(int code);

#endif
