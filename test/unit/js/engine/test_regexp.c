/* SPDX-License-Identifier: Apache-2.0 */
/* Matches that are given up, at any place of any pattern: X1 to X4 of js/engine/regexp.h. */
#include "js/engine/regexp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test/lib/js_rig.h"

static atomic_bool stop;

/* Asks far more often than the watchdog does, so that every place is met. */
static void *ask(void *data)
{
    while (!stop) {
        cn_js_engine_give_up_match(*(pid_t *)data);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return NULL;
}

static const char *const atoms[] = {"a",    "[ab]",   ".",        "(a)", "(?:a|aa)", "(a|b)", "\\w",
                                    "[^x]", "(?=a)a", "(?:a|x)?", "\\b", "$",        "^"};
static const char *const counts[] = {"", "*", "+", "*?", "{2,}", "{1,5}", "?"};
static const char *const flags[] = {"", "i", "u", "m", "s", "y", "g", "v", "gm"};

static const char *choose(const char *const *list, size_t count)
{
    return list[(size_t)rand() % count];
}
#define CHOOSE(list) choose(list, sizeof(list) / sizeof((list)[0]))

static void make_source(char *source, size_t size)
{
    char pattern[256] = "";
    for (int i = 2 + rand() % 4; i > 0; i--) {
        const char *atom = CHOOSE(atoms);
        strcat(pattern, atom);
        strcat(pattern, strchr("$^", atom[0]) || strcmp(atom, "\\b") == 0 ? "" : CHOOSE(counts));
    }
    snprintf(source, size,
             "globalThis.after = 0; { const text = %s'a'.repeat(2000) + '\\n';"
             "try { for (;;) /%s/%s.%s(text); } catch { } } globalThis.after = 1;",
             rand() % 2 ? "'\\u0100' + " : "", pattern, CHOOSE(flags),
             rand() % 2 ? "exec" : "test");
}

static void give_up_many(void *data)
{
    struct js_rig rig;
    js_rig_open(&rig);
    pid_t self = (pid_t)syscall(SYS_gettid);
    pthread_t thread;
    pthread_create(&thread, NULL, ask, &self);
    unsigned before = cn_js_engine_matches_given_up(), wrong = 0;
    for (int i = 0; i < *(int *)data; i++) {
        char source[1024];
        make_source(source, sizeof(source));
        rig.context->cut = false;
        rig.context->budget_ns = 0;
        js_rig_run(&rig, "globalThis.after = 2"); /* for a pattern that is none */
        rig.context->budget_ns = 1000000;
        js_rig_evaluate(rig.context, source, NULL);
        rig.context->budget_ns = 0;
        bool cut = rig.context->cut;
        rig.context->cut = false;
        const char *after = js_rig_run(&rig, "String(globalThis.after)");
        if (strcmp(after, cut ? "1" : "0") == 0)
            printf("cut %d, after %s: %s\n", cut, after, source), wrong++;
        rig.context->cut = false;
        if (strcmp(js_rig_run(&rig, "'xaab'.replace(/(a+)(b)$/, '$2$1') + /(?<=x)a/.exec('xa')"),
                   "xbaaa") != 0)
            printf("wrong after %s\n", source), wrong++;
    }
    stop = true;
    pthread_join(thread, NULL);
    if (cn_js_engine_matches_given_up() == before)
        printf("no match was given up");
    js_rig_close(&rig);
    printf(wrong ? "wrong" : "done");
}

TEST(js_regexp, given_up_matches_end_their_turn_and_harm_nothing)
{
    int rounds = 300;
    CHECK_STR("done", js_rig_child(give_up_many, &rounds));
}

/* X1. Whose turn is not to end has its result, however often it is asked. */
static void go_on(void *data)
{
    (void)data;
    struct js_rig rig;
    js_rig_open(&rig);
    pid_t self = (pid_t)syscall(SYS_gettid);
    pthread_t thread;
    pthread_create(&thread, NULL, ask, &self);
    printf("%s",
           js_rig_run(
               &rig,
               "const s = 'a'.repeat(9000); String([/a*a*b/.test(s.slice(0, 900)), /^a*a*b/.test(s "
               "+ 'b'), /(?<=a)b$/.exec(s + 'b').index, s.replace(/a/g, 'bb').length])"));
    stop = true;
    pthread_join(thread, NULL);
    js_rig_close(&rig);
}

TEST(js_regexp, a_turn_that_is_not_to_end_is_not_disturbed)
{
    CHECK_STR("false,true,9000,18000", js_rig_child(go_on, NULL));
}
