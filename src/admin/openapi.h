/* SPDX-License-Identifier: Apache-2.0 */
/* admin/openapi.h - the description of the control API, embedded at build time from
 * src/admin/openapi.json and those of services (tools/build-openapi.mjs). */
#ifndef CN_ADMIN_OPENAPI_H
#define CN_ADMIN_OPENAPI_H
#include <stddef.h>

extern const char cn_openapi[];
extern const size_t cn_openapi_size;

#endif
