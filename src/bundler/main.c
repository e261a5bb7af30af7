/* SPDX-License-Identifier: Apache-2.0 */
/* bundler/main.c - cairn-bundler: tools/bundler in a JavaScript engine of its own.
 *
 *     cairn ── a job, one line ──► standard input        ┌── tools/bundler, which is in this program
 *                                         one thread ────┤
 *     cairn ◄─ an answer, one line ── standard output    └── esbuild, a child: child.h
 *
 * The scripts are written against modules of Node.js; tools/bundler/host has as much of them as they
 * and esbuild's own library use, on the natives of files.h and these:
 *
 *     start(path, argument...)   esbuild; what it writes goes to the host's received(bytes), its end to ended()
 *     send(bytes)                to it
 *     answer(text)               ends the job
 *     say(text)                  on standard error
 *
 * The host gives back { run(line), received(bytes), ended() }.
 *
 *   B2  One job at a time: the next line is read when the job before it was answered.
 *   B3  Once esbuild has ended, so does this program, after the answer of the job that runs: whoever has another
 *       job starts another.
 *
 * What a job may read and where its output goes is decided by the job (project/bundler.h, U1) and
 * tools/bundler/confined.mjs: this program adds no way to either. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "bundler/child.h"
#include "bundler/convert.h"
#include "bundler/files.h"

#define JOB_SIZE_MAX (64u << 20)
#define ARGUMENT_COUNT_MAX 16

extern const char cn_bundler_script[];
extern const uint64_t cn_bundler_script_size;

struct bundler {
    JSGlobalContextRef ctx;
    JSValueRef host; /* protected */
    struct cn_child esbuild;
    struct cn_buf input; /* of which a line is a job */
    bool busy;           /* a job runs */
    bool over;           /* esbuild has ended, or nobody takes answers: B3 */
};

NATIVE(native_start)
{
    struct bundler *bundler = JSObjectGetPrivate(self);
    char *arguments[ARGUMENT_COUNT_MAX + 1] = {0};
    struct cn_err err;
    if (bundler->esbuild.in >= 0 || argc > ARGUMENT_COUNT_MAX)
        return cn_convert_throw(ctx, exception, "esbuild runs already");
    for (size_t i = 0; i < argc; i++)
        arguments[i] = cn_convert_to_text(ctx, argv[i]);
    int rc = cn_child_start(&bundler->esbuild, arguments, &err);
    for (size_t i = 0; i < argc; i++)
        cn_free(arguments[i]);
    return rc < 0 ? cn_convert_throw(ctx, exception, "%s", err.text) : JSValueMakeUndefined(ctx);
}

NATIVE(native_send)
{
    struct bundler *bundler = JSObjectGetPrivate(self);
    uint8_t *bytes;
    size_t size;
    if (cn_convert_bytes(ctx, ARG(0), &bytes, &size))
        cn_child_send(&bundler->esbuild, bytes, size);
    return JSValueMakeUndefined(ctx);
}

/* False: nobody reads it any more. */
static bool print(int fd, JSContextRef ctx, JSValueRef value)
{
    struct cn_buf text = {0};
    cn_convert_append(ctx, value, &text);
    cn_buf_append_byte(&text, '\n');
    size_t at = 0;
    while (at < text.size) {
        ssize_t size = write(fd, text.data + at, text.size - at);
        if (size < 0 && errno != EINTR)
            break;
        at += size > 0 ? (size_t)size : 0;
    }
    bool whole = at == text.size;
    cn_buf_fini(&text);
    return whole;
}

NATIVE(native_answer)
{
    struct bundler *bundler = JSObjectGetPrivate(self);
    bundler->busy = false;
    if (!print(STDOUT_FILENO, ctx, ARG(0)))
        bundler->over = true;
    return JSValueMakeUndefined(ctx);
}

NATIVE(native_say)
{
    (void)print(STDERR_FILENO, ctx, ARG(0)); /* a message that nobody reads is lost, as any is */
    return JSValueMakeUndefined(ctx);
}

static const JSStaticFunction functions[] = {
    {"start", native_start, kJSPropertyAttributeReadOnly},
    {"send", native_send, kJSPropertyAttributeReadOnly},
    {"answer", native_answer, kJSPropertyAttributeReadOnly},
    {"say", native_say, kJSPropertyAttributeReadOnly},
    {0},
};

/* What a script threw, for whoever started us. */
static void print_exception(struct bundler *bundler, JSValueRef exception)
{
    struct cn_buf text = {0}, stack = {0};
    cn_convert_append(bundler->ctx, exception, &text);
    cn_convert_append(bundler->ctx, cn_convert_get(bundler->ctx, exception, "stack"), &stack);
    fprintf(stderr, "cairn-bundler: %s\n%s\n", cn_buf_text(&text), cn_buf_text(&stack));
    cn_buf_fini(&text);
    cn_buf_fini(&stack);
}

static bool call(struct bundler *bundler, const char *name, JSValueRef argument)
{
    JSValueRef exception = NULL;
    JSValueRef function = cn_convert_get(bundler->ctx, bundler->host, name);
    JSObjectCallAsFunction(bundler->ctx, JSValueToObject(bundler->ctx, function, NULL), NULL, 1,
                           &argument, &exception);
    if (exception)
        print_exception(bundler, exception);
    return !exception;
}

