/* SPDX-License-Identifier: Apache-2.0 */
/* cli/prompt.h - what a person types and nobody should see: tokens and secrets. */
#ifndef CN_CLI_PROMPT_H
#define CN_CLI_PROMPT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A line typed on the terminal without being shown, or, if standard input is none, all of it
 * without its last line end. Owned; NULL with an error, also past `size_max` bytes. */
char *cn_prompt_secret(const char *question, size_t size_max, struct cn_err *err);

#endif
