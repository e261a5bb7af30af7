/* SPDX-License-Identifier: Apache-2.0 */
#include "module/crash.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "module/internal.h"

static _Thread_local const struct cn_module_class *volatile running;

static _Thread_local struct cn_module_pulse *pulse; /* NULL: nobody looks */

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static struct sigaction before[CN_ARRAY_COUNT(signals)];

const struct cn_module_class *cn_module_crash_note(const struct cn_module_class *class_)
{
    const struct cn_module_class *old = running;
    running = class_;
    if (pulse) {
        atomic_store_explicit(&pulse->running, class_, memory_order_relaxed);
        atomic_fetch_add_explicit(&pulse->count, 1, memory_order_release);
    }
    return old;
}

void cn_module_crash_publish(struct cn_module_pulse *own)
{
    pulse = own;
}

void cn_module_crash_describe(const struct cn_module_class *class_, char *text, size_t size)
{
    snprintf(text, size, "the module \"%s\", class %s", class_->module, class_->name);
}

const struct cn_module_class *cn_module_crash_running(void)
{
    return running;
}

static size_t append(char *line, size_t at, size_t room, const char *text)
{
    size_t size = strlen(text);
    if (size > room - at)
        size = room - at;
    memcpy(line + at, text, size);
    return at + size;
}

/* Only what may be called in a handler. */
static void tell(const struct cn_module_class *class_, const char *what)
{
    char line[512];
    size_t at = 0, room = sizeof(line) - 1;
    at = append(line, at, room, "cairn: crashed (");
    at = append(line, at, room, what);
    at = append(line, at, room, ") in the module \"");
    at = append(line, at, room, class_->module);
    at = append(line, at, room, "\", class ");
    at = append(line, at, room, class_->name);
    line[at++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, at);
    (void)ignored;
}

static const char *name_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    default:
        return "SIGABRT";
    }
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const struct cn_module_class *class_ = running;
    if (class_) {
        running = NULL; /* once */
        tell(class_, name_of(number));
        signal(number, SIG_DFL); /* what faulted does so again, and ends the process */
        if (number == SIGABRT || info->si_code <= 0)
            raise(number);
        return;
    }
    for (size_t i = 0; i < CN_ARRAY_COUNT(signals); i++) {
        if (signals[i] != number)
            continue;
        if ((before[i].sa_flags & SA_SIGINFO) && before[i].sa_sigaction) {
            before[i].sa_sigaction(number, info, context);
            return;
        }
        if (before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN) {
            before[i].sa_handler(number);
            return;
        }
    }
    signal(number, SIG_DFL);
    if (number == SIGABRT || info->si_code <= 0)
        raise(number);
}

static void install(void)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < CN_ARRAY_COUNT(signals); i++)
        (void)sigaction(signals[i], &action, &before[i]); /* known numbers: it cannot fail */
}

void cn_module_crash_setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}
