/* SPDX-License-Identifier: Apache-2.0 */
/* service/analytics/natives.c - AnalyticsEngineDataset.writeDataPoint(): analytics/points.h.
 *
 * The prelude has counted and converted; sizes are checked here, where they are known. */
#include <string.h>

#include "analytics/points.h"
#include "base/assert.h"
#include "base/clock.h"
#include "bindings/service_call.h"
#include "border/analytics/natives.h"
#include "js/native.h"
#include "object/node.h"
#include "worker/runtime.h"

/* analyticsWrite(dataset, index, blobs, blobCount, doubles: Float64Array): texts are strings or
 * bytes; throws if they are too long. */
static JSValueRef native_analytics_write(CN_JS_NATIVE_ARGS)
{
    struct cn_object_lane *lane = cn_jsservice_lane(ctx);
    struct cn_services *services = cn_node_data(lane->node);
    struct cn_point point = {.time_ms = cn_clock_wall_ms(cn_node_clock(lane->node)),
                             .blob_count = cn_js_to_uint32(ctx, cn_js_arg(3))};
    size_t ends[1 + CN_POINT_BLOB_COUNT];
    uint8_t *doubles;
    size_t size;
    uint32_t dataset = cn_js_to_uint32(ctx, cn_js_arg(0));
    if (dataset >= CN_POINTS_DATASET_MAX || point.blob_count > CN_POINT_BLOB_COUNT ||
        !cn_js_bytes(ctx, cn_js_arg(4), &doubles, &size) || size > sizeof(point.doubles))
        return cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR, "analyticsWrite: bad arguments");
    memcpy(point.doubles, doubles, size);
    point.double_count = (unsigned)(size / sizeof(double));

    struct cn_buf texts = {0};
    (void)cn_jsservice_body(ctx, cn_js_arg(1), &texts); /* the prelude gives nothing else */
    ends[0] = texts.size;
    for (unsigned i = 0; i < point.blob_count; i++) {
        JSValueRef blob = cn_js_at(ctx, cn_js_arg(2), i);
        (void)cn_jsservice_body(ctx, blob, &texts);
        ends[1 + i] = texts.size;
    }
    if (ends[0] > CN_POINT_INDEX_SIZE_MAX)
        cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                    "writeDataPoint(): Size of indexes[0] exceeds %d bytes.",
                    CN_POINT_INDEX_SIZE_MAX);
    else if (texts.size - ends[0] > CN_POINT_BLOB_SIZE_MAX)
        cn_js_throw(ctx, exception, CN_JS_TYPE_ERROR,
                    "writeDataPoint(): Cumulative size of blobs exceeds %d bytes.",
                    CN_POINT_BLOB_SIZE_MAX);
    if (*exception)
        goto free_texts;

    const char *text = cn_buf_text(&texts);
    point.index = (struct cn_point_text){text, ends[0]};
    for (unsigned i = 0; i < point.blob_count; i++)
        point.blobs[i] = (struct cn_point_text){text + ends[i], ends[i + 1] - ends[i]};
    cn_points_write(services->points, lane->index, dataset, &point);
free_texts:
    cn_buf_fini(&texts);
    return JSValueMakeUndefined(ctx);
}
