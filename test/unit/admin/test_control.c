/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin API answers when something fails: every code has a status, and 500 only those
 * that are the server's own fault. */
#include "admin/control.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "test/lib/test.h"

TEST(control, says_internal_error_of_its_own_faults_alone)
{
    int last = CN_ECORRUPT;
    for (int code = CN_ECORRUPT; strcmp(cn_err_name(code), cn_err_name(-99999)) != 0; code--) {
        bool own = code == CN_ECORRUPT || code == CN_EVERSION || code == CN_EJS;
        int status = cn_control_status(code);
        CHECK_INT(own, status == 500);
        CHECK(status >= 400 && status < 600);
        last = code;
    }
    CHECK(last <= CN_EDENIED); /* it has been through all */
    CHECK_INT(503, cn_control_status(CN_ENOMEM));
    CHECK_INT(409, cn_control_status(CN_EABORTED));
    CHECK_INT(507, cn_control_status(-ENOSPC));
    CHECK_INT(503, cn_control_status(-ENOMEM));
    CHECK_INT(500, cn_control_status(-EIO));
}
