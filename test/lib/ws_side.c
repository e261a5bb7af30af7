/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/ws_side.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "test/lib/test.h"

__attribute__((format(printf, 2, 3))) static void note(struct ws_side *side, const char *format,
                                                       ...)
{
    size_t size = strlen(side->seen);
    va_list args;
    va_start(args, format);
    snprintf(side->seen + size, sizeof(side->seen) - size, "%s", size ? " " : "");
    size = strlen(side->seen);
    vsnprintf(side->seen + size, sizeof(side->seen) - size, format, args);
    va_end(args);
}

static void side_ready(struct cn_ws_end *end)
{
    struct ws_side *side = end->owner;
    struct cn_ws_item *item;
    while ((item = cn_ws_end_take(end))) {
        side->last = item->message;
        if (item->message)
            note(side, "%s:%.*s", item->message->text ? "m" : "b", (int)item->message->size,
                 (char *)item->message->bytes);
        else
            note(side, "c%u:%.*s:%s%s", item->close.code, (int)item->close.reason_size,
                 item->close.reason_size ? item->close.reason : "",
                 item->close.clean ? "clean" : "cut", item->close.error ? item->close.error : "");
        cn_ws_item_free(item);
    }
}

static void side_hold(struct cn_ws_end *end, bool hold)
{
    note(end->owner, "%s", hold ? "hold" : "go");
}

/* The 1006 that comes with it is in `seen`, if nothing else had ended it. */
static void side_gone(struct cn_ws_end *end)
{
    (void)end;
}

const struct cn_ws_end_ops ws_side_ops = {side_ready, side_hold, side_gone};

void ws_side_say(struct ws_side *side, const char *text)
{
    struct cn_ws_close close = {4001, true, "done", 4, NULL};
    struct cn_ws_close cut = {1006, false, "", 0, "wire"};
    if (strcmp(text, "!") == 0) {
        cn_ws_end_close(side->end, &close);
        return;
    }
    if (strcmp(text, "?") == 0) {
        cn_ws_end_cut(side->end, &cut);
        return;
    }
    struct cn_ws_message *message = cn_ws_message_new(text[0] != '#', text, strlen(text));
    CHECK_INT(0, cn_ws_end_send(side->end, message));
    cn_ws_message_unref(message);
}
