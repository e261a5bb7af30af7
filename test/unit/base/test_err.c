/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <uv.h>

#include "test/lib/test.h"

TEST(err, a_sentence_grows_by_its_context_and_keeps_its_code)
{
    struct cn_err err;
    CHECK_INT(CN_ECORRUPT, cn_err_set(&err, CN_ECORRUPT, "%s: bad magic", "log.1"));
    CHECK_INT(CN_ECORRUPT, cn_err_context(&err, "worker %d", 7));
    CHECK_STR("worker 7: log.1: bad magic", err.text);
    CHECK_INT(-ENOSPC, cn_err_errno(&err, ENOSPC, "cannot write %s", "log.1"));
    CHECK_STR("cannot write log.1: No space left on device", err.text);
    CHECK_INT(-ENOSPC, err.code);
}

TEST(err, without_a_place_for_the_sentence_the_code_travels_alone)
{
    CHECK_INT(CN_ELIMIT, cn_err_set(NULL, CN_ELIMIT, "%s", "unheard"));
    CHECK_INT(-EIO, cn_err_errno(NULL, EIO, "unheard"));
    CHECK(cn_err_context(NULL, "unheard") < 0);
}

TEST(err, a_sentence_that_is_too_long_is_cut_and_stays_a_text)
{
    struct cn_err err;
    char word[600];
    memset(word, 'x', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    cn_err_set(&err, CN_EINVALID, "%s", word);
    CHECK_INT(CN_ERR_TEXT_MAX - 1, strlen(err.text));
    for (int i = 0; i < 3; i++) {
        CHECK_INT(CN_EINVALID, cn_err_context(&err, "context %d", i));
        CHECK_INT(CN_ERR_TEXT_MAX - 1, strlen(err.text));
    }
    CHECK(strncmp(err.text, "context 2: context 1: context 0: x", 34) == 0);
    CHECK_INT(-EIO, cn_err_errno(&err, EIO, "%s", word));
    CHECK_INT(CN_ERR_TEXT_MAX - 1, strlen(err.text));
}

TEST(err, every_code_has_a_name)
{
    for (int code = CN_EDENIED; code <= CN_ECORRUPT; code++) {
        CHECK(cn_err_name(code)[0]);
        for (int other = CN_EDENIED; other < code; other++)
            CHECK(strcmp(cn_err_name(code), cn_err_name(other)) != 0);
    }
    CHECK(cn_err_name(UV_ENOENT)[0]);
    CHECK(cn_err_name(-12345678)[0]);
}
