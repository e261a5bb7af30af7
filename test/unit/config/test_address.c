/* SPDX-License-Identifier: Apache-2.0 */
#include "config/address.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "test/lib/test.h"

/* "HOST PORT", or "refused". */
static const char *parsed(const char *text)
{
    static char shown[200];
    struct cn_err err;
    char *host = cn_strdup("what was there before");
    uint16_t port = 0;
    int rc = cn_address_parse(text, &host, &port, &err);
    if (rc == 0)
        snprintf(shown, sizeof(shown), "%s %u", host, port);
    else
        CHECK(rc == CN_EINVALID && strstr(err.text, "is not an address HOST:PORT"));
    cn_free(host);
    return rc == 0 ? shown : "refused";
}

TEST(address, host_and_port_as_people_write_them)
{
    CHECK_STR("127.0.0.1 8787", parsed("127.0.0.1:8787"));
    CHECK_STR("localhost 0", parsed("localhost:0"));
    CHECK_STR("0.0.0.0 80", parsed(":80"));
    CHECK_STR("::1 443", parsed("[::1]:443"));
    CHECK_STR("x 65535", parsed("x:65535"));
}

TEST(address, what_is_none_is_refused_with_itself_in_the_sentence)
{
    static const char *const texts[] = {"",
                                        "8787",
                                        "localhost",
                                        "localhost:",
                                        "x:65536",
                                        "x:-1",
                                        "x: 80",
                                        "x:80 ",
                                        "x:+80",
                                        "x:0x50",
                                        "[::1:80",
                                        "[:80",
                                        "x:99999999999999999999",
                                        "x:80/"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        CHECK_STR("refused", parsed(texts[i]));
}
