/* SPDX-License-Identifier: Apache-2.0 */
/* service/def.h - one descriptor per service: all that the rest of the server knows of it.
 *
 * A service is a folder, src/service/NAME/, that ends in a struct cn_service_def, and its line in
 * service/table.c. No other file of src/ names it: configuration, deployment, control API, command
 * line and metrics go over the table and ask each descriptor for its part. What is NULL there, the
 * service does not have.
 *
 *     NAME.h, NAME.c   the class of its objects (service/service.h), and the descriptor
 *     config.c         its key of the configuration, and what its bindings are   room of project/
 *     natives.c        what its JavaScript calls, described in border.ts         room of bindings/
 *     face.c           what code in C calls of it                                room of module/
 *     control.c        its requests of the control API, in openapi.json          room of admin/
 *     command.c        `cairn NAME ...`                                          room of cli/
 *     metrics.c        its numbers, besides what is counted of every object      room of admin/
 *
 * A file whose name begins so (control_browse.c) is in the same room: it may include what that room
 * may, while the class itself knows nothing above object/ (tools/lint). Headers of a folder are
 * its own: who is not of the folder does not include them.
 *
 * Its JavaScript is prelude/workers/service/NAME.js, whose makeBinding() is given what config.c
 * wrote. docs/inside/hacking.md shows a whole service.
 *
 * D1  Names of services, their keys, commands and routes are each given once.
 * D2  A service that has no class keeps nothing in "$NAME/" namespaces. */
#ifndef CN_SERVICE_DEF_H
#define CN_SERVICE_DEF_H
#include <stddef.h>
#include <stdint.h>

#include "object/metrics.h"

struct cn_blob_id;
struct cn_buf;
struct cn_class;
struct cn_command;
struct cn_control_routes;
struct cn_database;
struct cn_err;
struct cn_js_natives;
struct cn_metrics_sink;
struct cn_metrics_sources;
struct cn_namespace;
struct cn_service_config;
struct cn_service_face;
struct cn_service_wire;
struct cn_services;

/* Numbers of a cache that a service keeps in memory, under one name for all of them. */
struct cn_service_cache {
    const char *name; /* static: the label */
    uint64_t hits, misses, entries, bytes;
};

struct cn_service_def {
    const char *name;  /* "kv": the folder, and its namespaces "$kv/ID" */
    const char *title; /* "KV" */
    const char *about; /* in a line of docs/reference/bindings.md */
    const char *page;  /* "reference/kv.md", below docs/ */

    const struct cn_class *class_;         /* of its objects */
    const char *operations[CN_OBJECT_OPS]; /* what call.op says, for metrics */
    /* How its calls go to objects of other nodes (service/wire.h); NULL: they do not. */
    const struct cn_service_wire *wire;
    /* Which of these blobs, whose ids name this namespace, may be referred to by its object, now or
     * later: known[i], for shard/bodies.h. Waits; negative: it cannot be said. NULL: it has none.
     */
    int (*blobs_known)(struct cn_namespace *ns, const struct cn_blob_id *ids, size_t count,
                       uint8_t *known, struct cn_err *err);
    /* Calls back for each blob that the object of this database refers to, whoever opened it: for
     * backups, which have to have them. A negative return ends it and is returned. NULL: it has
     * none. */
    int (*blobs_named)(struct cn_database *db, int (*each)(void *data, const struct cn_blob_id *id),
                       void *data, struct cn_err *err);
    /* What other nodes ask of the service and not of an object (service/node_calls.h), on a thread of
     * the pool: fills in the answer, or `err`. NULL: nothing. */
    int (*asked)(struct cn_services *services, const uint8_t *bytes, size_t size,
                 struct cn_buf *answer, struct cn_err *err);

    const struct cn_service_config *config; /* config/service_config.h */
    const struct cn_js_natives *natives;    /* cn_NAME_natives, made of border.ts */
    const struct cn_service_face *face;     /* module/face.h */
    const struct cn_control_routes *routes; /* admin/handler.h */
    const struct cn_command *command;       /* cli/args.h */
    /* Tells its own families of metrics (admin/metrics.h), after those of all objects. */
    void (*metrics)(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources);
    /* Reads its cache, of a family that all caches share. */
    void (*cache)(const struct cn_metrics_sources *sources, struct cn_service_cache *numbers);
};

/* The services, in the order of the documentation; NULL ends them (service/table.c). */
extern const struct cn_service_def *const cn_service_table[];

/* The number of a service in the table, which has less than this many. */
#define CN_SERVICE_MAX 64
size_t cn_service_index(const struct cn_service_def *def);
/* By its name; NULL: there is none. */
const struct cn_service_def *cn_service_named(const char *name, size_t size);

#endif