/* The folder that this program is in, where esbuild is too. */
static int find_folder(char folder[PATH_MAX], struct cn_err *err)
{
    ssize_t size = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (size < 0)
        return cn_err_errno(err, errno, "/proc/self/exe cannot be read");
    folder[size] = 0;
    *strrchr(folder, '/') = 0; /* it is absolute */
    return 0;
}

static int load(struct bundler *bundler, struct cn_err *err)
{
    char folder[PATH_MAX], here[PATH_MAX];
    if (find_folder(folder, err) < 0)
        return err->code;
    if (!getcwd(here, sizeof(here)))
        return cn_err_errno(err, errno, "the current folder cannot be read");
    JSClassDefinition definition = kJSClassDefinitionEmpty;
    definition.className = "Native";
    definition.staticFunctions = functions;
    JSClassRef class = JSClassCreate(&definition);
    JSContextRef ctx = bundler->ctx = JSGlobalContextCreate(NULL);
    JSObjectRef native = JSObjectMake(ctx, class, bundler);
    JSClassRelease(class);
    cn_convert_set(ctx, JSContextGetGlobalObject(ctx), "__native", native);
    cn_bundler_files_install(ctx, native);
    cn_convert_set(ctx, native, "folder", cn_convert_text(ctx, folder));
    cn_convert_set(ctx, native, "here", cn_convert_text(ctx, here));
    cn_convert_set(ctx, native, "pid", JSValueMakeNumber(ctx, getpid()));
    const char *temporary = getenv("TMPDIR");
    cn_convert_set(ctx, native, "temporary",
                   cn_convert_text(ctx, temporary && *temporary ? temporary : "/tmp"));
    JSStringRef source = cn_convert_string(cn_bundler_script, cn_bundler_script_size);
    JSValueRef exception = NULL;
    bundler->host = JSEvaluateScript(ctx, source, NULL, NULL, 1, &exception);
    JSStringRelease(source);
    if (exception) {
        print_exception(bundler, exception);
        return cn_err_set(err, CN_EJS, "its scripts cannot be evaluated");
    }
    JSValueProtect(ctx, bundler->host);
    return 0;
}

/* Runs the job of the first whole line, if there is one. */
static bool take_job(struct bundler *bundler)
{
    uint8_t *end =
        bundler->input.size ? memchr(bundler->input.data, '\n', bundler->input.size) : NULL;
    if (!end)
        return true;
    size_t length = (size_t)(end - bundler->input.data);
    JSStringRef text = cn_convert_string((const char *)bundler->input.data, length);
    JSValueRef line = JSValueMakeString(bundler->ctx, text);
    JSStringRelease(text);
    cn_buf_consume(&bundler->input, length + 1);
    bundler->busy = true;
    return call(bundler, "run", line);
}

/* 0: whoever started us has ended. */
static int read_input(struct bundler *bundler)
{
    cn_buf_reserve(&bundler->input, 65536);
    ssize_t size = read(STDIN_FILENO, bundler->input.data + bundler->input.size,
                        bundler->input.capacity - bundler->input.size);
    if (size < 0 && errno == EINTR)
        return 1;
    if (size <= 0)
        return 0;
    bundler->input.size += (size_t)size;
    return bundler->input.size <= JOB_SIZE_MAX;
}

/* What esbuild has written, or that it has ended. */
static bool read_esbuild(struct bundler *bundler)
{
    struct cn_buf bytes = {0};
    if (cn_child_receive(&bundler->esbuild, &bytes))
        return call(bundler, "received", cn_convert_take(bundler->ctx, &bytes));
    cn_buf_fini(&bytes);
    cn_child_stop(&bundler->esbuild);
    bundler->over = true;
    return call(bundler, "ended", JSValueMakeUndefined(bundler->ctx));
}

/* One round; false: it is time to end. */
static bool wait_and_do(struct bundler *bundler)
{
    struct cn_child *esbuild = &bundler->esbuild;
    struct pollfd fds[] = {
        {bundler->busy ? -1 : STDIN_FILENO, POLLIN, 0}, /* B2 */
        {esbuild->out, POLLIN, 0},
        {esbuild->waiting.size && !esbuild->deaf ? esbuild->in : -1, POLLOUT, 0},
    };
    if (poll(fds, 3, -1) < 0)
        return errno == EINTR;
    if (fds[2].revents)
        cn_child_flush(esbuild);
    if (fds[1].revents && !read_esbuild(bundler))
        return false;
    if (fds[0].revents && !read_input(bundler))
        return false;
    while (!bundler->busy && !bundler->over && bundler->input.size &&
           memchr(bundler->input.data, '\n', bundler->input.size))
        if (!take_job(bundler))
            return false;
    return bundler->busy || !bundler->over;
}

int main(void)
{
    struct bundler bundler = {.esbuild = {.in = -1, .out = -1}};
    struct cn_err err;
    signal(SIGPIPE, SIG_IGN); /* a write says so */
    signal(SIGINT, SIG_IGN);  /* reaches the whole group; cairn closes our input when it ends */
    if (load(&bundler, &err) < 0) {
        fprintf(stderr, "cairn-bundler: %s\n", err.text);
        return 1;
    }
    while (wait_and_do(&bundler))
        continue;
    cn_child_stop(&bundler.esbuild);
    cn_buf_fini(&bundler.input);
    JSValueUnprotect(bundler.ctx, bundler.host);
    JSGlobalContextRelease(bundler.ctx);
    return 0;
}
