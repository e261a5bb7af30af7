/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/watchdog.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "base/account.h"
#include "base/assert.h"
#include "base/cond.h"
#include "base/diag.h"
#include "base/mem.h"
#include "js/engine/memory.h"
#include "js/engine/regexp.h"
#include "module/crash.h"
#include "worker/instance.h"
#include "worker/lane.h"
#include "worker/runtime.h"

#define TICK_MS 50      /* while memory is plenty, */
#define TICK_SHORT_MS 5 /* and while it is not, or grows fast */
#define RELIEF_MS 100
#define FORGET_MS 1000    /* between two times that caches are emptied */
#define RESET_MS 250      /* between two resets */
#define REFUSING_MS 1000  /* so long requests are refused before somebody is reset for it, */
#define GATHERING_MS 5000 /* and so long bodies (worker/relief.h R7) */
#define WAIT_MS 30000     /* more to stop in, for lanes that run nothing */
#define GROWN_PART 64     /* of the limit: a turn that has grown by less is not ended for it */
#define STUCK_MS 10000
#define OVERDUE_MS 1000       /* of CPU time past what ends it: then a line is due */
#define MODULE_MS 3000        /* that a function of a module takes: then a line is due, */
#define MODULE_AGAIN_MS 30000 /* and another */

/* What the watchdog knows of a lane's turn. */
struct seen {
    uint64_t turn; /* its number; 0: none */
    uint64_t since_ns;
    uint64_t cpu_ns;       /* of the lane's thread, when the turn was first seen */
    uint64_t bytes;        /* of its heap, then (bytes_of()) */
    uint64_t ended_cpu_ns; /* of the thread when the turn was told to end; 0: it was not */
    bool told;             /* a line was written */
};

/* The same of a function of a module. */
struct seen_module {
    uint64_t count; /* of its pulse */
    uint64_t since_ns, told_ns;
};

struct cn_watchdog {
    struct cn_watchdog_options options;
    pthread_mutex_t trial_lock; /* held for a tick; guards the next */
    struct cn_lane *trial;      /* borrowed; NULL: there is none */
    uv_thread_t thread;
    pthread_mutex_t lock; /* guards the next three */
    pthread_cond_t wake;
    bool stopping;
    unsigned turn_age_ms; /* of cn_watchdog_end_turns(), plus 1; 0: nobody asked */
    enum cn_js_end turn_why;
    _Atomic uint64_t end_by_ns;
    struct seen *seen; /* owned, one per lane and the trial's; the thread's from here on */
    struct seen_module *modules; /* owned, one per lane */
    enum cn_account_level level;
    uint64_t used, relieved_ns, forgot_ns, asked_ns, reset_ns;
    uint64_t since_ns[CN_ACCOUNT_LEVEL_COUNT]; /* each level, or a higher one; 0: not now */
    bool stuck;
};

static uint64_t now_ns(void)
{
    return uv_hrtime();
}

/* Lanes whose turns are watched: those that serve, and behind them the trial's. */
static unsigned watched_count(const struct cn_watchdog *dog)
{
    return dog->options.lane_count + (dog->trial ? 1 : 0);
}

static struct cn_lane *lane_at(const struct cn_watchdog *dog, unsigned i)
{
    return i < dog->options.lane_count ? &dog->options.lanes[i] : dog->trial;
}

