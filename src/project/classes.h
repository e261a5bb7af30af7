/* SPDX-License-Identifier: Apache-2.0 */
/* project/classes.h - which Durable Object class of which worker has which objects.
 *
 * The objects of a class are those of a namespace, a number that the store gave
 * out; ids are made with it, and it never changes. What a class and its worker are
 * called may change: this table, the file classes.json of the data directory, says
 * which number is whose, and which migrations have been applied. Byte by byte in
 * docs/reference/data-format.md.
 *
 *   K1  The file is replaced as a whole, after the numbers it names are durable in
 *       the store: a crash leaves the state before or after a deployment.
 *   K2  Names of namespaces in the store follow the file (cn_classes_settle()), never
 *       the other way round; they are what people see in listings.
 *   K3  A deleted class keeps its number and its objects until retention is over; from then on it
 *       cannot be taken back, and some of its objects go with every deployment, on each node of a
 *       cluster those of the shards that it has.
 *
 * Threads:   none; whoever deploys, one at a time.
 * Ownership: the struct owns its arrays and texts. */
#ifndef CN_PROJECT_CLASSES_H
#define CN_PROJECT_CLASSES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/schema.h"

struct cn_buf;
struct cn_confnode;
struct cn_disk;
struct cn_err;
struct cn_shards;

#define CN_CLASSES_FILE "classes.json"

struct cn_class_entry {
    int64_t ns; /* negative: provisional, the store has not given one out yet */
    const char *script, *name;
    const char *storage; /* sqlite, legacy-kv */
    int64_t deleted_ms;  /* 0: it lives */
};

/* A worker that has been deployed here. */
struct cn_class_script {
    const char *name;
    struct cn_strings tags; /* of the migrations applied, in order */
    bool declarative;       /* deployed with `exports`: no way back to `migrations` */
};

/* Where a class went that was renamed or transferred: old bindings still find it. */
struct cn_class_forward {
    const char *script, *name;
    int64_t ns;
};

/* A worker expects to be given a class by another (`exports`, expecting-transfer). */
struct cn_class_expected {
    const char *script, *name;
    const char *from_script, *from_name;
};

struct cn_classes {
    struct cn_class_entry *entries;
    size_t entry_count;
    struct cn_class_script *scripts;
    size_t script_count;
    struct cn_class_forward *forwards;
    size_t forward_count;
    struct cn_class_expected *expected;
    size_t expected_count;
    int64_t provisional_count;
    struct cn_confnode *root; /* owned: the file, which texts are borrowed from */
    char **texts;             /* owned, and each of them: those that came later */
    size_t text_count;
};

/* Puts a checksum into an object of JSON, as its first member; and compares it: 1 if it is right, 0
 * if there is none, CN_ECORRUPT. */
void cn_classes_seal(struct cn_buf *json);
int cn_classes_unseal(const struct cn_buf *text, const char *name, struct cn_err *err);

/* Reads a small file of the data directory. 1, or 0 if it is absent. */
int cn_classes_read_file(struct cn_disk *disk, const char *name, struct cn_buf *text,
                         struct cn_err *err);
/* An absent file is an empty table. */
int cn_classes_load(struct cn_classes *classes, struct cn_disk *disk, struct cn_err *err);
int cn_classes_save(const struct cn_classes *classes, struct cn_disk *disk, struct cn_err *err);
/* The text of the file, and a table from it. */
void cn_classes_write(const struct cn_classes *classes, struct cn_buf *text);
int cn_classes_parse(struct cn_classes *classes, const struct cn_buf *text, struct cn_err *err);
/* A copy to be changed; it borrows from `from`, which must stay as it is meanwhile. */
void cn_classes_copy(struct cn_classes *to, const struct cn_classes *from);
void cn_classes_fini(struct cn_classes *classes);

/* Makes the names of namespaces in the stores those of the table (K2). */
int cn_classes_settle(const struct cn_classes *classes, struct cn_shards *shards,
                      struct cn_err *err);

/* The living class of this name, or NULL. Pointers are good until the next change. */
struct cn_class_entry *cn_classes_find(const struct cn_classes *classes, const char *script,
                                       const char *name);
/* What a binding to the name means: the class, or where it went, or where it is to come from. */
struct cn_class_entry *cn_classes_resolve(const struct cn_classes *classes, const char *script,
                                          const char *name);
const struct cn_class_script *cn_classes_find_script(const struct cn_classes *classes,
                                                     const char *name);
/* The same, made if it is not there. */
struct cn_class_script *cn_classes_script(struct cn_classes *classes, const char *name);

/* ---- for migrations; texts are copied ---- */

struct cn_class_entry *cn_classes_add(struct cn_classes *classes, const char *script,
                                      const char *name, const char *storage);
/* Another name, another worker, or both; the old name forwards. */
void cn_classes_move(struct cn_classes *classes, struct cn_class_entry *entry, const char *script,
                     const char *name);
/* Gives a new one its number. */
void cn_classes_number(struct cn_classes *classes, struct cn_class_entry *entry, uint32_t ns);
/* One that never had a number is forgotten. */
void cn_classes_delete(struct cn_classes *classes, struct cn_class_entry *entry, int64_t now_ms);
/* The worker is gone: its classes are deleted, whether migrations made them or not, and its
 * migrations may begin again. False: it had none of either. */
bool cn_classes_forget_script(struct cn_classes *classes, const char *script, int64_t now_ms);
void cn_classes_add_tag(struct cn_classes *classes, const char *script, const char *tag);
void cn_classes_expect(struct cn_classes *classes, const char *script, const char *name,
                       const char *from_script, const char *from_name);
void cn_classes_unexpect(struct cn_classes *classes, const char *script, const char *name);

#endif
