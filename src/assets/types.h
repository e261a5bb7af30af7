/* SPDX-License-Identifier: Apache-2.0 */
/* assets/types.h - the Content-Type of a file, by the end of its name. Static storage. */
#ifndef CN_ASSETS_TYPES_H
#define CN_ASSETS_TYPES_H
#include <stddef.h>

/* NULL: unknown. */
const char *cn_asset_type(const char *path);
/* The extensions that are known, in order; NULL past the last. */
const char *cn_asset_type_extension(size_t index);

#endif
