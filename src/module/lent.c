/* SPDX-License-Identifier: Apache-2.0 */
#include "module/guard.h"
#include "module/api.h"
#include "module/lent.h"

#include <string.h>

#include "base/mem.h"
#include "module/pending.h"
#include "object/node.h"
#include "text/clone.h"

struct cairn_remote {
    uintptr_t handle;
    struct cn_list link; /* in cn_compiled_outside.remotes */
    cairn_object *self;
    struct cn_value_remote to; /* texts owned */
};

struct cn_compiled_outside *cn_compiled_outside(cairn_object *self)
{
    if (!self->outside) {
        self->outside = CN_NEW(struct cn_compiled_outside);
        cn_list_init(&self->outside->remotes);
        cn_list_init(&self->outside->streams);
        cn_list_init(&self->outside->lent);
    }
    return self->outside;
}

void cn_compiled_end_document(cairn_object *self, struct cn_document *document)
{
    for (const struct cn_value_remote *each = document->remotes; each; each = each->next) {
        if (each->address && !each->lent && !each->taken)
            cn_compiled_note_lent(self, "~release", each->address, each->number); /* L1 */
    }
    cn_document_fini(document);
}

/* --- functions and stubs --------------------------------------------------------------------- */

static void remote_free(cairn_remote *remote)
{
    cn_guard_remove(remote);
    cn_list_remove(&remote->link);
    remote->self->outside->remote_count--;
    cn_free((char *)remote->to.address);
    cn_free((char *)remote->to.hex);
    cn_free((char *)remote->to.name);
    cn_free(remote);
}

static char *copy(const char *text)
{
    return text ? cn_strdup(text) : NULL;
}

cairn_remote *cn_api_remote_keep(cairn_object *self, const cairn_value *value)
{
    struct cn_compiled_outside *outside = cn_compiled_outside(self);
    enum cairn_kind kind = cn_value_kind(value);
    struct cn_value_remote *from = cn_value_remote(value);
    if (!from || (kind != CAIRN_FUNCTION && kind != CAIRN_STUB)) {
        cn_compiled_refuse(self, CAIRN_EMISMATCH, "the value is no function and no stub");
        return NULL;
    }
    if (outside->remote_count == CN_REMOTES_MAX) {
        cn_compiled_refuse(self, CAIRN_ELIMIT, "an object keeps 10000 functions and stubs at most");
        return NULL;
    }
    cairn_remote *remote = CN_NEW(cairn_remote);
    remote->self = self;
    cn_guard_add(remote, CN_GUARD_REMOTE, self);
    remote->to = (struct cn_value_remote){.address = copy(from->address),
                                          .number = from->number,
                                          .ns = from->ns,
                                          .hex = copy(from->hex),
                                          .name = copy(from->name)};
    cn_list_push_back(&outside->remotes, &remote->link);
    outside->remote_count++;
    if (!from->address)
        return remote;
    if (from->lent || from->taken)
        cn_compiled_note_lent(self, "~retain", from->address, from->number);
    from->taken = true; /* L1 */
    return remote;
}

void cn_api_remote_release(cairn_remote *remote)
{
    if (remote->to.address)
        cn_compiled_note_lent(remote->self, "~release", remote->to.address, remote->to.number);
    remote_free(remote);
}

int cn_api_remote_call(cairn_remote *remote, const char *method, cairn_builder *arguments,
                       cairn_done done, void *data)
{
    cairn_object *self = remote->self;
    if (!remote->to.address) {
        if (!method)
            return cn_compiled_refuse(self, CAIRN_EMISUSE,
                                      "an object is no function: its methods are called");
        return cn_compiled_call_stub(self, &remote->to, method, arguments, done, data);
    }
    struct cn_compiled_lent_call call = {.address = remote->to.address,
                                         .number = remote->to.number,
                                         .method = method ? method : "",
                                         .done = done,
                                         .data = data};
    call.bytes = cn_pending_arguments(self, arguments, &call.size);
    return call.bytes ? cn_compiled_call_lent(self, &call) : CAIRN_EMISUSE;
}

void cn_api_build_remote(cairn_builder *builder, cairn_remote *remote)
{
    if (!remote->to.address) {
        cn_build_object_stub(builder, remote->to.ns, remote->to.hex, remote->to.name);
        return;
    }
    cn_compiled_note_lent(remote->self, "~retain", remote->to.address, remote->to.number);
    cn_build_reference(builder, TAG_HOST_FUNCTION, remote->to.address, remote->to.number);
}

void cn_api_build_stub(cairn_builder *builder, cairn_object *self, const char *binding,
                       const char *name)
{
    char hex[CN_OBJECT_HEX_SIZE + 1];
    uint8_t id[CN_OBJECT_ID_SIZE];
    if (!name && self->object) {
        const char *own = cn_api_object_name(self);
        cn_build_object_stub(builder, self->object->ns->id, self->id, own);
        return;
    }
    struct cn_namespace *ns = name ? cn_modules_namespace(self->class_->modules, binding) : NULL;
    if (!ns) {
        cn_build_mistake(builder, "there is no Durable Object binding for a stub");
        return;
    }
    cn_id_from_name(&ns->keys, CN_JURISDICTION_NONE, name, strlen(name), id);
    cn_id_to_hex(id, hex);
    cn_build_object_stub(builder, ns->id, hex, name);
}

void cn_compiled_drop_outside(cairn_object *self)
{
    if (!self->outside)
        return;
    CN_LIST_FOREACH(&self->outside->remotes, node)
    cn_api_remote_release(CN_CONTAINER_OF(node, cairn_remote, link));
    cn_compiled_free_streams(self);
    cn_free(self->outside);
    self->outside = NULL;
}
