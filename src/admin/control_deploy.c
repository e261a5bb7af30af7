/* SPDX-License-Identifier: Apache-2.0 */
/* admin/control_deploy.c - POST /api/deploy: reads, builds and deploys the projects again, as
 * SIGHUP does, and answers when the new version serves, or says why the last one goes on. */
#include "admin/handler.h"

int cn_control_deploy(struct cn_control_call *call, struct cn_err *err)
{
    const struct cn_control *control = call->control;
    if (!control->read_again)
        return cn_err_set(err, CN_EUNSUPPORTED, "no server runs here");
    int rc = control->read_again(control->deploy_data, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(&call->scratch, "{\"deployed\":true}");
    return cn_control_answer(call, &call->scratch);
}
