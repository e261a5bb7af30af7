/* SPDX-License-Identifier: Apache-2.0 */
/* config/address.h - addresses to listen on, as people write them. */
#ifndef CN_CONFIG_ADDRESS_H
#define CN_CONFIG_ADDRESS_H
#include <stdint.h>

#include "base/err.h"

/* 0 to 65535, or -1. */
long cn_address_port(const char *text);
/* "HOST:PORT", "[V6]:PORT", ":PORT" (all addresses). The host is the caller's to free; what it
 * pointed to before is freed. */
int cn_address_parse(const char *text, char **host, uint16_t *port, struct cn_err *err);

#endif
