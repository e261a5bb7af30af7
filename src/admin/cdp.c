/* SPDX-License-Identifier: Apache-2.0 */
#include "admin/cdp.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define FRAME_MAX 50

void cn_cdp_append_url(struct cn_buf *out, const char *worker, const char *path, size_t size)
{
    struct cn_buf text = {0};
    cn_buf_printf(&text, "file:///%s/%.*s", worker, (int)size, path);
    cn_buf_append_json(out, (char *)text.data, text.size);
    cn_buf_fini(&text);
}

/* --- stacks ---------------------------------------------------------------------------------- */

/* A place in a line of a stack: "    at name (path:LINE:COLUMN)", or without name and brackets. */
struct place {
    const char *name, *path;
    size_t name_size, path_size;
    long line, column; /* from 1 */
};

static long read_number(const char *from, const char *to)
{
    char text[12];
    size_t size = (size_t)(to - from);
    if (size == 0 || size >= sizeof(text) || strspn(from, "0123456789") < size)
        return 0;
    memcpy(text, from, size);
    text[size] = 0;
    return strtol(text, NULL, 10);
}

/* "path:LINE:COLUMN" */
static bool read_place(const char *from, const char *to, struct place *place)
{
    const char *second = memrchr(from, ':', (size_t)(to - from));
    const char *first = second ? memrchr(from, ':', (size_t)(second - from)) : NULL;
    if (!first)
        return false;
    place->line = read_number(first + 1, second);
    place->column = read_number(second + 1, to);
    place->path = from;
    place->path_size = (size_t)(first - from);
    return place->line > 0 && place->column > 0 && place->path_size > 0;
}

static bool read_frame(const char *line, const char *end, struct place *place)
{
    static const char at[] = "at ";
    *place = (struct place){0};
    while (line < end && *line == ' ')
        line++;
    if ((size_t)(end - line) < sizeof(at) || memcmp(line, at, sizeof(at) - 1) != 0)
        return false;
    line += sizeof(at) - 1;
    const char *open = memrchr(line, '(', (size_t)(end - line));
    if (!open || end[-1] != ')')
        return read_place(line, end, place);
    place->name = line;
    place->name_size = open > line ? (size_t)(open - line) - 1 : 0;
    return read_place(open + 1, end - 1, place);
}

static void append_frame(struct cn_buf *out, const struct cn_cdp_note *note,
                         const struct place *place)
{
    cn_buf_append_str(out, "{\"functionName\":");
    cn_buf_append_json(out, place->name ? place->name : "", place->name_size);
    cn_buf_append_str(out, ",\"scriptId\":\"0\",\"url\":");
    cn_cdp_append_url(out, note->worker, place->path, place->path_size);
    cn_buf_printf(out, ",\"lineNumber\":%ld,\"columnNumber\":%ld}", place->line - 1,
                  place->column - 1);
}

/* The frames of a stack, as a list; the first one goes to `top`. */
static size_t append_frames(struct cn_buf *out, const struct cn_cdp_note *note, struct place *top)
{
    const char *at = note->text, *end = note->text + note->size;
    size_t count = 0;
    while (at < end && count < FRAME_MAX) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        struct place place;
        if (read_frame(at, stop ? stop : end, &place)) {
            if (count == 0)
                *top = place;
            cn_buf_append_str(out, count++ ? "," : "");
            append_frame(out, note, &place);
        }
        at = stop ? stop + 1 : end;
    }
    return count;
}

/* --- events ---------------------------------------------------------------------------------- */

/* "TypeError: x is not a function" of "Uncaught TypeError: x is not a function\n    at ...". */
static size_t headline(const struct cn_cdp_note *note, const char **text)
{
    static const char uncaught[] = "Uncaught ";
    const char *end = memchr(note->text, '\n', note->size);
    size_t size = end ? (size_t)(end - note->text) : note->size;
    *text = note->text;
    if (size > sizeof(uncaught) - 1 && memcmp(note->text, uncaught, sizeof(uncaught) - 1) == 0) {
        *text += sizeof(uncaught) - 1;
        size -= sizeof(uncaught) - 1;
    }
    return size;
}

/* The class of an error by its headline: what stands before the colon. */
static void append_class(struct cn_buf *out, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size);
    size_t name = colon ? (size_t)(colon - line) : size;
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$";
    if (name == 0 || name > 60 || strspn(line, letters) < name)
        cn_buf_append_str(out, "\"Error\"");
    else
        cn_buf_append_json(out, line, name);
}

