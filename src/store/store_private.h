/* SPDX-License-Identifier: Apache-2.0 */
/* store/store_private.h - the parts of a store, for database.c and store.c. */
#ifndef CN_STORE_STORE_PRIVATE_H
#define CN_STORE_STORE_PRIVATE_H
#include <pthread.h>

#include "store/image.h"
#include "store/store.h"
#include "store/vfs.h"

struct cn_keeper;

struct cn_store {
    struct cn_disk *disk;       /* borrowed */
    const struct cn_sink *sink; /* borrowed; NULL: none */
    bool is_driven;
    struct cn_store_driven driven;  /* if so */
    struct cn_disk_file *lock_file; /* owned, as are all below; NULL if it is driven */
    struct cn_catalog *catalog;
    struct cn_log *log;
    struct cn_images images;
    struct cn_keeper *keeper;
    pthread_mutex_t namespace_lock; /* one new number at a time */
    uint64_t recovered_records;
};

#endif
