/* SPDX-License-Identifier: Apache-2.0 */
#include "service/r2/r2_writer.h"

#include <assert.h>
#include <openssl/evp.h>

#include "object/node.h"
#include "service/r2/r2.h"
#include "service/r2/r2_seal.h"

#define PIECE_SIZE (256u << 10)

static_assert(CN_R2_DIGEST_MAX >= EVP_MAX_MD_SIZE, "room for every checksum");

void cn_r2_writer_init(struct cn_r2_writer *writer, struct cn_namespace *ns, const char *sha,
                       bool blob_only, const uint8_t *key)
{
    *writer = (struct cn_r2_writer){.blobs = ((struct cn_services *)cn_node_data(ns->node))->blobs,
                                    .blob_only = blob_only || key};
    cn_r2_id_draw(ns, &writer->id);
    writer->sealer = key ? cn_r2_sealer_new(key) : NULL;
    writer->md5 = EVP_MD_CTX_new();
    EVP_DigestInit_ex(writer->md5, EVP_md5(), NULL);
    if (!sha)
        return;
    const EVP_MD *md = EVP_get_digestbyname(sha);
    writer->sha = EVP_MD_CTX_new();
    EVP_DigestInit_ex(writer->sha, md ? md : EVP_sha256(), NULL);
}

bool cn_r2_writer_in_memory(const struct cn_r2_writer *writer, size_t more)
{
    return !writer->blob && !writer->blob_only && writer->size + more <= CN_R2_INLINE_MAX;
}

static int append_piece(struct cn_r2_writer *writer, const void *bytes, size_t size,
                        struct cn_err *err)
{
    EVP_DigestUpdate(writer->md5, bytes, size);
    if (writer->sha)
        EVP_DigestUpdate(writer->sha, bytes, size);
    bool in_memory = cn_r2_writer_in_memory(writer, size);
    writer->size += size;
    if (in_memory) {
        cn_buf_append(&writer->head, bytes, size);
        return 0;
    }
    int rc = writer->blob ? 0 : cn_blob_create_as(writer->blobs, &writer->id, &writer->blob, err);
    if (rc == 0 && writer->head.size) {
        rc = cn_blob_write(writer->blob, writer->head.data, writer->head.size, err);
        cn_buf_fini(&writer->head);
    }
    if (rc < 0 || !size)
        return rc;
    return writer->sealer ? cn_r2_sealer_write(writer->sealer, writer->blob, bytes, size, err)
                          : cn_blob_write(writer->blob, bytes, size, err);
}

/* In pieces that stay in the processor's cache from one checksum to the next, and to the file. */
int cn_r2_writer_append(struct cn_r2_writer *writer, const void *bytes, size_t size,
                        struct cn_err *err)
{
    const uint8_t *at = bytes;
    int rc;
    do {
        size_t part = size < PIECE_SIZE ? size : PIECE_SIZE;
        rc = append_piece(writer, at, part, err);
        at += part;
        size -= part;
    } while (rc == 0 && size > 0);
    return rc;
}

int cn_r2_writer_finish(struct cn_r2_writer *writer, struct cn_r2_written *written,
                        struct cn_err *err)
{
    *written = (struct cn_r2_written){.in_blob = writer->blob != NULL};
    EVP_DigestFinal_ex(writer->md5, written->md5, &written->md5_size);
    if (writer->sha)
        EVP_DigestFinal_ex(writer->sha, written->sha, &written->sha_size);
    int rc = writer->sealer ? cn_r2_sealer_end(writer->sealer, writer->blob, err) : 0;
    if (rc < 0 || !writer->blob)
        return rc;
    struct cn_blob_writer *blob = writer->blob;
    writer->blob = NULL;
    return cn_blob_finish(blob, &written->blob, err);
}

void cn_r2_writer_abandon(struct cn_r2_writer *writer)
{
    if (writer->blob)
        cn_blob_abandon(writer->blob);
    writer->blob = NULL;
}

void cn_r2_writer_fini(struct cn_r2_writer *writer)
{
    cn_r2_writer_abandon(writer);
    cn_r2_sealer_free(writer->sealer);
    EVP_MD_CTX_free(writer->md5);
    EVP_MD_CTX_free(writer->sha);
    cn_buf_fini(&writer->head);
}