/* CPU time of a lane's thread; 0: it has ended, as a trial's may at any time. */
static uint64_t lane_cpu_ns(const struct cn_lane *lane)
{
    struct timespec ts;
    if (clock_gettime(lane->cpu_clock, &ts) != 0)
        return 0;
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* --- turns ------------------------------------------------------------------------------------ */

/* The worker whose turn it is. The turn runs for as long as this is read (it is overdue), so what
 * it points to is there. */
static const char *worker_of(const struct cn_lane *lane)
{
    struct cn_js_context *context = atomic_load(&lane->pulse.context);
    struct cn_runtime *runtime = context ? context->data : NULL;
    struct cn_instance *instance = runtime ? runtime->data : NULL;
    return instance ? instance->script->name : "?";
}

static void end_turn(struct cn_watchdog *dog, unsigned i, enum cn_js_end why)
{
    struct seen *seen = &dog->seen[i];
    struct cn_lane *lane = lane_at(dog, i);
    if (!seen->turn)
        return;
    if (!seen->ended_cpu_ns)
        seen->ended_cpu_ns = lane_cpu_ns(lane) + 1;
    cn_js_unwant(&lane->pulse, seen->turn, why);
}

/* D4. CPU time that the turn has used since it should have ended; 0: it should not have. */
static uint64_t overdue_ns(const struct cn_watchdog *dog, unsigned i)
{
    const struct seen *seen = &dog->seen[i];
    const struct cn_lane *lane = lane_at(dog, i);
    uint64_t budget = atomic_load_explicit(&lane->pulse.budget_ns, memory_order_relaxed);
    uint64_t cpu = lane_cpu_ns(lane), due = UINT64_MAX;
    if (budget)
        due = seen->cpu_ns + budget + budget / 2; /* vm.c: half of it may count twice */
    if (seen->ended_cpu_ns && seen->ended_cpu_ns < due)
        due = seen->ended_cpu_ns;
    return cpu > due ? cpu - due : 0;
}

/* What grows with a lane's turn: its heap; or, where nobody counts that, the process. */
static uint64_t bytes_of(const struct cn_watchdog *dog, unsigned i)
{
    return cn_js_alloc_on() ? cn_js_alloc_bytes_of(lane_at(dog, i)->alloc) : dog->used;
}

static void watch_turn(struct cn_watchdog *dog, unsigned i, uint64_t now)
{
    struct seen *seen = &dog->seen[i];
    struct cn_lane *lane = lane_at(dog, i);
    uint64_t turn = atomic_load_explicit(&lane->pulse.running, memory_order_acquire);
    if (turn != seen->turn) {
        *seen = (struct seen){.turn = turn, .since_ns = now};
        if (turn) {
            seen->cpu_ns = lane_cpu_ns(lane);
            seen->bytes = bytes_of(dog, i);
        }
        return;
    }
    if (!turn)
        return;
    uint64_t age_ms = (now - seen->since_ns) / 1000000;
    if (dog->options.wall_ms && age_ms > dog->options.wall_ms)
        end_turn(dog, i, CN_JS_END_WALL);
    if (age_ms < OVERDUE_MS)
        return;
    uint64_t late_ms = overdue_ns(dog, i) / 1000000;
    if (late_ms > 0)
        cn_js_engine_give_up_match(lane->thread_id);
    if (late_ms > OVERDUE_MS && !seen->told) {
        seen->told = true;
        cn_warn(
            "lane %u: worker %s is in a call that cannot be interrupted, %llu ms past its limit",
            lane->options.index, worker_of(lane), (unsigned long long)late_ms);
    }
    if (late_ms <= dog->options.stuck_ms || dog->stuck)
        return;
    dog->stuck = true;
    cn_error("lane %u: worker %s has held it for %llu s in a call that cannot be interrupted",
             lane->options.index, worker_of(lane), (unsigned long long)(age_ms / 1000));
    dog->options.on_stuck(dog->options.data);
}

/* D6 */
static void watch_module(struct cn_watchdog *dog, unsigned i, uint64_t now)
{
    struct seen_module *seen = &dog->modules[i];
    const struct cn_lane *lane = &dog->options.lanes[i];
    uint64_t count = atomic_load_explicit(&lane->module_pulse.count, memory_order_acquire);
    const struct cn_module_class *class_ =
        atomic_load_explicit(&lane->module_pulse.running, memory_order_relaxed);
    if (!class_ || count != seen->count) {
        *seen = (struct seen_module){.count = count, .since_ns = now};
        return;
    }
    uint64_t last = seen->told_ns ? seen->told_ns : seen->since_ns;
    if (now - last < (seen->told_ns ? MODULE_AGAIN_MS : MODULE_MS) * 1000000ull)
        return;
    char name[256];
    cn_module_crash_describe(class_, name, sizeof(name));
    if (atomic_load_explicit(&lane->module_pulse.count, memory_order_acquire) != count)
        return; /* it has, meanwhile */
    seen->told_ns = now;
    cn_warn("lane %u: %s, has not returned for %llu s: nothing else on its lane runs",
            lane->options.index, name, (unsigned long long)((now - seen->since_ns) / 1000000000u));
}

static void end_asked_turns(struct cn_watchdog *dog, uint64_t now)
{
    pthread_mutex_lock(&dog->lock);
    unsigned age_ms = dog->turn_age_ms;
    enum cn_js_end why = dog->turn_why;
    dog->turn_age_ms = 0;
    pthread_mutex_unlock(&dog->lock);
    for (unsigned i = 0; age_ms && i < watched_count(dog); i++) {
        if (dog->seen[i].turn && (now - dog->seen[i].since_ns) / 1000000 >= age_ms - 1)
            end_turn(dog, i, why);
    }
}

/* --- memory ------------------------------------------------------------------------------------
 */

/* D3 */
static void end_growing_turn(struct cn_watchdog *dog)
{
    unsigned count = watched_count(dog), found = count;
    uint64_t most = cn_account_limit() / GROWN_PART;
    for (unsigned i = 0; i < count; i++) {
        const struct seen *seen = &dog->seen[i];
        uint64_t bytes = bytes_of(dog, i);
        uint64_t grown = bytes > seen->bytes ? bytes - seen->bytes : 0;
        if (!seen->turn || seen->ended_cpu_ns || grown < most)
            continue;
        found = i;
        most = grown;
    }
    if (found < count && (now_ns() - dog->seen[found].since_ns) > 20000000)
        end_turn(dog, found, CN_JS_END_MEMORY);
}

/* R7: since when each level has lasted. */
static void note_levels(struct cn_watchdog *dog, uint64_t now)
{
    for (unsigned i = 0; i < CN_ACCOUNT_LEVEL_COUNT; i++) {
        if (i > dog->level)
            dog->since_ns[i] = 0;
        else if (!dog->since_ns[i])
            dog->since_ns[i] = now;
    }
}

static bool has_lasted(const struct cn_watchdog *dog, enum cn_account_level level, unsigned ms,
                       uint64_t now)
{
    return dog->level >= level && now - dog->since_ns[level] > ms * 1000000ull;
}

static bool reset_is_due(const struct cn_watchdog *dog, uint64_t now)
{
    return dog->level >= CN_ACCOUNT_RELIEVE_RESET ||
           has_lasted(dog, CN_ACCOUNT_RELIEVE_REQUESTS, REFUSING_MS, now) ||
           has_lasted(dog, CN_ACCOUNT_RELIEVE_BODIES, GATHERING_MS, now);
}

/* The lane whose largest script or object is the largest of all is to reset it. */
static void choose_reset(struct cn_watchdog *dog, uint64_t now)
{
    if (dog->reset_ns && now - dog->reset_ns < RESET_MS * 1000000u)
        return; /* what the last one freed is not all back yet */
    dog->reset_ns = now;
    struct cn_lane *found = NULL;
    uint64_t most = 0;
    for (unsigned i = 0; i < dog->options.lane_count; i++) {
        struct cn_lane *lane = &dog->options.lanes[i];
        uint64_t bytes = cn_js_alloc_bytes_of(lane->alloc);
        if (found && bytes <= most)
            continue;
        found = lane;
        most = bytes;
    }
    if (found)
        atomic_store(&found->reset_wanted, true);
}

static void empty_caches(struct cn_watchdog *dog, uint64_t now)
{
    if (dog->forgot_ns && now - dog->forgot_ns < FORGET_MS * 1000000u)
        return;
    dog->forgot_ns = now;
    cn_account_sources_forget();
    cn_account_relieved(CN_ACCOUNT_RELIEVE_CACHES, 1);
    cn_free_kept();
    cn_js_engine_memory_release();
    malloc_trim(0);
}

static void say_level(const struct cn_watchdog *dog, enum cn_account_level level)
{
    char what[256] = "";
    int at = 0;
    for (unsigned i = 0; i < CN_ACCOUNT_KIND_COUNT; i++)
        at += snprintf(what + at, sizeof(what) - (size_t)at, ", %s %llu", cn_account_kind_names[i],
                       (unsigned long long)(cn_account_kind_bytes(i) >> 20));
    cn_warn("memory is short: %llu of %llu MB are used (level %s%s)",
            (unsigned long long)(dog->used >> 20), (unsigned long long)(cn_account_limit() >> 20),
            cn_account_level_names[level], what);
}

/* D2 */
static void watch_memory(struct cn_watchdog *dog, uint64_t now)
{
    dog->used = cn_account_read_used();
    enum cn_account_level before = dog->level, level = cn_account_look(dog->used);
    dog->level = level;
    note_levels(dog, now);
    if (!dog->asked_ns || now - dog->asked_ns > 500000000u || level > before) {
        dog->asked_ns = now;
        cn_account_sources_ask();
    }
    if (level == CN_ACCOUNT_CALM) {
        if (before != CN_ACCOUNT_CALM)
            cn_info("memory is no longer short: %llu MB are used",
                    (unsigned long long)(dog->used >> 20));
        return;
    }
    if (dog->used > cn_account_limit())
        end_growing_turn(dog);
    if (level <= before && now - dog->relieved_ns < RELIEF_MS * 1000000u)
        return;
    dog->relieved_ns = now;
    if (before == CN_ACCOUNT_CALM || (level > before && level >= CN_ACCOUNT_RELIEVE_REQUESTS))
        say_level(dog, level);
    empty_caches(dog, now);
    if (reset_is_due(dog, now))
        choose_reset(dog, now);
    for (unsigned i = 0; level > CN_ACCOUNT_RELIEVE_CACHES && i < dog->options.lane_count; i++)
        cn_lane_relieve(&dog->options.lanes[i]);
}

/* --- the thread ----------------------------------------------------------------------------------
 */

static bool turn_runs(const struct cn_watchdog *dog, uint64_t now)
{
    for (unsigned i = 0; i < watched_count(dog); i++) {
        if (dog->seen[i].turn && now - dog->seen[i].since_ns > OVERDUE_MS * 1000000ull)
            return true;
    }
    return false;
}

/* D5. A lane that runs nothing waits for something, which has its own limit. */
static void end_if_due(struct cn_watchdog *dog, uint64_t now)
{
    uint64_t by = atomic_load(&dog->end_by_ns);
    if (!by || now < by || (!turn_runs(dog, now) && now < by + WAIT_MS * 1000000ull))
        return;
    for (unsigned i = 0; i < watched_count(dog); i++) {
        const struct cn_lane *lane = lane_at(dog, i);
        if (dog->seen[i].turn && dog->seen[i].turn == atomic_load(&lane->pulse.running))
            cn_error("lane %u: worker %s did not end", i, worker_of(lane));
    }
    cn_error("the time to stop is over; what was acknowledged is on disk, the rest is cut");
    _exit(1);
}

static unsigned tick_ms(const struct cn_watchdog *dog, uint64_t used_before)
{
    uint64_t limit = cn_account_limit();
    if (!limit)
        return TICK_MS;
    bool grows = dog->used > used_before + limit / 50;
    return dog->used > limit / 2 || grows ? TICK_SHORT_MS : TICK_MS;
}

static void wait_for(struct cn_watchdog *dog, unsigned ms)
{
    pthread_mutex_lock(&dog->lock);
    if (!dog->stopping && !dog->turn_age_ms)
        (void)cn_cond_wait_ms(&dog->wake, &dog->lock, ms);
    pthread_mutex_unlock(&dog->lock);
}

static void watch(void *arg)
{
    struct cn_watchdog *dog = arg;
    unsigned ms = TICK_MS;
    for (;;) {
        pthread_mutex_lock(&dog->lock);
        bool stopping = dog->stopping;
        pthread_mutex_unlock(&dog->lock);
        if (stopping)
            return;
        uint64_t now = now_ns(), used_before = dog->used;
        pthread_mutex_lock(&dog->trial_lock);
        for (unsigned i = 0; i < watched_count(dog); i++)
            watch_turn(dog, i, now);
        for (unsigned i = 0; i < dog->options.lane_count; i++)
            watch_module(dog, i, now);
        end_asked_turns(dog, now);
        watch_memory(dog, now);
        end_if_due(dog, now);
        pthread_mutex_unlock(&dog->trial_lock);
        ms = tick_ms(dog, used_before);
        wait_for(dog, ms);
    }
}

static void watchdog_free(struct cn_watchdog *dog)
{
    pthread_cond_destroy(&dog->wake);
    pthread_mutex_destroy(&dog->lock);
    pthread_mutex_destroy(&dog->trial_lock);
    cn_free(dog->seen);
    cn_free(dog->modules);
    cn_free(dog);
}

struct cn_watchdog *cn_watchdog_start(const struct cn_watchdog_options *options, struct cn_err *err)
{
    struct cn_watchdog *dog = CN_NEW(struct cn_watchdog);
    dog->options = *options;
    if (!dog->options.stuck_ms)
        dog->options.stuck_ms = STUCK_MS;
    dog->seen = cn_alloc_zero((options->lane_count + 1) * sizeof(*dog->seen));
    dog->modules = cn_alloc_zero(options->lane_count * sizeof(*dog->modules));
    pthread_mutex_init(&dog->lock, NULL);
    pthread_mutex_init(&dog->trial_lock, NULL);
    cn_cond_init(&dog->wake);
    int rc = uv_thread_create(&dog->thread, watch, dog);
    if (rc == 0)
        return dog;
    (void)cn_err_set(err, rc, "cannot start a thread: %s", uv_strerror(rc));
    watchdog_free(dog);
    return NULL;
}

void cn_watchdog_stop(struct cn_watchdog *dog)
{
    pthread_mutex_lock(&dog->lock);
    dog->stopping = true;
    pthread_cond_signal(&dog->wake);
    pthread_mutex_unlock(&dog->lock);
    uv_thread_join(&dog->thread);
    watchdog_free(dog);
}

void cn_watchdog_watch_trial(struct cn_watchdog *dog, struct cn_lane *lane)
{
    pthread_mutex_lock(&dog->trial_lock);
    dog->trial = lane;
    dog->seen[dog->options.lane_count] = (struct seen){0};
    pthread_mutex_unlock(&dog->trial_lock);
}

void cn_watchdog_end_turns(struct cn_watchdog *dog, unsigned age_ms, enum cn_js_end why)
{
    pthread_mutex_lock(&dog->lock);
    dog->turn_age_ms = age_ms + 1;
    dog->turn_why = why;
    pthread_cond_signal(&dog->wake);
    pthread_mutex_unlock(&dog->lock);
}

void cn_watchdog_end_by(struct cn_watchdog *dog, unsigned ms)
{
    atomic_store(&dog->end_by_ns, now_ns() + (uint64_t)ms * 1000000);
}
