/* SPDX-License-Identifier: Apache-2.0 */
/* cli/starter.h - small projects to begin with: the folders of templates/, which are in the program
 * (tools/build-templates.mjs). */
#ifndef CN_CLI_STARTER_H
#define CN_CLI_STARTER_H
#include <stdbool.h>

#include "base/err.h"

struct cn_buf;

/* Whether there is a template of this name. */
bool cn_starter_has(const char *template);
/* Appends "a, b, c": all of them. */
void cn_starter_list(struct cn_buf *text);
/* Writes its files into the folder, which is made if it is not there. A file that is there already
 * stays, with `keep`; without, nothing is written at all. */
int cn_starter_write(const char *template, const char *dir, const char *name, bool keep,
                     struct cn_err *err);

#endif
