/* SPDX-License-Identifier: Apache-2.0 */
#include "object/message.h"

#include "base/mem.h"

void cn_message_settle(struct cn_message *message)
{
    if (!message->call.envelope.err.code || !message->call.result)
        return;
    cn_free(message->result);
    message->result = NULL;
}

void cn_message_fini(struct cn_message *message)
{
    cn_free(message->call.name);
    cn_free(message->method);
    cn_free(message->bytes);
    cn_free(message->result);
    cn_lent_list_fini(&message->lent);
}
