/* SPDX-License-Identifier: Apache-2.0 */
/* worker/advice.h - an error as `cairn dev` shows it: where it is in the project, the lines around
 * it, and what to type, where the error is one that is known.
 *
 * Stack frames of the server's own JavaScript (cairn:prelude) say nothing to who has written the
 * project, and are left out.
 *
 * Threads: any. */
#ifndef CN_WORKER_ADVICE_H
#define CN_WORKER_ADVICE_H
#include <stddef.h>

struct cn_buf;
struct cn_js_vm;
struct cn_script;

/* Appends the text of an exception of the script with its places in the project, a frame of the
 * source and advice. */
void cn_advice_explain(struct cn_script *script, const char *text, size_t length,
                       struct cn_buf *out);
/* The same; of a script that was ended (the text says so), its place too. */
void cn_advice_explain_end(struct cn_script *script, const struct cn_js_vm *vm, const char *text,
                           size_t length, struct cn_buf *out);
/* Appends "\nhint: ..." for a text that is known; else nothing. `env_json` and `options_json` are
 * those of struct cn_script. */
void cn_advice_append(const char *text, const char *env_json, const char *options_json,
                      struct cn_buf *out);

#endif
