/* SPDX-License-Identifier: Apache-2.0 */
/* store/functions.h - functions of SQL whose time grows with their texts.
 *
 * A statement is ended between two instructions of its program, so a function
 * that is called by one instruction is ended by nobody.
 *
 * F1  What a call takes grows with its arguments, not with their product. Those of SQLite that do
 *     not keep to that are replaced (functions.c); those that cannot be, refuse what would take too
 *     long or ask meanwhile whether they may go on (sqlite/engine.c).
 *
 * Threads: cn_functions_setup() once, before the first connection. */
#ifndef CN_STORE_FUNCTIONS_H
#define CN_STORE_FUNCTIONS_H

void cn_functions_setup(void);

#endif
