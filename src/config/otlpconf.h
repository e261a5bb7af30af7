/* SPDX-License-Identifier: Apache-2.0 */
/* config/otlpconf.h - where traces, logs and metrics are exported to: variables, then [cairn.otlp].
 *
 *     CAIRN_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT   none: nothing is exported
 *     CAIRN_OTLP_HEADERS, OTEL_EXPORTER_OTLP_HEADERS     name=value,name=value; values %-encoded
 *     CAIRN_OTLP_INTERVAL                                seconds between metrics
 *     CAIRN_OTLP_TIMEOUT; OTEL_EXPORTER_OTLP_TIMEOUT     seconds of a request; milliseconds
 *     CAIRN_OTLP_SIGNALS                                 traces,logs,metrics
 *     OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES        of the resource
 *     OTEL_SDK_DISABLED=true                             nothing is exported
 *
 * O1  A variable wins over [cairn.otlp], Cairn's own over the standard's; an empty one is none.
 * O2  A name stands once; what comes later wins. OTEL_SERVICE_NAME wins over the attributes.
 * O3  What cannot be understood is an error that names it: nothing is exported by half.
 *
 * Ownership: the exporter is the caller's; so are the texts of struct cn_otlpconf. */
#ifndef CN_CONFIG_OTLPCONF_H
#define CN_CONFIG_OTLPCONF_H
#include "admin/otlp.h"
#include "base/err.h"

struct cn_config;
struct cn_trust;

#define CN_OTLPCONF_PAIRS_MAX 64

struct cn_otlpconf_pairs {
    struct cn_otlp_pair items[CN_OTLPCONF_PAIRS_MAX]; /* owned texts */
    size_t count;
};

struct cn_otlpconf {
    struct cn_otlp_options options; /* `endpoint` NULL: nothing is exported; it is borrowed */
    struct cn_otlpconf_pairs headers, resource;
};

/* Reads what is asked for. To be freed, also on failure. */
int cn_otlpconf_choose(struct cn_otlpconf *conf, const struct cn_config *config,
                       struct cn_err *err);
void cn_otlpconf_fini(struct cn_otlpconf *conf);

/* Starts the exporter that is asked for, if one is: *otlp is NULL otherwise. */
int cn_otlpconf_start(const struct cn_config *config, struct cn_trust *trust, struct cn_otlp **otlp,
                      struct cn_err *err);

#endif
