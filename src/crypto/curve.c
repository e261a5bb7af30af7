/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/curve.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/objects.h>

#include "base/assert.h"
#include "crypto/number.h"

/* What an operation works with; fini frees what is there. */
struct work {
    EC_GROUP *group;
    BN_CTX *bn_ctx;
    BIGNUM *secret, *x;
    EC_POINT *point, *product;
};

static int work_init(struct work *work, const char *curve, struct cn_err *err)
{
    int nid = OBJ_txt2nid(curve);
    *work = (struct work){.group = nid == NID_undef ? NULL : EC_GROUP_new_by_curve_name(nid)};
    ERR_clear_error();
    if (!work->group)
        return cn_err_set(err, CN_EUNSUPPORTED, "there is no such curve");
    work->bn_ctx = BN_CTX_new();
    work->x = BN_new();
    work->product = EC_POINT_new(work->group);
    CN_ASSERT(work->bn_ctx && work->x && work->product);
    return 0;
}

static void work_fini(struct work *work)
{
    EC_POINT_free(work->point);
    EC_POINT_free(work->product);
    BN_clear_free(work->secret);
    BN_clear_free(work->x);
    BN_CTX_free(work->bn_ctx);
    EC_GROUP_free(work->group);
    ERR_clear_error();
}

static int not_of_it(struct cn_err *err)
{
    return cn_err_set(err, CN_EINVALID, "not a number or a point of the curve");
}

/* A point of the curve other than that at infinity. */
static bool read_point(struct work *work, struct cn_bytes bytes)
{
    work->point = EC_POINT_new(work->group);
    CN_ASSERT(work->point);
    return bytes.size > 0 && bytes.size <= CN_CURVE_POINT_MAX &&
           EC_POINT_oct2point(work->group, work->point, bytes.data, bytes.size, NULL) == 1 &&
           !EC_POINT_is_at_infinity(work->group, work->point);
}

/* A number from 1 to below the order. */
static bool read_secret(struct work *work, struct cn_bytes bytes)
{
    if (bytes.size > CN_NUMBER_BITS_MAX / 8)
        return false;
    work->secret = BN_bin2bn(bytes.data, (int)bytes.size, NULL);
    return work->secret && !BN_is_zero(work->secret) &&
           BN_cmp(work->secret, EC_GROUP_get0_order(work->group)) < 0;
}

static bool make_secret(struct work *work)
{
    work->secret = BN_new();
    CN_ASSERT(work->secret);
    do {
        if (!BN_priv_rand_range(work->secret, EC_GROUP_get0_order(work->group)))
            return false;
    } while (BN_is_zero(work->secret));
    return true;
}

static bool append_point(const struct work *work, const EC_POINT *point, unsigned form,
                         struct cn_buf *out)
{
    uint8_t bytes[CN_CURVE_POINT_MAX];
    size_t size = EC_POINT_point2oct(work->group, point, (point_conversion_form_t)form, bytes,
                                     sizeof(bytes), NULL);
    cn_buf_append(out, bytes, size);
    return size > 0;
}

static void append_number(const BIGNUM *number, size_t width, struct cn_buf *out)
{
    cn_buf_reserve(out, width + 1);
    CN_ASSERT(BN_bn2binpad(number, out->data + out->size, (int)width) >= 0);
    out->size += width;
}

int cn_curve_point(const char *curve, struct cn_bytes point, unsigned form, struct cn_buf *out,
                   struct cn_err *err)
{
    struct work work;
    int rc = work_init(&work, curve, err);
    if (rc < 0)
        return rc;
    if (!read_point(&work, point) || !append_point(&work, work.point, form, out))
        rc = not_of_it(err);
    work_fini(&work);
    return rc;
}

int cn_curve_pair(const char *curve, const struct cn_bytes *secret, struct cn_buf *secret_out,
                  struct cn_buf *point_out, struct cn_err *err)
{
    struct work work;
    int rc = work_init(&work, curve, err);
    if (rc < 0)
        return rc;
    bool good = (secret ? read_secret(&work, *secret) : make_secret(&work)) &&
                EC_POINT_mul(work.group, work.product, work.secret, NULL, NULL, work.bn_ctx) == 1 &&
                append_point(&work, work.product, POINT_CONVERSION_UNCOMPRESSED, point_out);
    if (good)
        append_number(work.secret, (size_t)BN_num_bytes(EC_GROUP_get0_order(work.group)),
                      secret_out);
    else
        rc = not_of_it(err);
    work_fini(&work);
    return rc;
}

int cn_curve_multiply(const char *curve, struct cn_bytes secret, struct cn_bytes point,
                      struct cn_buf *out, struct cn_err *err)
{
    struct work work;
    int rc = work_init(&work, curve, err);
    if (rc < 0)
        return rc;
    bool good =
        read_secret(&work, secret) && read_point(&work, point) &&
        EC_POINT_mul(work.group, work.product, NULL, work.point, work.secret, work.bn_ctx) == 1 &&
        EC_POINT_get_affine_coordinates(work.group, work.product, work.x, NULL, work.bn_ctx) == 1;
    if (good)
        append_number(work.x, (size_t)(EC_GROUP_get_degree(work.group) + 7) / 8, out);
    else
        rc = not_of_it(err);
    work_fini(&work);
    return rc;
}
