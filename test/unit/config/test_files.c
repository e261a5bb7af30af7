/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a project are read whole, up to a size: a bundle (project/bundle.h) is one. */
#include "config/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "test/lib/test.h"

TEST(files, a_file_past_its_bound_is_refused_with_a_sentence)
{
    char path[] = "/tmp/cairn-files-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    struct cn_buf out = {0};
    struct cn_err err = {0};
    CHECK_INT(0, ftruncate(fd, 100000));
    CHECK_INT(0, cn_files_read(path, 100000, &out, &err));
    CHECK_INT(100000, (int)out.size);
    cn_buf_fini(&out);
    CHECK_INT(0, ftruncate(fd, 100001));
    CHECK_INT(CN_ELIMIT, cn_files_read(path, 100000, &out, &err));
    CHECK(strstr(err.text, "larger than 100000 bytes"));
    cn_buf_fini(&out);
    close(fd);
    unlink(path);
}
