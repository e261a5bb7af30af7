/* SPDX-License-Identifier: Apache-2.0 */
/* server/otlpconf.h - where traces, logs and metrics are exported to: variables, then [cairn.otlp].
 *
 *     CAIRN_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT   none: nothing is exported
 *     CAIRN_OTLP_HEADERS, OTEL_EXPORTER_OTLP_HEADERS     name=value,name=value; values %-encoded
 *     CAIRN_OTLP_INTERVAL                                seconds between metrics
 *     CAIRN_OTLP_TIMEOUT; OTEL_EXPORTER_OTLP_TIMEOUT     seconds of a request; milliseconds
 *     CAIRN_OTLP_SIGNALS                                 traces,logs,metrics
 *     OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES        of the resource
 *     OTEL_SDK_DISABLED=true                             nothing is exported
 *
 * Ownership: the exporter is the caller's. */
#ifndef CN_SERVER_OTLPCONF_H
#define CN_SERVER_OTLPCONF_H
#include "base/err.h"

struct cn_config;
struct cn_otlp;
struct cn_trust;

/* Starts the exporter that is asked for, if one is: *otlp is NULL otherwise. */
int cn_otlpconf_start(const struct cn_config *config, struct cn_trust *trust, struct cn_otlp **otlp,
                      struct cn_err *err);

#endif
