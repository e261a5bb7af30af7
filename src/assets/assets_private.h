/* SPDX-License-Identifier: Apache-2.0 */
/* assets/assets_private.h - what assets.c (the folder) and answer.c (requests) share. */
#ifndef CN_ASSETS_ASSETS_PRIVATE_H
#define CN_ASSETS_ASSETS_PRIVATE_H
#include <stdatomic.h>

#include "assets/assets.h"
#include "assets/rules.h"
#include "base/map.h"

struct cn_assets {
    atomic_uint refs;
    char *directory; /* owned, without a slash at its end */
    char *project;   /* owned, likewise; or NULL */
    unsigned folder_count;
    struct cn_assets_options options;
    char **first;        /* owned: options.first */
    char *base;          /* owned: "/docs", without a slash at its end; "": at the top */
    struct cn_map files; /* path -> struct cn_asset, owned */
    struct cn_asset_rules rules;
    size_t memory_size; /* of the bodies kept */
    uint64_t copy_size; /* of the file options.copy_fd */
};

#endif
