/* SPDX-License-Identifier: Apache-2.0 */
#include "server/console.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/diag.h"
#include "base/mem.h"
#include "deploy/tell.h"
#include "server/serve.h"
#include "text/percent.h"

/* Of the process, for its exit (T2). */
static struct {
    struct termios before;
    bool changed;
} terminal;

static void give_back(void)
{
    if (!terminal.changed)
        return;
    terminal.changed = false;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.before); /* nobody is left to tell */
}

/* T1: whoever asks for the terminal from the background is stopped. */
static bool is_ours(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* A key comes at once and is not shown; Ctrl-C and Ctrl-Z stay what they are. */
static void take_keys(void)
{
    struct termios mode;
    if (!is_ours() || tcgetattr(STDIN_FILENO, &mode) < 0)
        return;
    if (!terminal.changed) {
        terminal.before = mode;
        terminal.before.c_lflag |= ICANON | ECHO; /* what came before in our place has changed it */
    }
    mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    terminal.changed = tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) == 0;
}

static const char *coloured(const char *colour)
{
    return cn_diag_coloured() ? colour : "";
}

/* --- what is printed ------------------------------------------------------------------------- */

/* The lines about bindings, if they are others than before. */
static void tell_bindings(struct cn_console *console)
{
    struct cn_buf lines = {0};
    cn_deployer_tell(console->deployer, &lines);
    const char *text = cn_buf_text(&lines);
    if (!console->told || strcmp(console->told, text) != 0) {
        fputs(text, stdout);
        cn_free(console->told);
        console->told = cn_strdup(text);
    }
    cn_buf_fini(&lines);
    fflush(stdout);
}

/* Everybody's addresses are those of this machine's interfaces. */
static void tell_interfaces(const struct cn_serve_addresses *at)
{
    uv_interface_address_t *all = NULL;
    int count = 0;
    if (!at->everybody || uv_interface_addresses(&all, &count) < 0)
        return;
    for (int i = 0; i < count; i++) {
        char text[64];
        if (all[i].is_internal || all[i].address.address4.sin_family != AF_INET)
            continue;
        uv_ip4_name(&all[i].address.address4, text, sizeof(text));
        printf("  network    %s://%s:%u\n", at->tls ? "https" : "http", text, at->port);
    }
    uv_free_interface_addresses(all, count);
}

static void tell_addresses(const struct cn_console *console)
{
    struct cn_serve_addresses at;
    cn_serve_addresses(console->serve, &at);
    tell_interfaces(&at);
    if (at.admin_port)
        printf("  dashboard  %s://%s:%u (%s)\n", at.admin_tls ? "https" : "http", at.admin_host,
               at.admin_port, console->keys ? "d opens it" : "`cairn dashboard` prints the way in");
    if (at.health_port)
        printf("  health     http://%s:%u\n", at.health_host, at.health_port);
    if (at.inspector_port)
        printf("  inspector  http://127.0.0.1:%u (chrome://inspect, or its /json)\n",
               at.inspector_port);
}

static void tell_keys(const struct cn_console *console)
{
    static const char *const keys[][2] = {
        {"b", "browser"}, {"d", "dashboard"}, {"c", "clear"}, {"r", "reload"}, {"x", "exit"}};
    if (!console->keys)
        return;
    for (size_t i = 0; i < CN_ARRAY_COUNT(keys); i++)
        printf("%s%s%s%s %s", i ? ", " : "", coloured("\033[1m"), keys[i][0], coloured("\033[0m"),
               keys[i][1]);
    putchar('\n');
}

/* --- keys ------------------------------------------------------------------------------------ */

/* A program that opens a page, until it ends. */
struct cn_console_opener {
    uv_process_t process; /* first: closed as a handle, then freed */
    struct cn_console *console;
    struct cn_console_opener *next;
};

static void on_opener_closed(uv_handle_t *handle)
{
    cn_free(handle);
}

static void on_opened(uv_process_t *process, int64_t status, int signal)
{
    struct cn_console_opener *opener = (struct cn_console_opener *)process;
    struct cn_console_opener **at = &opener->console->openers;
    if (status != 0 || signal)
        cn_warn("no browser could be opened; the address is above");
    while (*at != opener)
        at = &(*at)->next;
    *at = opener->next;
    uv_close((uv_handle_t *)process, on_opener_closed);
}

/* By whatever opens pages on this machine. */
static void open_page(struct cn_console *console, const char *url)
{
    const char *const programs[] = {getenv("BROWSER"), "xdg-open", "wslview"};
    int rc = UV_ENOENT;
    for (size_t i = 0; i < CN_ARRAY_COUNT(programs) && rc < 0; i++) {
        if (!programs[i] || !*programs[i])
            continue;
        char *argv[] = {(char *)programs[i], (char *)url, NULL};
        struct cn_console_opener *opener = CN_NEW(struct cn_console_opener);
        uv_process_options_t options = {
            .file = argv[0], .args = argv, .exit_cb = on_opened, .flags = UV_PROCESS_DETACHED};
        rc = uv_spawn(cn_serve_loop(console->serve), &opener->process, &options);
        if (rc < 0) {
            uv_close((uv_handle_t *)&opener->process, on_opener_closed);
            continue;
        }
        opener->console = console;
        opener->next = console->openers;
        console->openers = opener;
    }
    if (rc < 0)
        cn_info("there is no program here that opens a browser; the address is %s", url);
}

