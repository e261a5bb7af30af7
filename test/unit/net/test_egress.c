/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses scripts may connect to. */
#include "net/egress.h"

#include <arpa/inet.h>
#include <string.h>

#include "test/lib/test.h"

static bool allowed(struct cn_egress *egress, const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return cn_egress_allowed((const struct sockaddr *)&v4, egress);
    CHECK_INT(1, inet_pton(AF_INET6, text, &v6.sin6_addr));
    return cn_egress_allowed((const struct sockaddr *)&v6, egress);
}

TEST(egress, private_ranges_are_all_that_is_not_the_internet)
{
    static const char *const deny[] = {"private"}, *const allow[] = {"10.1.0.0/16", "::1"};
    struct cn_err err = {0};
    struct cn_egress *egress = cn_egress_new(deny, 1, allow, 2, &err);
    static const char *const refused[] = {"127.0.0.1",       "10.0.0.1",       "192.168.1.1",
                                          "172.16.0.1",      "172.31.255.255", "169.254.169.254",
                                          "100.64.0.1",      "0.0.0.0",        "::",
                                          "fd00::1",         "fe80::1",        "::ffff:127.0.0.1",
                                          "64:ff9b::7f00:1", "2002:7f00:1::",  "224.0.0.1",
                                          "255.255.255.255", "10.2.0.1"};
    static const char *const fine[] = {
        "1.1.1.1", "172.32.0.1",      "2606:4700::1111", "10.1.2.3",
        "::1",     "192.167.255.255", "::ffff:8.8.8.8",  "64:ff9b::808:808"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (allowed(egress, refused[i]))
            test_fail(__FILE__, __LINE__, "%s is let through", refused[i]);
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
        if (!allowed(egress, fine[i]))
            test_fail(__FILE__, __LINE__, "%s is refused", fine[i]);
    cn_egress_free(egress);
    CHECK(allowed(NULL, "127.0.0.1"));
}

TEST(egress, all_but_a_list)
{
    static const char *const deny[] = {"all"}, *const allow[] = {"203.0.113.7", "2001:db8::/32"};
    struct cn_egress *egress = cn_egress_new(deny, 1, allow, 2, NULL);
    CHECK(allowed(egress, "203.0.113.7") && allowed(egress, "2001:db8:1::1"));
    CHECK(!allowed(egress, "203.0.113.8") && !allowed(egress, "2001:db9::1"));
    cn_egress_free(egress);
}

TEST(egress, refuses_malformed_ranges)
{
    static const char *const wrong[] = {"",          "10.0.0.0/33", "10.0.0",      "fd00::/129",
                                        "10.0.0.0/", "10.0.0.0/-1", "example.com", "10.0.0.0/8x",
                                        "/8"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct cn_err err = {0};
        if (cn_egress_new(&wrong[i], 1, NULL, 0, &err))
            test_fail(__FILE__, __LINE__, "accepted: %s", wrong[i]);
        CHECK_INT(CN_EINVALID, err.code);
    }
}
