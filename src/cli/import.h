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

/* A failure is of the data directory or of memory: nothing more can come. */
int cn_import_objects(struct cn_import *import, struct cn_err *err);
int cn_import_services(struct cn_import *import, struct cn_err *err);

#endif
