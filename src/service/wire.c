/* SPDX-License-Identifier: Apache-2.0 */
#include "service/wire.h"

#include "base/assert.h"
#include "base/err.h"
#include "service/service.h"

bool cn_service_wire_has(const struct cn_service_wire *wire, unsigned op)
{
    return wire && op < 32 && (wire->ops & 1u << op);
}

void cn_service_wire_ask(const struct cn_service_wire *wire, const struct cn_service_call *call,
                         struct cn_buf *out)
{
    CN_ASSERT(cn_service_wire_has(wire, call->call.op));
    cn_wire_put(wire->asked, call, out);
}

int cn_service_wire_asked(const struct cn_service_wire *wire, struct cn_service_call *call,
                          const uint8_t *bytes, size_t size, struct cn_node *node)
{
    if (!cn_service_wire_has(wire, call->call.op))
        return CN_EPROTOCOL;
    int rc = cn_wire_get(wire->asked, call, bytes, size, node);
    if (rc == 0 && wire->check && !wire->check(call))
        rc = CN_EPROTOCOL;
    return rc;
}

void cn_service_wire_answer(const struct cn_service_wire *wire, struct cn_service_call *call,
                            struct cn_buf *out)
{
    if (wire->trim)
        wire->trim(call);
    cn_wire_put(wire->answered, call, out);
}

int cn_service_wire_answered(const struct cn_service_wire *wire, struct cn_service_call *call,
                             const uint8_t *bytes, size_t size, struct cn_node *node)
{
    int rc = cn_wire_get(wire->answered, call, bytes, size, node);
    if (rc == 0 && wire->check_answer && !wire->check_answer(call))
        rc = CN_EPROTOCOL;
    return rc;
}
