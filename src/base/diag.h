/* SPDX-License-Identifier: Apache-2.0 */
/* base/diag.h - messages to the operator (the word "log" means the commit log).
 *
 * One line per message on standard error: readable ("pretty") or one JSON
 * object ("json"). The format is chosen once, in main(), before threads start.
 *
 * Threads: any. A line is one write(2), so lines never mix. */
#ifndef CN_BASE_DIAG_H
#define CN_BASE_DIAG_H
#include <stddef.h>

enum cn_diag_level { CN_DIAG_DEBUG, CN_DIAG_INFO, CN_DIAG_WARN, CN_DIAG_ERROR };
enum cn_diag_format { CN_DIAG_PRETTY, CN_DIAG_JSON };

/* A named text attached to a message: request id, worker, object... */
struct cn_diag_field {
    const char *name;
    const char *text; /* NULL: the field is left out */
    size_t length;    /* 0: strlen(text) */
};

void cn_diag_setup(enum cn_diag_format format, enum cn_diag_level least);
int cn_diag_enabled(enum cn_diag_level level);
enum cn_diag_format cn_diag_format(void);

void cn_diag(enum cn_diag_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cn_diag_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                    const char *text, size_t length);

/* A second reader of all messages, as JSON lines, whatever the format on standard error is: NULL
 * ends it, and when this returns the function does not run any more. It must not call back. */
void cn_diag_tap(void (*line)(void *data, const char *json, size_t size), void *data);
int cn_diag_tapped(void);
/* The same as cn_diag_fields() for the tap alone. */
void cn_diag_tap_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                        const char *text, size_t length);

#define cn_info(...) cn_diag(CN_DIAG_INFO, __VA_ARGS__)
#define cn_warn(...) cn_diag(CN_DIAG_WARN, __VA_ARGS__)
#define cn_error(...) cn_diag(CN_DIAG_ERROR, __VA_ARGS__)

#endif
