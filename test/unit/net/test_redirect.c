/* SPDX-License-Identifier: Apache-2.0 */
/* Where redirects lead: net/redirect.h. */
#include "net/redirect.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "test/lib/test.h"

static bool leads(const char *url, const char *location, const char *expected)
{
    struct cn_redirect redirect;
    struct cn_err err;
    if (cn_redirect_read(302, "GET", url, location, &redirect, &err) < 0)
        return expected == NULL;
    bool equal = expected && strcmp(redirect.url, expected) == 0;
    if (!equal)
        fprintf(stderr, "%s -> %s\n", location, redirect.url);
    cn_free(redirect.url);
    return equal;
}

TEST(redirect, leads_to_what_its_location_means_from_there)
{
    const char *from = "http://a.test:81/one/two?q=1";
    CHECK(leads(from, "/x", "http://a.test:81/x"));
    CHECK(leads(from, "x?y=2", "http://a.test:81/one/x?y=2"));
    CHECK(leads(from, "../x", "http://a.test:81/x"));
    CHECK(leads(from, "?z", "http://a.test:81/one/two?z"));
    CHECK(leads(from, "//b.test/x", "http://b.test/x"));
    CHECK(leads(from, "https://b.test", "https://b.test/"));
    CHECK(leads(from, "/x#fragment", "http://a.test:81/x"));
    CHECK(leads(from, "/a b", "http://a.test:81/a%20b"));
}

TEST(redirect, to_what_is_no_http_is_refused)
{
    const char *from = "http://a.test/";
    CHECK(leads(from, "ftp://b.test/x", NULL));
    CHECK(leads(from, "javascript:alert(1)", NULL));
    CHECK(leads(from, "file:///etc/passwd", NULL));
    CHECK(leads(from, "http://", NULL));
    CHECK(leads(from, "http://b.test:99999/", NULL));
}

static struct cn_redirect read_one(int status, const char *method, const char *location)
{
    struct cn_redirect redirect = {0};
    struct cn_err err;
    CHECK_INT(0, cn_redirect_read(status, method, "https://a.test/x", location, &redirect, &err));
    cn_free(redirect.url);
    return redirect;
}

TEST(redirect, r1_the_method_changes_as_the_standard_says)
{
    CHECK(read_one(301, "POST", "/").becomes_get);
    CHECK(read_one(302, "POST", "/").becomes_get);
    CHECK(!read_one(301, "PUT", "/").becomes_get);
    CHECK(!read_one(302, "GET", "/").becomes_get);
    CHECK(read_one(303, "PUT", "/").becomes_get);
    CHECK(read_one(303, "POST", "/").becomes_get);
    CHECK(!read_one(303, "HEAD", "/").becomes_get);
    CHECK(!read_one(307, "POST", "/").becomes_get);
    CHECK(!read_one(308, "POST", "/").becomes_get);
    CHECK(!cn_redirect_is(300));
    CHECK(!cn_redirect_is(304));
    CHECK(cn_redirect_is(308));
}

TEST(redirect, r2_credentials_stay_with_their_origin)
{
    struct cn_redirect same = read_one(302, "GET", "https://A.test:443/y");
    CHECK(!same.other_origin);
    CHECK(cn_redirect_keeps(&same, "Authorization"));
    static const char *const others[] = {"http://a.test/", "https://a.test:444/",
                                         "https://b.a.test/", "https://user@b.test/"};
    for (size_t i = 0; i < 4; i++) {
        struct cn_redirect other = read_one(302, "GET", others[i]);
        CHECK(other.other_origin);
        CHECK(!cn_redirect_keeps(&other, "authorization"));
        CHECK(!cn_redirect_keeps(&other, "Cookie"));
        CHECK(!cn_redirect_keeps(&other, "proxy-authorization"));
        CHECK(cn_redirect_keeps(&other, "content-type"));
    }
    struct cn_redirect get = read_one(303, "POST", "/");
    CHECK(!cn_redirect_keeps(&get, "Content-Type"));
    CHECK(cn_redirect_keeps(&get, "cookie"));
}
