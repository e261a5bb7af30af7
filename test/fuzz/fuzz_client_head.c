/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an answer, line by line: what comes out is well-formed whatever went in. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "net/client_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_client_head_reader reader = {0};
    const char *at = (const char *)data, *end = at + size;
    int rc = 0;
    while (at < end && rc == 0) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t length = line ? (size_t)(line + 1 - at) : (size_t)(end - at);
        rc = cn_client_head_line(&reader, at, length, 4096, NULL);
        at += length;
    }
    if (rc == 1) {
        struct cn_client_header *headers;
        struct cn_client_head head = cn_client_head_take(&reader, &headers);
        CN_ASSERT(head.status >= 200 && head.status <= 999);
        for (size_t i = 0; i < head.header_count; i++) {
            CN_ASSERT(cn_client_is_token(headers[i].name, headers[i].name_length));
            CN_ASSERT(strlen(headers[i].value) == headers[i].value_length);
            CN_ASSERT(!strpbrk(headers[i].value, "\r\n"));
        }
        cn_free(headers);
    }
    cn_client_head_fini(&reader);
    return 0;
}
