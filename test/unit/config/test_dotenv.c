/* SPDX-License-Identifier: Apache-2.0 */
/* .dev.vars and .env: the forms that dotenv has, and where a mistake is said to be. */
#include <string.h>

#include "base/err.h"
#include "config/config.h"
#include "config/confnode.h"
#include "test/lib/conftest.h"
#include "test/lib/test.h"

static const char *read_env(const char *text)
{
    struct cn_err err = {0};
    struct cn_confnode *root = cn_dotenv_parse(".env", text, strlen(text), &err);
    return conftest_text(root, &err);
}

TEST(dotenv, plain_values_are_trimmed_and_end_at_a_comment)
{
    CHECK_STR("{\"A\":\"1\",\"B\":\"two words\",\"C\":\"\"}",
              read_env("# first\nA=1\n\n  B =  two words   # note\nC=\n"));
    CHECK_STR("{\"A\":\"x=y\"}", read_env("export A=x=y"));
    CHECK_STR("{\"A\":\"1\",\"B\":\"2\"}", read_env("A=1\r\nB=2\r\n"));
    CHECK_STR("{}", read_env(""));
}

TEST(dotenv, quoted_values_may_span_lines)
{
    CHECK_STR("{\"A\":\"a\\nb # c\"}", read_env("A=\"a\nb # c\""));
    CHECK_STR("{\"A\":\"a\\nb\"}", read_env("A=\"a\\nb\""));
    CHECK_STR("{\"A\":\"a\\\\nb\"}", read_env("A='a\\nb'"));
    CHECK_STR("{\"A\":\"say \\\"hi\\\"\"}", read_env("A=`say \"hi\"`"));
}

TEST(dotenv, a_key_that_comes_again_replaces_the_first)
{
    CHECK_STR("{\"A\":\"2\",\"B\":\"x\"}", read_env("A=1\nB=x\nA=2"));
}
