/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/conftest.h - what a parser of configuration has read, as text. */
#ifndef CN_TEST_CONFTEST_H
#define CN_TEST_CONFTEST_H

struct cn_confnode;
struct cn_err;

/* `root`, which is freed, as plain JSON; the sentence of the error if it is NULL. Borrowed until
 * the next call. */
const char *conftest_text(struct cn_confnode *root, const struct cn_err *err);

#endif
