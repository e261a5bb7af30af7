/* SPDX-License-Identifier: Apache-2.0 */
/* service/analytics/face.c - Analytics Engine for code in C (module/face.h): writeDataPoint. */
#include "module/face.h"
#include "service/analytics/analytics.h"

#include <string.h>

#include "analytics/points.h"
#include "base/clock.h"
#include "object/node.h"
#include "service/service.h"

/* A member of the point as an array; `undefined` is an empty one. */
static int list_of(const cairn_value *point, const char *name, size_t most,
                   const cairn_value **list, size_t *count, struct cn_err *err)
{
    *list = cn_value_get(point, name);
    *count = cn_value_count(*list);
    if (*list && cn_value_kind(*list) != CAIRN_ARRAY)
        return cn_err_set(err, CN_EINVALID, "writeDataPoint(): %s must be an array.", name);
    if (*count > most)
        return cn_err_set(err, CN_ELIMIT, "writeDataPoint(): Maximum of %zu %s supported.", most,
                          name);
    return 0;
}

/* What is neither text nor bytes is empty. */
static struct cn_point_text text_of(const cairn_value *value)
{
    const void *bytes;
    size_t size;
    if (!cn_face_bytes(value, &bytes, &size))
        return (struct cn_point_text){"", 0};
    return (struct cn_point_text){bytes, size};
}

static int read_point(struct cn_point *point, const cairn_value *given, struct cn_err *err)
{
    const cairn_value *indexes, *blobs, *doubles;
    size_t index_count, blob_count, double_count, total = 0;
    if (list_of(given, "indexes", 1, &indexes, &index_count, err) < 0 ||
        list_of(given, "blobs", CN_POINT_BLOB_COUNT, &blobs, &blob_count, err) < 0 ||
        list_of(given, "doubles", CN_POINT_DOUBLE_COUNT, &doubles, &double_count, err) < 0)
        return err->code;
    point->index = text_of(cn_value_at(indexes, 0));
    point->blob_count = (unsigned)blob_count;
    point->double_count = (unsigned)double_count;
    for (size_t i = 0; i < blob_count; i++) {
        point->blobs[i] = text_of(cn_value_at(blobs, i));
        total += point->blobs[i].size;
    }
    for (size_t i = 0; i < double_count; i++)
        (void)cn_value_number(cn_value_at(doubles, i), &point->doubles[i]); /* or 0 */
    if (point->index.size > CN_POINT_INDEX_SIZE_MAX)
        return cn_err_set(err, CN_ELIMIT, "writeDataPoint(): Size of indexes[0] exceeds %d bytes.",
                          CN_POINT_INDEX_SIZE_MAX);
    if (total > CN_POINT_BLOB_SIZE_MAX)
        return cn_err_set(err, CN_ELIMIT,
                          "writeDataPoint(): Cumulative size of blobs exceeds %d bytes.",
                          CN_POINT_BLOB_SIZE_MAX);
    return 0;
}

static int begin(struct cn_face_work *work, const cairn_value *arguments, cairn_builder *result,
                 struct cn_err *err)
{
    struct cn_point point = {.time_ms = cn_clock_wall_ms(cn_node_clock(work->lane->node))};
    int64_t dataset = -1;
    int rc = read_point(&point, cn_value_at(arguments, 0), err);
    cn_value_int(cn_value_get(work->binding, "dataset"), &dataset);
    if (rc == 0 && (dataset < 0 || dataset >= CN_POINTS_DATASET_MAX))
        rc = cn_err_set(err, CN_EINVALID, "writeDataPoint(): there is no such dataset");
    if (rc == 0)
        cn_points_write(work->services->points, work->lane->index, (uint32_t)dataset, &point);
    cn_build_undefined(result);
    return rc;
}

static const struct cn_face_method methods[] = {{"writeDataPoint", begin, NULL, NULL}, {0}};
const struct cn_service_face cn_analytics_face = {methods};
