/* SPDX-License-Identifier: Apache-2.0 */
/* Header names and values: what passes the checks cannot inject a line, and list look-ups agree
 * with a second, plainer implementation. */
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/mem.h"
#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Splits a copy by commas with the C library. */
static bool list_has_plainly(const char *text, size_t size, const char *item)
{
    if (memchr(text, 0, size))
        return false;
    char *copy = cn_strndup(text, size), *rest = copy, *part;
    bool found = false;
    while ((part = strsep(&rest, ",")) != NULL) {
        part += strspn(part, " \t");
        size_t length = strlen(part);
        while (length > 0 && strchr(" \t", part[length - 1]))
            part[--length] = '\0';
        found |= strcasecmp(part, item) == 0;
    }
    cn_free(copy);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = cn_alloc(size + 1);
    memcpy(text, data, size);
    if (cn_http_value_valid(text, size))
        for (size_t i = 0; i < size; i++)
            CN_ASSERT(text[i] == '\t' || ((uint8_t)text[i] >= 0x20 && text[i] != 0x7f));
    else {
        bool bad = false;
        for (size_t i = 0; i < size; i++)
            bad |= ((uint8_t)text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7f;
        CN_ASSERT(bad);
    }
    if (cn_http_token_valid(text, size)) {
        CN_ASSERT(size > 0 && cn_http_value_valid(text, size));
        for (size_t i = 0; i < size; i++)
            CN_ASSERT(!strchr(" \t\"(),/:;<=>?@[\\]{}", text[i]) && (uint8_t)text[i] < 0x7f);
    }
    if (!memchr(text, 0, size)) {
        CN_ASSERT(cn_http_list_has(text, size, "close") == list_has_plainly(text, size, "close"));
        CN_ASSERT(cn_http_list_has(text, size, "upgrade") ==
                  list_has_plainly(text, size, "upgrade"));
    }
    cn_free(text);
    return 0;
}
