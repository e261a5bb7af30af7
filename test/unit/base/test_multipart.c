/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies as browsers and libraries write them, and broken ones. */
#include "base/multipart.h"

#include <stdio.h>
#include <string.h>

#include "test/lib/test.h"

/* "name|filename|type|content;" for every part, or the error's text. */
static const char *parse(const char *body)
{
    static char out[1024];
    struct cn_multipart parser;
    cn_multipart_init(&parser, (const uint8_t *)body, strlen(body), "b", 1);
    struct cn_multipart_part part;
    struct cn_err err = {0};
    int rc, at = 0;
    out[0] = 0;
    while ((rc = cn_multipart_next(&parser, &part, &err)) > 0)
        at += snprintf(out + at, sizeof(out) - (size_t)at, "%.*s|%.*s|%.*s|%.*s;",
                       (int)part.name_size, part.name, part.filename ? (int)part.filename_size : 1,
                       part.filename ? part.filename : "-", (int)part.type_size, part.type,
                       (int)(part.end - part.start), body + part.start);
    if (rc < 0)
        snprintf(out, sizeof(out), "%s", err.text);
    cn_multipart_fini(&parser);
    return out;
}

#define HEAD "Content-Disposition: form-data; name=\"x\""

TEST(multipart, gives_fields_and_files)
{
    CHECK_STR(
        "x|-||1;y|f.txt|a/b|line\r\n2;",
        parse("--b\r\n" HEAD "\r\n\r\n1\r\n--b\r\ncontent-type: a/b\r\n"
              "CONTENT-DISPOSITION: form-data; name=y; filename=\"f.txt\"\r\n\r\nline\r\n2\r\n"
              "--b--\r\n"));
    CHECK_STR("", parse("--b--"));
}

TEST(multipart, takes_what_the_platform_takes)
{
    CHECK_STR("x|-||1;", parse("before\r\n--b\r\n" HEAD "\r\n\r\n1\r\n--b--after"));
    CHECK_STR("x|-||1;", parse("--b\n" HEAD "\n\n1\n--b--"));
    CHECK_STR("a\"b|||;",
              parse("--b\r\nContent-Disposition: form-data; name=\"a\\\"b\"; filename=\"\"\r\n\r\n"
                    "\r\n--b--"));
    CHECK_STR("x|-||;", parse("--b\r\n" HEAD "\r\n\r\n--b--")); /* the head's own line break */
    CHECK_STR("x|-||-\r\n-b\r;", parse("--b\r\n" HEAD "\r\n\r\n-\r\n-b\r\r\n--b--"));
}

TEST(multipart, says_what_is_wrong)
{
    CHECK_STR("No initial boundary string (or you have a truncated message).", parse("x--b"));
    CHECK_STR("No initial boundary string (or you have a truncated message).", parse(""));
    CHECK_STR("No end of headers in FormData part.", parse("--b\r\n" HEAD "\r\n"));
    CHECK_STR("No subsequent boundary string after multipart message.",
              parse("--b\r\n" HEAD "\r\n\r\n1\r\n--c"));
    CHECK_STR("Boundary string was not succeeded by CRLF, LF, or '--'.", parse("--bc\r\n"));
    CHECK_STR("No valid Content-Disposition header found in FormData part.",
              parse("--b\r\nx: y\r\n\r\n1\r\n--b--"));
    CHECK_STR("Content-Disposition header in FormData part is missing a name.",
              parse("--b\r\nContent-Disposition: form-data; filename=x\r\n\r\n1\r\n--b--"));
}
