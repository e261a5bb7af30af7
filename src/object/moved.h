/* SPDX-License-Identifier: Apache-2.0 */
/* object/moved.h - ids of objects that were made elsewhere and have moved here (`cairn import`).
 *
 * Scripts keep ids as texts, and so do other systems. A namespace into which objects were imported
 * therefore knows two more kinds of ids than those of its own (object/id.h):
 *
 *     derived   of a local simulator, whose key is public: SHA-256 of its name of the class. The id
 *               of a name is 16 bytes of the name's HMAC-SHA256 under the key; those and 16 random
 *               bytes are followed by 16 bytes of their own HMAC
 *     listed    of the hosted platform, whose keys nobody knows: each id, with what its name hashes
 *               to here if the name is known
 *
 *   V1  An id that was valid where it comes from is valid here, and a name that had one has it here,
 *       too: listed names first, then derived ones, then the namespace's own. What is imported is
 *       imported before anybody asks for a name, so no name ever has two ids here.
 *   V2  An id that is made here, by newUniqueId() or with a jurisdiction, is the namespace's own.
 *   V3  The file of a namespace is replaced as a whole and before its objects come: there is no
 *       object whose id is not accepted.
 *   V4  With a derived key ids are as secret as its name, which is what they were: whoever knows
 *       worker and class can make some that are valid. They name objects that have nothing.
 *
 * moved/<number of the namespace, 8 hex>.ids: docs/reference/data-format.md.
 *
 * Threads:   loading and keeping on one thread; what was loaded is immutable.
 * Ownership: the set owns all. */
#ifndef CN_OBJECT_MOVED_H
#define CN_OBJECT_MOVED_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "object/id.h"

struct cn_disk;
struct cn_moved;

#define CN_MOVED_FOLDER "moved"
#define CN_MOVED_KEY_SIZE 32

/* On disk as it is; sorted by id. */
struct cn_moved_entry {
    uint8_t id[CN_OBJECT_ID_SIZE];
    uint8_t name[CN_SIPHASH_SIZE]; /* cn_id_name_hash(); zeros: the name is not known */
};

/* Of one namespace. */
struct cn_moved_ids {
    uint32_t namespace_id;
    bool derived;
    uint8_t key[CN_MOVED_KEY_SIZE];
    struct cn_moved_entry *entries; /* owned */
    uint32_t *by_name;              /* owned: indexes of those with a name, ordered by its hash */
    size_t count, named_count;
};

/* Reads the files of a data directory; none is fine. CN_ECORRUPT, with a sentence. */
int cn_moved_load(struct cn_disk *disk, struct cn_moved **moved, struct cn_err *err);
void cn_moved_free(struct cn_moved *moved); /* NULL is fine */
/* NULL: nothing has moved into it; `moved` may be NULL. */
const struct cn_moved_ids *cn_moved_find(const struct cn_moved *moved, uint32_t namespace_id);

/* Writes the file of a namespace, durably; sorts the entries. CN_EEXISTS: two entries of one id or
 * of one name disagree. */
int cn_moved_keep(struct cn_disk *disk, struct cn_moved_ids *ids, struct cn_err *err);

/* The key that a simulator has for a class, which it calls "worker-Class". */
void cn_moved_key(const char *class_name, size_t size, uint8_t key[CN_MOVED_KEY_SIZE]);
/* Derived ids. */
void cn_moved_from_name(const uint8_t key[CN_MOVED_KEY_SIZE], const char *name, size_t size,
                        uint8_t id[CN_OBJECT_ID_SIZE]);
bool cn_moved_derived(const uint8_t key[CN_MOVED_KEY_SIZE], const uint8_t id[CN_OBJECT_ID_SIZE]);

/* For id.c. */
bool cn_moved_valid(const struct cn_moved_ids *ids, const uint8_t id[CN_OBJECT_ID_SIZE]);
/* False: the name has no id of before. */
bool cn_moved_named(const struct cn_moved_ids *ids, const uint8_t hash[CN_SIPHASH_SIZE],
                    const char *name, size_t size, uint8_t id[CN_OBJECT_ID_SIZE]);

#endif
