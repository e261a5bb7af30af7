/* SPDX-License-Identifier: Apache-2.0 */
/* cli/import.h - what `cairn import` does, in parts: objects, services, streams of objects.
 *
 *   J1  The source is only read (store/plain.h, G1).
 *   J2  Nothing that is there is overwritten. What is the same as its source counts as there, so a
 *       run that was interrupted is continued by another, and nothing comes twice; what differs is a
 *       conflict, and told.
 *   J3  Each thing comes whole or not at all, and whatever does not come is told by name.
 *   J4  When the command says that something came, it is durable.
 *
 * No server uses the data directory meanwhile.
 *
 * Ownership: the struct owns what it points to but options and `given`. */
#ifndef CN_CLI_IMPORT_H
#define CN_CLI_IMPORT_H
#include <stdbool.h>
#include <stdint.h>

#include "cli/api.h"
#include "object/moved.h"
#include "project/classes.h"
#include "project/project.h"

enum cn_import_kind {
    CN_IMPORT_OBJECTS,
    CN_IMPORT_KV,
    CN_IMPORT_D1,
    CN_IMPORT_R2,
    CN_IMPORT_QUEUES,
    CN_IMPORT_KINDS
};

enum cn_import_outcome {
    CN_IMPORT_CAME,
    CN_IMPORT_THERE,    /* it is here already, and the same */
    CN_IMPORT_CONFLICT, /* something else is here */
    CN_IMPORT_LEFT,     /* on purpose: it has expired, it is not finished */
    CN_IMPORT_FAILED,
    CN_IMPORT_OUTCOMES
};

struct cn_import {
    const char *source; /* borrowed: a folder, no slash at its end */
    bool verify, json;  /* verify: compare, write nothing */
    struct cn_project project;
    struct cn_api api;
    struct cn_classes classes;
    uint8_t secret[CN_SIPHASH_KEY_SIZE];
    struct cn_moved *moved;
    char *scratch; /* the path of a file for copies */
    uint64_t counts[CN_IMPORT_KINDS][CN_IMPORT_OUTCOMES];
    uint64_t told; /* lines of what did not come */
    bool listed[CN_IMPORT_KINDS];
};

/* Counts a thing; tells it if it did not come. `why` may be NULL. */
void cn_import_tell(struct cn_import *import, enum cn_import_kind kind,
                    enum cn_import_outcome outcome, const char *what, const char *why);
/* CN_EDENIED: links on its way lead out of the source (J1). */
int cn_import_check_path(struct cn_import *import, const char *path, struct cn_err *err);
/* Opens what the simulator has stored at `path`, from a copy. */
struct cn_plain;
int cn_import_open(struct cn_import *import, const char *path, struct cn_plain **plain,
                   struct cn_err *err);
/* The digits of the id that the simulator has for a name in one of its own classes. */
void cn_import_own_id(const char *class_name, const char *name, char hex[CN_OBJECT_HEX_SIZE + 1]);
/* Names below source/FOLDER, in order; links are left out. An absent folder is empty. */
struct cn_strings_owned {
    char **items;
    size_t count;
};
int cn_import_list(struct cn_import *import, const char *folder, struct cn_strings_owned *names,
                   struct cn_err *err);
void cn_import_list_free(struct cn_strings_owned *names);

/* The ids that a namespace accepts, on their way to its file (object/moved.h). */
struct cn_import_ids {
    struct cn_id_keys keys;
    struct cn_moved_ids ids;
    size_t room;
};
/* Begins with those that it accepts already; of a namespace that nothing has moved into with the
 * names of objects that were made here, which keep their ids, but for ids derived from `key` (NULL:
 * none are). */
int cn_import_ids_begin(struct cn_import *import, struct cn_import_ids *ids, uint32_t namespace_id,
                        const uint8_t *key, struct cn_err *err);
void cn_import_ids_add(struct cn_import_ids *ids, const struct cn_moved_entry *entry);
void cn_import_ids_fini(struct cn_import_ids *ids);
/* Whether a failure ends the import: the data directory itself has failed, not a thing. */
bool cn_import_is_fatal(struct cn_import *import, int rc);
/* Writes a settled file as an object; *outcome says what became of it. */
struct cn_plain_file;
int cn_import_store(struct cn_import *import, const struct cn_object_key *key,
                    const struct cn_plain_file *file, enum cn_import_outcome *outcome,
                    struct cn_err *err);
/* What has come is durable when it returns 0. */
int cn_import_sync(struct cn_import *import, struct cn_err *err);

/* A key of KV whose value is the file at `path`; `expires_s` 0: never; `metadata` is JSON. */
struct cn_import_key {
    const char *text;
    size_t size;
    int64_t expires_s;
    const char *metadata, *path;
};
int cn_import_kv_key(struct cn_import *import, const char *namespace_id,
                     const struct cn_import_key *key, struct cn_err *err);

/* An object of R2, of which the source's list has told; what else there is comes with the body, if
 * that is needed: `fetch` writes it to import->scratch and fills in http and custom. */
struct cn_import_object {
    const char *key, *etag;
    int64_t size, uploaded_ms;
    struct cn_buf http, custom; /* JSON objects */
    int (*fetch)(struct cn_import_object *object, void *data, struct cn_err *err);
    void *data;
};
int cn_import_r2_object(struct cn_import *import, const char *bucket,
                        struct cn_import_object *object, struct cn_err *err);

/* A bucket by S3: "s3:BUCKET", from the server at `endpoint`, with "KEY:SECRET". */
int cn_import_s3(struct cn_import *import, const char *endpoint, const char *keys,
                 struct cn_err *err);

/* What the API of the hosted platform gives: "kv:NAMESPACE_ID" or "queue:NAME". */
struct cn_import_hosted {
    const char *api, *account, *token; /* of the platform */
};
int cn_import_hosted(struct cn_import *import, const struct cn_import_hosted *hosted,
                     struct cn_err *err);

/* A stream of objects (examples/moving/export.js): import->source is a file. */
int cn_import_stream(struct cn_import *import, struct cn_err *err);
/* A failure is of the data directory or of memory: nothing more can come. */
int cn_import_objects(struct cn_import *import, struct cn_err *err);
int cn_import_services(struct cn_import *import, struct cn_err *err);

#endif
