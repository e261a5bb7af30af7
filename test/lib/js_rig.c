/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/js_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

static bool set_up;

void js_rig_open(struct js_rig *rig)
{
    struct cn_err err;
    if (!set_up) { /* by the first, before other threads are there */
        CHECK_INT(0, cn_js_setup(&err));
        set_up = true;
    }
    rig->vm = cn_js_vm_new(NULL);
    rig->context = cn_js_context_new(rig->vm, NULL);
}

void js_rig_close(struct js_rig *rig)
{
    cn_js_context_free(rig->context);
    cn_js_vm_free(rig->vm);
}

const char *js_rig_evaluate(struct cn_js_context *context, const char *source, enum cn_js_end *end)
{
    static char text[4096];
    struct cn_err err = {0};
    JSValueRef value;
    cn_js_enter(context);
    if (cn_js_evaluate(context, source, "test", &value, &err) == 0) {
        JSStringRef string = JSValueToStringCopy(context->ref, value, NULL);
        text[0] = '\0';
        if (string) {
            JSStringGetUTF8CString(string, text, sizeof(text));
            JSStringRelease(string);
        }
    } else {
        snprintf(text, sizeof(text), "%s", err.text);
    }
    enum cn_js_end ended = cn_js_leave(context);
    if (end)
        *end = ended;
    return text;
}

const char *js_rig_run(struct js_rig *rig, const char *source)
{
    return js_rig_evaluate(rig->context, source, NULL);
}

const char *js_rig_child(void (*work)(void *data), void *data)
{
    static char text[16384];
    int ends[2], status = 0;
    CHECK(!set_up && pipe(ends) == 0);
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(60); /* one that hangs fails */
        dup2(ends[1], STDOUT_FILENO);
        work(data);
        fflush(stdout);
        _exit(0);
    }
    close(ends[1]);
    size_t size = 0;
    ssize_t got;
    while (size < sizeof(text) - 1 &&
           (got = read(ends[0], text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    close(ends[0]);
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        test_fail(__FILE__, __LINE__, "the child ended with status %d: %s", status, text);
    return text;
}
