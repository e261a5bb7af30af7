/* SPDX-License-Identifier: Apache-2.0 */
/* What other nodes send to a replica: records and copies. Whatever they are, a replica takes them,
 * or says what is wrong and is as it was before.
 *
 * The first byte says which. Records come as they are, and sealed: a length byte pair, a kind,
 * flags and a step of the LSN before each body, so that what lies behind the checksums is reached.
 * A copy likewise: a length byte pair and a kind before each frame. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/crc32c.h"
#include "base/diag.h"
#include "store/record.h"
#include "store/replica.h"
#include "store/store.h"
#include "test/lib/simdisk.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cn_replicas *replicas_open(struct simdisk *sim)
{
    struct cn_replicas_config config = {
        .disk = simdisk_disk(sim), .segment_size = 64 << 10, .manual = true};
    struct cn_replicas *replicas;
    if (cn_replicas_open(&config, &replicas, NULL) < 0)
        abort();
    return replicas;
}

static void refused(int rc, const struct cn_err *err)
{
    if (rc < 0 && err->text[0] == '\0')
        abort(); /* a refusal without a reason */
}

/* Whatever it took, it is what a restart finds; and it is promoted, or says why not. */
static void use(struct simdisk *sim, struct cn_replicas *replicas)
{
    struct cn_replica *replica = cn_replicas_find(replicas, 0);
    struct cn_replica_state before = {0}, after = {0};
    struct cn_err err = {0};
    struct cn_store *store;
    if (replica)
        cn_replica_state(replica, &before);
    cn_replicas_close(replicas);
    replicas = replicas_open(sim);
    bool there = replica != NULL;
    replica = cn_replicas_find(replicas, 0);
    if (there != (replica != NULL))
        abort();
    if (replica) {
        cn_replica_state(replica, &after);
        if (before.have != after.have || before.checkpoint != after.checkpoint)
            abort();
        /* A record may speak of a database of a terabyte. */
        simdisk_set_fault(sim, &(struct simdisk_fault){.space_bytes = 16 << 20});
        refused(cn_replica_checkpoint(replica, &err), &err);
        err.text[0] = '\0';
        refused(cn_replica_promote(replica, after.have, NULL, &store, &err), &err);
    }
    cn_replicas_close(replicas);
}

static void feed(struct cn_replica *replica, const void *bytes, size_t size)
{
    struct cn_replica_state before, after;
    struct cn_err err = {0};
    cn_replica_state(replica, &before);
    int rc = cn_replica_feed(replica, bytes, size, &err);
    refused(rc, &err);
    cn_replica_state(replica, &after);
    if (after.have < before.have || (rc == CN_EINVALID && after.have != before.have))
        abort();
}

static void try_records(const uint8_t *data, size_t size)
{
    struct simdisk *sim = simdisk_new();
    struct cn_replicas *replicas = replicas_open(sim);
    struct cn_replica *replica;
    struct cn_buf records = {0};
    if (cn_replicas_create(replicas, 0, &replica, NULL) < 0)
        abort();
    feed(replica, data, size);
    for (uint64_t lsn = 0; size >= 5;) {
        size_t body_size = (size_t)(data[0] | data[1] << 8) % 2048;
        lsn += data[4] < 240 ? 1 : data[4] - 243u;
        struct cn_record_header header = {.lsn = lsn, .kind = data[2], .flags = data[3]};
        data += 5;
        size -= 5;
        body_size = body_size < size ? body_size : size;
        header.body_size = (uint32_t)body_size;
        cn_record_seal(&header, data);
        cn_buf_append(&records, &header, sizeof(header));
        cn_buf_append(&records, data, body_size);
        while (records.size % 8)
            cn_buf_append_byte(&records, 0);
        if (header.flags & 2) {
            feed(replica, records.data, records.size);
            cn_buf_clear(&records);
        }
        data += body_size;
        size -= body_size;
    }
    feed(replica, records.data, records.size);
    cn_buf_fini(&records);
    use(sim, replicas);
    simdisk_free(sim);
}

static int take(struct cn_replica_copy *copy, const void *bytes, size_t size)
{
    struct cn_err err = {0};
    int rc = cn_replica_copy_take(copy, bytes, size, &err);
    refused(rc, &err);
    return rc;
}

static void try_copy(const uint8_t *data, size_t size, bool sealed)
{
    struct simdisk *sim = simdisk_new();
    struct cn_replicas *replicas = replicas_open(sim);
    struct cn_replica_copy *copy;
    struct cn_replica *replica;
    struct cn_err err = {0};
    if (cn_replica_copy_begin(replicas, 0, &copy, NULL) < 0)
        abort();
    int rc = sealed ? 0 : take(copy, data, size);
    static const uint32_t begin[2] = {1, 0};
    for (bool first = true; sealed && rc == 0 && size >= 3; first = false) {
        size_t body_size = (size_t)(data[0] | data[1] << 8) % 2048;
        uint32_t frame[4] = {0x31595043u, 0, first ? 1 : data[2] % 6u, 0};
        data += 3;
        size -= 3;
        body_size = body_size < size ? body_size : size;
        const void *body = first ? (const void *)begin : data;
        frame[3] = (uint32_t)(first ? sizeof(begin) : body_size);
        frame[1] = cn_crc32c(cn_crc32c(0, &frame[2], 8), body, frame[3]);
        rc = take(copy, frame, sizeof(frame));
        if (rc == 0)
            rc = take(copy, body, frame[3]);
        data += first ? 0 : body_size;
        size -= first ? 0 : body_size;
    }
    refused(cn_replica_copy_end(copy, &replica, &err), &err);
    use(sim, replicas);
    simdisk_free(sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR + 1); /* refusals are what we are here for */
    if (size < 1 || size > 16384)
        return 0;
    if (data[0] % 3 == 0)
        try_records(data + 1, size - 1);
    else
        try_copy(data + 1, size - 1, data[0] % 3 == 1);
    return 0;
}
