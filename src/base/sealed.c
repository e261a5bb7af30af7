/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sealed.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/err.h"

static const char head[] = "{\n  \"crc32c\": \"";
#define HEAD_SIZE (sizeof(head) - 1)
#define SEAL_SIZE (HEAD_SIZE + 8 + 2)

static void write_seal(char seal[SEAL_SIZE + 1], const uint8_t *rest, size_t size)
{
    snprintf(seal, SEAL_SIZE + 1, "%s%08x\",", head, cn_crc32c(0, rest, size));
}

void cn_sealed_put(struct cn_buf *json)
{
    struct cn_buf sealed = {0};
    char seal[SEAL_SIZE + 1];
    CN_ASSERT(json->size > 0 && json->data[0] == '{');
    write_seal(seal, json->data + 1, json->size - 1);
    cn_buf_append(&sealed, seal, SEAL_SIZE);
    cn_buf_append(&sealed, json->data + 1, json->size - 1);
    cn_buf_fini(json);
    *json = sealed;
}

int cn_sealed_check(const struct cn_buf *text)
{
    char want[SEAL_SIZE + 1];
    if (text->size < SEAL_SIZE || memcmp(text->data, head, HEAD_SIZE) != 0)
        return 0;
    write_seal(want, text->data + SEAL_SIZE, text->size - SEAL_SIZE);
    return memcmp(text->data, want, SEAL_SIZE) == 0 ? 1 : CN_ECORRUPT;
}