static void append_exception(struct cn_buf *out, const struct cn_cdp_note *note)
{
    struct cn_buf frames = {0};
    struct place top = {0};
    const char *line;
    size_t line_size = headline(note, &line);
    size_t count = append_frames(&frames, note, &top);
    cn_buf_printf(out,
                  "{\"method\":\"Runtime.exceptionThrown\",\"params\":{\"timestamp\":%" PRId64
                  ",\"exceptionDetails\":{\"exceptionId\":1,\"text\":\"Uncaught\","
                  "\"lineNumber\":%ld,\"columnNumber\":%ld,\"executionContextId\":%u",
                  note->time_ms, count ? top.line - 1 : 0, count ? top.column - 1 : 0,
                  note->context);
    if (count) {
        cn_buf_append_str(out, ",\"url\":");
        cn_cdp_append_url(out, note->worker, top.path, top.path_size);
    }
    cn_buf_append_str(out, ",\"stackTrace\":{\"callFrames\":[");
    cn_buf_append(out, frames.data, frames.size);
    cn_buf_append_str(out, "]},\"exception\":{\"type\":\"object\",\"subtype\":\"error\","
                           "\"className\":");
    append_class(out, line, line_size);
    cn_buf_append_str(out, ",\"description\":");
    cn_buf_append_json(out, line, note->size - (size_t)(line - note->text));
    cn_buf_append_str(out, "}}}}");
    cn_buf_fini(&frames);
}

void cn_cdp_append_note(struct cn_buf *out, const struct cn_cdp_note *note)
{
    static const char *const types[] = {"debug", "log", "warning", "error"};
    CN_ASSERT((unsigned)note->level < CN_ARRAY_COUNT(types));
    if (note->exception) {
        append_exception(out, note);
        return;
    }
    cn_buf_printf(out,
                  "{\"method\":\"Runtime.consoleAPICalled\",\"params\":{\"type\":\"%s\",\"args\":"
                  "[{\"type\":\"string\",\"value\":",
                  types[note->level]);
    cn_buf_append_json(out, note->text, note->size);
    cn_buf_printf(out, "}],\"executionContextId\":%u,\"timestamp\":%" PRId64 "}}", note->context,
                  note->time_ms);
}

/* --- methods --------------------------------------------------------------------------------- */

static const char stepping[] =
    "JavaScriptCore's C API has no debugger: there are no breakpoints and "
    "no stepping here";
static const char evaluating[] = "code is not evaluated by the inspector: it would run outside of "
                                 "every request and object";
static const char coverage[] = "JavaScriptCore's C API does not count what of the code ran";
static const char snapshots[] = "JavaScriptCore's C API has no snapshots of the heap; "
                                "Runtime.getHeapUsage tells its size";

static const struct {
    const char *method, *why;
} refusals[] = {
    {"Debugger.setBreakpoint", stepping},
    {"Debugger.setBreakpointByUrl", stepping},
    {"Debugger.pause", stepping},
    {"Debugger.resume", stepping},
    {"Debugger.stepInto", stepping},
    {"Debugger.stepOver", stepping},
    {"Debugger.stepOut", stepping},
    {"Debugger.continueToLocation", stepping},
    {"Debugger.evaluateOnCallFrame", stepping},
    {"Debugger.restartFrame", stepping},
    {"Debugger.setScriptSource", stepping},
    {"Debugger.setVariableValue", stepping},
    {"Runtime.evaluate", evaluating},
    {"Runtime.callFunctionOn", evaluating},
    {"Runtime.compileScript", evaluating},
    {"Runtime.runScript", evaluating},
    {"Runtime.awaitPromise", evaluating},
    {"Runtime.addBinding", evaluating},
    {"Profiler.startPreciseCoverage", coverage},
    {"Profiler.takePreciseCoverage", coverage},
    {"HeapProfiler.takeHeapSnapshot", snapshots},
    {"HeapProfiler.startSampling", snapshots},
    {"HeapProfiler.stopSampling", snapshots},
    {"HeapProfiler.startTrackingHeapObjects", snapshots},
    {"HeapProfiler.collectGarbage", snapshots},
};

const char *cn_cdp_refusal(const char *method)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(refusals); i++) {
        if (strcmp(refusals[i].method, method) == 0)
            return refusals[i].why;
    }
    return NULL;
}

bool cn_cdp_is_wish(const char *method)
{
    static const char *const wishes[] = {"Runtime.runIfWaitingForDebugger",
                                         "Runtime.setAsyncCallStackDepth",
                                         "Runtime.releaseObject",
                                         "Runtime.releaseObjectGroup",
                                         "Runtime.discardConsoleEntries",
                                         "Runtime.setCustomObjectFormatterEnabled",
                                         "Runtime.setMaxCallStackSizeToCapture",
                                         "Debugger.setPauseOnExceptions",
                                         "Debugger.setAsyncCallStackDepth",
                                         "Debugger.setBlackboxPatterns",
                                         "Debugger.setBlackboxExecutionContexts",
                                         "Debugger.setSkipAllPauses",
                                         "Debugger.setBreakpointsActive",
                                         "Debugger.removeBreakpoint",
                                         "Profiler.enable",
                                         "Profiler.disable",
                                         "Profiler.setSamplingInterval",
                                         "HeapProfiler.enable",
                                         "HeapProfiler.disable",
                                         "Console.enable",
                                         "Console.disable",
                                         "Log.enable",
                                         "Log.disable",
                                         "Network.enable",
                                         "Network.disable"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(wishes); i++) {
        if (strcmp(wishes[i], method) == 0)
            return true;
    }
    return false;
}
