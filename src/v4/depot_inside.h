/* SPDX-License-Identifier: Apache-2.0 */
/* v4/depot_inside.h - what the files of the depot share, and nobody else uses. */
#ifndef CN_V4_DEPOT_INSIDE_H
#define CN_V4_DEPOT_INSIDE_H
#include "v4/depot.h"

/* Below the data directory; owned. */
char *cn_depot_code_path(const char *code);
/* 1: read; 0: there is none. */
int cn_depot_read_sealed(struct cn_disk *disk, const char *path, size_t size_max,
                         struct cn_buf *out, struct cn_err *err);
int cn_depot_read_key(struct cn_disk *disk, uint8_t key[CN_DEPOT_KEY_SIZE], struct cn_err *err);
int cn_depot_read_state(struct cn_disk *disk, struct cn_depot_state **state, struct cn_err *err);
/* NULL with an error, also if it is not there. The caller frees it. */
struct cn_json *cn_depot_read_version_of(struct cn_disk *disk, const char *id, struct cn_err *err);
/* Writes it with the folders on the way; the end of the change makes it durable. */
int cn_depot_write_file(struct cn_depot *depot, const char *path, const void *bytes, size_t size,
                        struct cn_err *err);
/* Whether cn_depot_verify() has found this code whole; and that it has. */
bool cn_depot_is_verified(struct cn_depot *depot, const char *code);
void cn_depot_set_verified(struct cn_depot *depot, const char *code);
/* DB: fetches files that are missing or damaged here. CN_EUNSUPPORTED: there is nowhere to. */
int cn_depot_need(struct cn_depot *depot, const char *version, const char *code,
                  struct cn_err *err);

#endif
