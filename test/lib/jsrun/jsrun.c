/* SPDX-License-Identifier: Apache-2.0 */
/* jsrun FILE - evaluates a classic script in a context with the prelude and runs
 * the event loop until nothing is left to do. `__native` is visible to it. Exits
 * 1 on an exception. For trying and testing the prelude without a server. */
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/loop.h"
#include "bindings/all.h"
#include "js/value.h"
#include "net/client.h"
#include "net/socket.h"
#include "net/trust.h"
#include "worker/runtime.h"

static void print_log(struct cn_runtime *runtime, int level, const char *text, size_t length)
{
    (void)runtime;
    FILE *out = level >= 2 ? stderr : stdout;
    fprintf(out, "%.*s\n", (int)length, text);
    fflush(out);
}

static void on_client_closed(void *data)
{
    (void)data;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: jsrun FILE [OPTIONS-JSON]\n");
        return 2;
    }
    FILE *in = fopen(argv[1], "rb");
    if (!in) {
        perror(argv[1]);
        return 2;
    }
    struct cn_buf source = {0};
    char chunk[65536];
    for (size_t got; (got = fread(chunk, 1, sizeof(chunk), in)) > 0;)
        cn_buf_append(&source, chunk, got);
    fclose(in);
    CN_ASSERT(cn_js_setup(NULL) == 0);
    uv_loop_t loop;
    if (cn_loop_init(&loop, NULL) < 0)
        return 1;
    struct cn_js_vm *vm = cn_js_vm_new(NULL);
    struct cn_err err;
    struct cn_runtime *runtime;
    struct cn_runtime_options options = {.loop = &loop,
                                         .vm = vm,
                                         .install = cn_bindings_install,
                                         .log = print_log,
                                         .options_json = argc > 2 ? argv[2] : NULL};
    if (cn_runtime_new(&options, &runtime, &err) < 0) {
        fprintf(stderr, "prelude: %s\n", err.text);
        return 1;
    }
    cn_js_set(runtime->context->ref, JSContextGetGlobalObject(runtime->context->ref), "__native",
              runtime->context->natives);
    struct cn_trust *trust = cn_trust_new(NULL, &err);
    if (!trust) {
        fprintf(stderr, "trust: %s\n", err.text);
        return 1;
    }
    struct cn_client_options client_options = {.trust = trust};
    runtime->client = cn_client_new(&loop, &client_options);
    struct cn_sockets_options sockets_options = {.trust = trust};
    runtime->sockets = cn_sockets_new(&loop, &sockets_options);
    /* The modules a script may import: tests reach node: modules through these. */
    cn_js_set(runtime->context->ref, JSContextGetGlobalObject(runtime->context->ref), "__modules",
              cn_js_get(runtime->context->ref, (JSObjectRef)runtime->entry.value, "modules"));
    cn_js_enter(runtime->context);
    int rc = cn_js_evaluate(runtime->context, cn_buf_text(&source), argv[1], NULL, &err);
    cn_js_leave(runtime->context);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.text);
    else
        uv_run(&loop, UV_RUN_DEFAULT);
    struct cn_client *client = runtime->client;
    struct cn_sockets *sockets = runtime->sockets;
    cn_runtime_free(runtime);
    cn_client_close(client, on_client_closed, NULL);
    cn_sockets_close(sockets, on_client_closed, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    cn_js_vm_free(vm);
    cn_buf_fini(&source);
    cn_trust_free(trust);
    uv_loop_close(&loop);
    return rc < 0 ? 1 : 0;
}
