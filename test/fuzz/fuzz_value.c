/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a structured value for a module: a tree that ends (V2), or an error with a sentence.
 * All of a tree can be walked; what a builder makes of it is read again and is the same. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "module/value.h"

/* How many values someone meets who walks all of it. */
static size_t walk(const cairn_value *value)
{
    size_t met = 1, size;
    const char *text = cn_value_text(value, &size);
    CN_ASSERT(!text || text[size] == '\0');
    const uint8_t *bytes = cn_value_bytes(value, &size);
    volatile uint8_t sum = 0;
    for (size_t i = 0; bytes && i < size; i++)
        sum = (uint8_t)(sum + bytes[i]);
    for (size_t i = 0; i < cn_value_count(value); i++) {
        const cairn_value *key = cn_value_key(value, i);
        CN_ASSERT(cn_value_at(value, i));
        met += walk(cn_value_at(value, i)) + (key ? walk(key) : 0);
    }
    CN_ASSERT(!cn_value_at(value, cn_value_count(value)));
    (void)cn_value_get(value, "name");
    return met;
}

static void copy(const cairn_value *value)
{
    cairn_builder builder, again;
    struct cn_document document = {0};
    struct cn_err err = {0};
    size_t size, second;
    cn_builder_init(&builder, 32u << 20);
    cn_builder_init(&again, 32u << 20);
    cn_build_value(&builder, value);
    uint8_t *bytes = cn_builder_take(&builder, &size, &err);
    if (bytes) {
        CN_ASSERT(cn_document_read(&document, bytes, size, &err) == 0);
        cn_build_value(&again, document.root);
        uint8_t *same = cn_builder_take(&again, &second, &err);
        CN_ASSERT(same && size == second && memcmp(bytes, same, size) == 0);
        cn_free(same);
    }
    cn_document_fini(&document);
    cn_builder_fini(&builder);
    cn_builder_fini(&again);
    cn_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cn_document document = {0};
    struct cn_err err = {0};
    int rc = cn_document_read(&document, data, size, &err);
    CN_ASSERT((rc < 0) == (err.text[0] != '\0') && (rc < 0) == !document.root);
    if (rc == 0) {
        CN_ASSERT(walk(document.root) <= CN_VALUE_COUNT_MAX);
        copy(document.root);
    }
    cn_document_fini(&document);
    return 0;
}
