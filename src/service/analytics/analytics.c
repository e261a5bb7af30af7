/* SPDX-License-Identifier: Apache-2.0 */
#include "service/analytics/analytics.h"

const struct cn_service_def cn_service_analytics = {
    .name = "analytics",
    .title = "Analytics Engine",
    .about = "data points, and SQL over them",
    .page = "reference/analytics-engine.md",
    .asked = cn_analytics_asked,
    .config = &cn_analytics_config,
    .natives = &cn_analytics_natives,
    .face = &cn_analytics_face,
    .routes = &cn_analytics_routes,
    .metrics = cn_analytics_metrics,
};
