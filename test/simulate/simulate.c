/* SPDX-License-Identifier: Apache-2.0 */
/* test/simulate/simulate.c - runs seeds.
 *
 *     simulate [--seeds N] [--seed K] [--first K] [--plant NAME | --planted]
 *
 * --seed shows one with all that happens in it; --seeds runs so many from --first on and names
 * those that fail. --planted, in the build that has them, plants one bug after the other and tells
 * after how many seeds each was found. Which seed it is decides everything: no clock, no thread, no
 * address has a part in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/simulate/world.h"

int32_t now;
bool calm, verified, may_accept;
unsigned replicas;

static void dispatch(struct event *event)
{
    switch (event->kind) {
    case EVENT_ARRIVE:
    case EVENT_STALL_ENDS:
    case EVENT_CANCEL:
    case EVENT_ENGINE_UP:
    case EVENT_ENGINE_MENDED:
    case EVENT_ZOMBIE_ENDS:
    case EVENT_BACKUP:
    case EVENT_ENGINE_BACK:
    case EVENT_ENGINE_RIGHT:
        engine_event(event);
        break;
    case EVENT_START:
        node_start(event->node);
        break;
    case EVENT_CLIENT:
        node_client(event->a);
        break;
    case EVENT_OP_TIMEOUT:
        if (ops[event->a].status == STATUS_OPEN) {
            ops[event->a].status = STATUS_UNKNOWN;
            ops[event->a].answered = now;
        }
        break;
    case EVENT_MOVE:
        node_move(event->node, event->a);
        break;
    case EVENT_FAULT:
        fault();
        break;
    default:
        node_event(event);
        break;
    }
}

/* --- a seed ----------------------------------------------------------------------------------- */

static void begin(uint64_t seed)
{
    events_reset(seed);
    now = 0;
    calm = false;
    verified = one_in(4);
    replicas = one_in(4) ? 3 : 2;
    check_reset();
    fault_reset();
    engine_reset();
    nodes_reset();
    bodies_reset(seed % 3 == 1);
    unsigned first = 2 + rnd(NODES - 1); /* the others join later */
    for (unsigned n = 0; n < NODES; n++)
        push(n < first ? (int32_t)rnd(200) : 3000 + (int32_t)rnd(12000), EVENT_START, (int)n, 0, 0,
             NULL);
    for (int i = 0; i < OPS_SPREAD; i++)
        push(1000 + (int32_t)rnd(CALM_MS + QUIET_MS - 1000), EVENT_CLIENT, NODES, SHARDS, 0, NULL);
    may_accept = one_in(8);
    for (int32_t at = 3000; one_in(2) && at < CALM_MS - 2000; at += 3000 + (int32_t)rnd(9000)) {
        push(at, EVENT_BACKUP, NODES, 0, 0, NULL);
        for (int i = 0; i < 6; i++) /* the first at which all disks know more */
            push(at + 300 + (int32_t)rnd(6000), EVENT_ENGINE_BACK, NODES, 0, 0, NULL);
    }
    unsigned faults = rnd(60);
    for (unsigned i = 0; i < faults; i++)
        push(2000 + (int32_t)rnd(CALM_MS - 2000), EVENT_FAULT, NODES, 0, 0, NULL);
}

static void let_go(struct event *event)
{
    if (event->kind == EVENT_ANSWER)
        answer_free(event->p);
    else if (event->kind == EVENT_MESSAGE || event->kind == EVENT_ARRIVE)
        free(event->p);
}

static void run(uint64_t seed)
{
    bool to_the_end = seed % 32 == 0;
    uint64_t version = 0;
    begin(seed);
    int32_t look = CALM_MS + QUIET_MS + 500;
    struct event event;
    while (events_pop(&event)) {
        if (event.at >= CALM_MS && !calm) {
            now = CALM_MS;
            heal();
            for (int n = 0; n < NODES; n++)
                engine_drain(nodes[n].disk, false);
        }
        now = event.at;
        if (now >= look) {
            for (int n = 0; n < NODES; n++) {
                engine_drain(nodes[n].disk, false); /* the engine was not there before */
                node_start(n);                      /* one that has left meanwhile */
            }
            look += 500;
            if (now < END_MS - REST_MS)
                version = engine_version();
            if ((!to_the_end && check_settled()) || now >= END_MS) {
                let_go(&event);
                break;
            }
        }
        dispatch(&event);
        if (failed)
            break;
    }
    while (events_pop(&event))
        let_go(&event);
    if (!failed)
        check_history();
    if (to_the_end && !stuck)
        check_rest(version);
}

/* --- many --------------------------------------------------------------------------------------
 */

static bool wrong(void)
{
    return failed || stuck;
}

