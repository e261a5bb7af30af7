/* SPDX-License-Identifier: Apache-2.0 */
/* base/diag.h - messages to the operator (the word "log" means the commit log).
 *
 * One line per message on standard error: readable ("pretty") or one JSON
 * object ("json"). The format is chosen once, in main(), before threads start.
 *
 * Threads: any. A line is one write(2), so lines never mix. */
#ifndef CN_BASE_DIAG_H
#define CN_BASE_DIAG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_buf;

enum cn_diag_level { CN_DIAG_DEBUG, CN_DIAG_INFO, CN_DIAG_WARN, CN_DIAG_ERROR };
enum cn_diag_format { CN_DIAG_PRETTY, CN_DIAG_JSON };

/* A named text attached to a message: request id, worker, object...; or a number. */
struct cn_diag_field {
    const char *name;
    const char *text; /* NULL: the field is left out */
    size_t length;    /* 0: strlen(text) */
    bool is_number;   /* the text is a number as JSON has it, and is written as one there */
};

/* The name of a field without a text, which is not written: the message is of an exception that no
 * code of the worker has caught. For taps. */
#define CN_DIAG_EXCEPTION "exception"

void cn_diag_setup(enum cn_diag_format format, enum cn_diag_level least);
/* Whether messages for people go to a terminal that shows colours (NO_COLOR is not set): the form
 * is then "pretty". */
bool cn_diag_coloured(void);
int cn_diag_enabled(enum cn_diag_level level);
enum cn_diag_format cn_diag_format(void);

void cn_diag(enum cn_diag_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cn_diag_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                    const char *text, size_t length);

/* A message as another reader gets it. */
struct cn_diag_note {
    int64_t time_ms; /* wall clock */
    enum cn_diag_level level;
    const struct cn_diag_field *fields;
    size_t count;
    const char *text;
    size_t length;
};
/* The line of the format "json". */
void cn_diag_append_note(struct cn_buf *line, const struct cn_diag_note *note);

/* A reader of all messages, of every level, besides standard error. `note` runs on the thread that
 * logs, under a lock, and must not log. It does not run any more when remove returns. */
struct cn_diag_tap {
    struct cn_diag_tap *next; /* of the list of taps */
    bool requests;            /* wants cn_diag_tap_fields() too */
    void (*note)(struct cn_diag_tap *tap, const struct cn_diag_note *note);
};
void cn_diag_tap_add(struct cn_diag_tap *tap);
void cn_diag_tap_remove(struct cn_diag_tap *tap);
/* Whether anybody wants those: */
int cn_diag_tapped(void);
/* The same as cn_diag_fields() for taps with `requests` alone. */
void cn_diag_tap_fields(enum cn_diag_level level, const struct cn_diag_field *fields, size_t count,
                        const char *text, size_t length);

#define cn_info(...) cn_diag(CN_DIAG_INFO, __VA_ARGS__)
#define cn_warn(...) cn_diag(CN_DIAG_WARN, __VA_ARGS__)
#define cn_error(...) cn_diag(CN_DIAG_ERROR, __VA_ARGS__)

#endif
