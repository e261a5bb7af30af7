/* SPDX-License-Identifier: Apache-2.0 */
/* What is a loopback host, and when two secrets are equal. (The rest is seen from outside:
 * test/integration/admin/listener.test.mjs.) */
#include "admin/guard.h"

#include "test/lib/test.h"

TEST(guard, compares_whole_secrets)
{
    CHECK(cn_guard_equal("secret", "secret", 6));
    CHECK(!cn_guard_equal("secret", "secreT", 6));
    CHECK(!cn_guard_equal("secret", "secret", 5));
    CHECK(!cn_guard_equal("secret", "secrets", 7));
    CHECK(!cn_guard_equal("secret", "", 0));
}

TEST(guard, knows_loopback)
{
    CHECK(cn_guard_is_loopback("127.0.0.1") && cn_guard_is_loopback("127.8.0.1"));
    CHECK(cn_guard_is_loopback("localhost") && cn_guard_is_loopback("::1"));
    CHECK(!cn_guard_is_loopback("127.evil.example") && !cn_guard_is_loopback("0.0.0.0"));
    CHECK(!cn_guard_is_loopback("") && !cn_guard_is_loopback("localhost.example"));
}
