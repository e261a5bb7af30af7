/* SPDX-License-Identifier: Apache-2.0 */
#include "test/fuzz/confnode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_confnode(cn_toml_parse, data, size);
    return 0;
}
