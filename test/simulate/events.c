/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/events.c - what is to happen, in order, and chance. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "test/simulate/world.h"

bool trace_on;
static uint64_t random_state;

uint32_t rnd(uint32_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(((random_state >> 32) * n) >> 32);
}

void trace(const char *format, ...)
{
    va_list args;
    printf("%6d.%03d  ", now / 1000, now % 1000);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

/* --- events: a heap --------------------------------------------------------------------------- */

enum { EVENTS = 1 << 14 };
static struct event heap[EVENTS];
static unsigned event_count;
static uint32_t event_order;

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void push(int32_t at, enum event_kind kind, int node, uint32_t a, uint32_t b, void *p)
{
    if (event_count == EVENTS) {
        fprintf(stderr, "simulate: too many events\n");
        abort();
    }
    struct event event = {.at = at,
                          .order = event_order++,
                          .kind = (uint8_t)kind,
                          .node = (uint8_t)node,
                          .life = node < NODES ? nodes[node].life : 0,
                          .a = a,
                          .b = b,
                          .p = p};
    unsigned i = event_count++;
    while (i && earlier(&event, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = event;
}

int32_t events_next(void)
{
    return event_count ? heap[0].at : NEVER;
}

bool events_pop(struct event *event)
{
    if (!event_count)
        return false;
    struct event last = heap[--event_count];
    *event = heap[0];
    unsigned i = 0;
    for (;;) {
        unsigned child = 2 * i + 1;
        if (child >= event_count)
            break;
        if (child + 1 < event_count && earlier(&heap[child + 1], &heap[child]))
            child++;
        if (!earlier(&heap[child], &last))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return true;
}

void events_reset(uint64_t seed)
{
    event_count = event_order = 0;
    random_state = (seed + 1) * 0x9E3779B97F4A7C15ull;
    for (int i = 0; i < 8; i++)
        rnd(2);
}
