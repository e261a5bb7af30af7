/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/error_page.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "net/server.h"

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#fafafa;color:#222}"
    "main{max-width:60rem;margin:3rem auto;padding:0 1rem}"
    "h1{font-size:1.3rem;color:#b3261e}pre{background:#fff;border:1px solid #ddd;"
    "border-radius:6px;padding:1rem;overflow:auto;white-space:pre-wrap;font:14px/1.5 "
    "ui-monospace,monospace}"
    "@media(prefers-color-scheme:dark){body{background:#17181a;color:#ddd}"
    "pre{background:#1f2023;border-color:#333}h1{color:#ff8a80}}";

/* Browsers name it, other clients do not. */
static bool wants_html(const struct cn_http_request *http)
{
    const struct cn_http_header *accept = cn_http_request_find(http, "accept");
    return accept && memmem(accept->value, accept->value_size, "text/html", 9);
}

/* Escape sequences of a terminal end with the letter m. */
static void append_without_colours(struct cn_buf *out, const char *text, size_t size)
{
    const char *end = text + size;
    while (text < end) {
        const char *escape = memchr(text, '\033', (size_t)(end - text));
        cn_buf_append(out, text, (size_t)((escape ? escape : end) - text));
        const char *last = escape ? memchr(escape, 'm', (size_t)(end - escape)) : NULL;
        text = last ? last + 1 : end;
    }
}

static void append_page(struct cn_buf *page, const struct cn_http_request *http, const char *worker,
                        const struct cn_buf *text)
{
    const char *all = (const char *)text->data;
    const char *newline = memchr(all, '\n', text->size);
    size_t title = newline ? (size_t)(newline - all) : text->size;
    cn_buf_append_str(page, "<!doctype html><meta charset=utf-8><title>cairn: ");
    cn_buf_append_html(page, all, title);
    cn_buf_printf(page, "</title><style>%s</style><main><h1>", style);
    cn_buf_append_html(page, all, title);
    cn_buf_append_str(page, "</h1>");
    if (worker) {
        cn_buf_printf(page, "<p>in worker <b>%s</b> while answering <b>%.*s ", worker,
                      (int)http->method_text.size, http->method_text.data);
        cn_buf_append_html(page, http->target.data, http->target.size);
        cn_buf_append_str(page, "</b></p>");
    }
    size_t rest = title;
    while (!worker && rest < text->size && all[rest] == '\n')
        rest++;
    if (worker || rest < text->size) {
        size_t from = worker ? 0 : rest; /* a stack is copied whole, with its first line */
        cn_buf_append_str(page, "<pre>");
        cn_buf_append_html(page, all + from, text->size - from);
        cn_buf_append_str(page, "</pre>");
    }
    cn_buf_append_str(page, "</main>\n");
}

void cn_error_page(struct cn_http_request *http, int status, const char *worker, const char *text,
                   size_t size)
{
    struct cn_buf plain = {0}, page = {0};
    bool html = wants_html(http);
    append_without_colours(&plain, text, size);
    if (html)
        append_page(&page, http, worker, &plain);
    else
        cn_buf_append_byte(&plain, '\n');
    const struct cn_buf *body = html ? &page : &plain;
    struct cn_http_header headers[] = {
        {"content-type", html ? "text/html;charset=UTF-8" : "text/plain;charset=UTF-8", 12,
         html ? 23 : 24},
        {"cache-control", "no-store", 13, 8},
        {"retry-after", "1", 11, 1},
    };
    struct cn_http_head head = {status, headers, status == 503 ? 3 : 2, NULL};
    /* If the client is gone there is nobody to tell. */
    (void)cn_http_respond(http, &head, body->data, body->size, NULL, NULL);
    cn_buf_fini(&plain);
    cn_buf_fini(&page);
}
