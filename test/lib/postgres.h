/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/postgres.h - servers of PostgreSQL for a test: a primary, standbys, and what may happen
 * to them.
 *
 * They run as an unprivileged user, below a directory of their own, and listen on a socket in it:
 * no port is taken. They end with the test's process, whatever ends it.
 *
 * Threads: one. */
#ifndef CN_TEST_POSTGRES_H
#define CN_TEST_POSTGRES_H
#include <stdbool.h>
#include <sys/types.h>

struct test_postgres {
    char dir[64]; /* has data/, the socket and the server's messages */
    pid_t pid;    /* 0: does not run */
};

/* Skips the test if PostgreSQL is not installed. */
void test_postgres_need(void);
/* A new primary, which waits for `standbys` (of synchronous_standby_names; "": none). */
void test_postgres_make(struct test_postgres *server, const char *standbys);
/* A copy of a running server, which follows it under this name. */
void test_postgres_copy(struct test_postgres *server, const struct test_postgres *of,
                        const char *name);
void test_postgres_start(struct test_postgres *server);
/* kill -9. */
void test_postgres_kill(struct test_postgres *server);
void test_postgres_promote(struct test_postgres *server);
/* Kills it and removes its directory. */
void test_postgres_end(struct test_postgres *server);
/* One statement by a connection of its own; the first value of the first row, borrowed until the
 * next; "" if there is none. Fails the test if it fails. */
const char *test_postgres_ask(const struct test_postgres *server, const char *sql);
/* Asks until the answer is `want`. */
void test_postgres_await(const struct test_postgres *server, const char *sql, const char *want);

#endif
