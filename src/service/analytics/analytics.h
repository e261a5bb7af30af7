/* SPDX-License-Identifier: Apache-2.0 */
/* service/analytics/analytics.h - Analytics Engine as a service: its points and their SQL are
 * analytics/points.h and analytics/asql.h; here is what leads to them. */
#ifndef CN_SERVICE_ANALYTICS_ANALYTICS_H
#define CN_SERVICE_ANALYTICS_ANALYTICS_H
#include "service/def.h"

/* The descriptor and its parts. */
extern const struct cn_service_def cn_service_analytics;
extern const struct cn_service_config cn_analytics_config;
extern const struct cn_js_natives cn_analytics_natives;
extern const struct cn_service_face cn_analytics_face;
extern const struct cn_control_routes cn_analytics_routes;
/* What other nodes ask: control_nodes.h. */
int cn_analytics_asked(struct cn_services *services, const uint8_t *bytes, size_t size,
                       struct cn_buf *answer, struct cn_err *err);
void cn_analytics_metrics(struct cn_metrics_sink *sink, const struct cn_metrics_sources *sources);

#endif
