/* SPDX-License-Identifier: Apache-2.0 */
/* server/console.h - the terminal of `cairn dev`: what is served, where, and keys.
 *
 *     hello has
 *       env.ROOM   Durable Object  Room
 *     cairn: ready on http://127.0.0.1:8787
 *       dashboard  http://127.0.0.1:41234 (d opens it)
 *     b browser, d dashboard, c clear, r reload, x exit
 *
 * T1  Keys are read, and named, only where standard input and output are a terminal and the process
 *     is in its foreground. The form "json" of messages gets none of this.
 * T2  The terminal is given back as it was when serving ends and when the process exits by itself.
 *     A process that comes after this one in its place (server/serve.h) gives it back too.
 * T3  When the terminal is closed the process ends, although SIGHUP alone is a reload.
 *
 * Threads:   that of cn_serve().
 * Ownership: the caller's memory; must live until cn_serve() returns. */
#ifndef CN_SERVER_CONSOLE_H
#define CN_SERVER_CONSOLE_H
#include <stdbool.h>
#include <uv.h>

struct cn_console_opener;
struct cn_deployer;
struct cn_err;
struct cn_serve;

struct cn_console {
    struct cn_deployer *deployer; /* borrowed */
    const char *token;            /* of the admin listener; borrowed, or NULL */
    struct cn_serve *serve;       /* NULL: not started */
    char *told;                   /* owned: the lines about bindings that were printed last */
    bool ready;                   /* the addresses were printed */
    bool keys;                    /* the next two are open */
    uv_poll_t input;
    uv_signal_t resumed;               /* SIGCONT */
    struct cn_console_opener *openers; /* owned: linked list */
};

/* For struct cn_serve_options, as cn_watch_start() and the others. */
void cn_console_start(struct cn_serve *serve, struct cn_console *console);
void cn_console_serving(struct cn_console *console);
bool cn_console_ready(struct cn_console *console); /* false: there is no terminal */
void cn_console_settled(struct cn_console *console, const struct cn_err *err);
void cn_console_stop(struct cn_console *console);

#endif
