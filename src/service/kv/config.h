/* SPDX-License-Identifier: Apache-2.0 */
/* service/kv/config.h - `kv_namespaces` of the configuration, for who looks for one of them. */
#ifndef CN_SERVICE_KV_CONFIG_H
#define CN_SERVICE_KV_CONFIG_H
#include <stddef.h>

#include "config/config.h"

struct cn_config_kv {
    const char *binding;
    const char *id; /* NULL: one namespace per binding */
};

struct cn_kv_entries {
    struct cn_config_kv *items;
    size_t count;
};

const struct cn_kv_entries *cn_kv_entries(const struct cn_config *config);
/* What identifies a namespace on this node: its id, or the worker and the binding. Owned. */
char *cn_config_kv_id(const struct cn_config *config, const struct cn_config_kv *kv);

#endif
