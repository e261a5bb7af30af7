#include <cairn.h>
#include <string.h>

static int call(cairn_object *object, void *instance, cairn_event *event)
{
    int64_t count = 0, by = 1;
    if (strcmp(cairn->event_method(event), "increment") != 0)
        return cairn->error(object, "TypeError", "there is no such method");
    cairn->value_int(cairn->kv_get(object, "count"), &count);
    cairn->value_int(cairn->value_at(cairn->event_arguments(event), 0), &by);
    cairn_builder *kept = cairn->builder(object);
    cairn->build_int(kept, count + by);
    int rc = cairn->kv_put(object, "count", kept);
    cairn->build_int(cairn->event_result(event), count + by);
    return rc;
}

static const struct cairn_class classes[] = {{.name = "Counter", .call = call}};
CAIRN_MODULE(classes)