#ifdef CN_SIMULATION
static const struct {
    int plant;
    const char *name, *rule;
} plants[] = {
    {PLANT_NO_FENCE, "no-fence", "C1"},
    {PLANT_NO_HEAD, "no-head", "C1"},
    {PLANT_NO_LINK, "no-link", "C1"},
    {PLANT_NO_LIFE, "no-life", "C1"},
    {CN_BROKEN_RESEND_BLIND, "resend-blind", "C1"},
    {CN_BROKEN_HELLO_VIEW, "hello-view", "C1"},
    {CN_BROKEN_KEEP_UNDURABLE, "keep-undurable", "C1"},
    {CN_BROKEN_HASTY_FENCE, "hasty-fence", "C2"},
    {PLANT_BLIND_FENCE, "blind-fence", "C2"},
    {CN_BROKEN_UNSYNCED_VIEW, "unsynced-view", "C2"},
    {CN_BROKEN_FORGED_HINT, "forged-hint", "C2"},
    {PLANT_CLAIM_BLIND, "claim-blind", "C3"},
    {CN_BROKEN_OLD_READ, "old-read", "C3"},
    {CN_BROKEN_NO_TAIL, "no-tail", "C3"},
    {CN_BROKEN_NO_BARRIER, "no-barrier", "C4"},
    {CN_BROKEN_ANY_LINK, "any-link", "C4"},
    {PLANT_WARNING, "warning", "C4"},
    {CN_BROKEN_NO_LEASE, "no-lease", "C5"},
    {CN_BROKEN_LEASE_FROM_ANSWER, "lease-from-answer", "C5"},
    {CN_BROKEN_EARLY_ACK, "early-ack", "C5"},
    {PLANT_READ_EARLY, "read-early", "C5"},
    {CN_BROKEN_LEAVE_OPEN, "leave-open", "C5"},
    {CN_BROKEN_CONFIRM_OLD, "confirm-old", "C5"},
    {CN_BROKEN_FEED_EARLY, "feed-early", "C6"},
    {CN_BROKEN_COPY_EARLY, "copy-early", "C6"},
    {CN_BROKEN_MOVE_EARLY, "move-early", "C7"},
    {CN_BROKEN_MOVE_OPEN, "move-open", "C7"},
    {PLANT_TRIM_EARLY, "trim-early", "C8"},
    {CN_BROKEN_IGNORE_TRIM, "ignore-trim", "C8"},
    {CN_BROKEN_FORGET_COPY, "forget-copy", "C8"},
    {CN_BROKEN_CLAIM_CUT, "claim-cut", "C8"},
    {CN_BROKEN_EPOCH, "epoch", "C9"},
    {CN_BROKEN_FLAWED_ENGINE, "flawed-engine", "C11"},
    {CN_BROKEN_OLDER_TIMELINE, "older-timeline", "C11"},
    {CN_BROKEN_JOIN_LESS, "join-less", "C15"},
    {CN_BROKEN_OLDER_MAP, "older-map", "C15"},
    {CN_BROKEN_FORGETFUL, "forgetful", "C15"},
    {CN_BROKEN_UNREMEMBERED, "unremembered", "C15"},
    {CN_BROKEN_ADOPT_OPEN, "adopt-open", "C16"},
    {PLANT_KEEP_CHECKPOINT, "keep-checkpoint", "C16"},
    {CN_BROKEN_DROP_PARTIAL, "drop-partial", "P3"},
};

static int run_planted(uint64_t first, uint64_t count, const char *only)
{
    unsigned missed = 0, tried = 0;
    for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
        if (only && strcmp(only, plants[i].name) != 0)
            continue;
        cn_member_broken = plants[i].plant;
        tried++;
        uint64_t seed = first;
        do
            run(seed++);
        while (!wrong() && seed < first + count);
        missed += !wrong();
        if (wrong())
            printf("%-4s %-18s found after %7llu seeds: %s\n", plants[i].rule, plants[i].name,
                   (unsigned long long)(seed - first), failure);
        else
            printf("%-4s %-18s NOT FOUND in %llu seeds\n", plants[i].rule, plants[i].name,
                   (unsigned long long)count);
        fflush(stdout);
    }
    printf("%u planted, %u found\n", tried, tried - missed);
    return missed || !tried;
}
#else
static int run_planted(uint64_t first, uint64_t count, const char *only)
{
    fprintf(stderr, "simulate: nothing is planted in this build (make simulate-planted)\n");
    return 2;
}
#endif

static int run_many(uint64_t first, uint64_t count)
{
    uint64_t bad = 0, held = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        run(seed);
        bad += failed;
        held += stuck && !failed;
        if (wrong() && bad + held <= 10)
            printf("seed %llu: %s\n", (unsigned long long)seed, failure);
    }
    printf("%llu seeds, %llu wrong, %llu stuck; %llu operations, %.0f %% answered; %llu claims "
           "(%llu of what only the engine had), %llu fences, %llu moves, %llu copies, %llu "
           "promotions, %llu cancelled waits, %llu late "
           "statements; engines that went back %llu, of which %llu were accepted, %llu nodes "
           "ended by it\n",
           (unsigned long long)stats.seeds, (unsigned long long)bad, (unsigned long long)held,
           (unsigned long long)stats.ops, 100.0 * (double)stats.answered / (double)(stats.ops + 1),
           (unsigned long long)stats.takeovers, (unsigned long long)stats.fresh,
           (unsigned long long)stats.fenced, (unsigned long long)stats.moves,
           (unsigned long long)stats.copies, (unsigned long long)stats.promotions,
           (unsigned long long)stats.cancelled, (unsigned long long)stats.late,
           (unsigned long long)stats.backs, (unsigned long long)stats.accepted,
           (unsigned long long)stats.ended);
    return bad || held;
}

int main(int argc, char **argv)
{
    uint64_t first = 1, count = 10000;
    const char *only = NULL;
    bool planted = false, one = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--planted")) {
            planted = true;
            continue;
        }
        if (!strcmp(argv[i], "--plant")) {
            planted = true;
            only = value;
        } else if (!strcmp(argv[i], "--seeds")) {
            count = strtoull(value, NULL, 10);
        } else if (!strcmp(argv[i], "--first") || !strcmp(argv[i], "--seed")) {
            one = one || !strcmp(argv[i], "--seed");
            first = strtoull(value, NULL, 10);
        } else {
            fprintf(stderr, "simulate: what is %s?\n", argv[i]);
            return 2;
        }
        i++;
    }
    if (one) {
        trace_on = true;
        count = 1;
    }
    return planted ? run_planted(first, count, only) : run_many(first, count);
}