static void open_dashboard(struct cn_console *console)
{
    struct cn_serve_addresses at;
    cn_serve_addresses(console->serve, &at);
    if (!at.admin_port || !console->token) {
        cn_info("the dashboard is off; --admin 127.0.0.1:0 has it on any free port");
        return;
    }
    struct cn_buf url = {0};
    cn_buf_printf(&url, "%s://%s:%u/#token=", at.admin_tls ? "https" : "http", at.admin_host,
                  at.admin_port);
    cn_percent_encode(&url, console->token, strlen(console->token), "-");
    open_page(console, cn_buf_text(&url));
    cn_buf_fini(&url);
}

static void tell_all(struct cn_console *console)
{
    struct cn_serve_addresses at;
    fputs(console->told ? console->told : "", stdout);
    cn_serve_addresses(console->serve, &at);
    printf("cairn: ready on %s\n", at.url);
    tell_addresses(console);
    tell_keys(console);
    fflush(stdout);
}

/* As Ctrl-C does. */
static void end_process(void)
{
    (void)kill(getpid(), SIGINT); /* one may always send oneself a signal */
}

static void press(struct cn_console *console, char key)
{
    struct cn_serve_addresses at;
    cn_serve_addresses(console->serve, &at);
    switch (tolower((unsigned char)key)) {
    case 'b':
        open_page(console, at.url);
        break;
    case 'd':
        open_dashboard(console);
        break;
    case 'c':
        fputs("\033[H\033[2J\033[3J", stdout);
        tell_all(console);
        break;
    case 'r':
        cn_info("loading the project again");
        cn_serve_reload(console->serve);
        break;
    case 'x':
    case 'q':
    case 4: /* Ctrl-D */
        end_process();
        break;
    case '?':
    case 'h':
        tell_keys(console);
        fflush(stdout);
        break;
    default:
        break;
    }
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    struct cn_console *console = poll->data;
    char keys[16];
    (void)events;
    if (status == 0 && !is_ours() && tcgetpgrp(STDIN_FILENO) >= 0) {
        uv_poll_stop(poll); /* another's, until SIGCONT */
        return;
    }
    ssize_t size = status < 0 ? 0 : read(STDIN_FILENO, keys, sizeof(keys));
    if (size < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (size <= 0) { /* T3 */
        uv_poll_stop(poll);
        end_process();
        return;
    }
    if (size > 1 && keys[0] == '\033')
        return; /* an arrow, a function key */
    for (ssize_t i = 0; i < size && console->ready; i++)
        press(console, keys[i]);
}

static void on_resumed(uv_signal_t *handle, int number)
{
    struct cn_console *console = handle->data;
    (void)number;
    take_keys();
    if (is_ours())
        uv_poll_start(&console->input, UV_READABLE, on_input);
}

static void open_keys(struct cn_console *console)
{
    uv_loop_t *loop = cn_serve_loop(console->serve);
    static bool registered;
    if (cn_diag_format() != CN_DIAG_PRETTY || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
        !is_ours() || uv_poll_init(loop, &console->input, STDIN_FILENO) < 0)
        return; /* T1 */
    console->keys = true;
    console->input.data = console;
    uv_poll_start(&console->input, UV_READABLE, on_input);
    uv_signal_init(loop, &console->resumed);
    console->resumed.data = console;
    uv_signal_start(&console->resumed, on_resumed, SIGCONT);
    if (!registered)
        (void)atexit(give_back); /* without it the end of serving gives it back */
    registered = true;
    take_keys();
}

/* --- of struct cn_serve_options -------------------------------------------------------------- */

void cn_console_start(struct cn_serve *serve, struct cn_console *console)
{
    console->serve = serve;
    open_keys(console);
}

void cn_console_serving(struct cn_console *console)
{
    if (cn_diag_format() == CN_DIAG_PRETTY)
        tell_bindings(console);
}

bool cn_console_ready(struct cn_console *console)
{
    console->ready = true;
    if (!console->keys)
        return false;
    tell_addresses(console);
    tell_keys(console);
    fflush(stdout);
    return true;
}

void cn_console_settled(struct cn_console *console, const struct cn_err *err)
{
    if (!err && console->ready && cn_diag_format() == CN_DIAG_PRETTY)
        tell_bindings(console);
}

void cn_console_stop(struct cn_console *console)
{
    give_back();
    if (console->keys) {
        uv_close((uv_handle_t *)&console->input, NULL);
        uv_close((uv_handle_t *)&console->resumed, NULL);
    }
    for (struct cn_console_opener *opener = console->openers, *next; opener; opener = next) {
        next = opener->next;
        uv_close((uv_handle_t *)opener, on_opener_closed);
    }
    console->openers = NULL;
    console->keys = false;
    cn_free(console->told);
    console->told = NULL;
}
