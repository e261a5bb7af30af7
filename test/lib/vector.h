/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/vector.h - bytes as published vectors write them. What these return is kept until the
 * program ends. */
#ifndef CN_TEST_VECTOR_H
#define CN_TEST_VECTOR_H
#include "crypto/crypto.h"
#include "test/lib/test.h"

struct cn_bytes test_hex(const char *digits);
struct cn_bytes test_text(const char *text);
/* Base64url, as JSON Web Keys have it. */
struct cn_bytes test_b64url(const char *text);
/* What is in `buf`, borrowed. */
struct cn_bytes test_span(const struct cn_buf *buf);
/* Compares with `got`, which is emptied. */
void test_check_hex(const char *file, int line, const char *want, struct cn_buf *got);
#define CHECK_HEX(want, got) test_check_hex(__FILE__, __LINE__, want, got)
/* crypto.h C3: nothing is left in OpenSSL's queue. */
void test_no_openssl_errors(const char *file, int line);
#define CHECK_QUEUE() test_no_openssl_errors(__FILE__, __LINE__)

#endif
