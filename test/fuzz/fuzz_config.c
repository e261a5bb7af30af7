/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as wrangler.toml (first byte even) or wrangler.jsonc, and as
 * .dev.vars: structs, or an error with a sentence. */
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/err.h"
#include "config/config.h"
#include "config/confnode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool is_toml = data[0] % 2 == 0;
    const char *text = (const char *)data + 1;
    struct cn_config_options options = {.env = data[0] & 2 ? "p" : NULL};
    struct cn_config *config = NULL;
    struct cn_err err = {0};
    int rc = cn_config_load_text("/p/wrangler", is_toml, text, size - 1, &options, &config, &err);
    CN_ASSERT((rc == 0) == (config != NULL) && (rc == 0) == (err.code == 0));
    CN_ASSERT(rc < 0 || (config->name && config->main));
    cn_config_free(config);
    err = (struct cn_err){0};
    struct cn_confnode *secrets = cn_dotenv_parse(".dev.vars", text, size - 1, &err);
    CN_ASSERT(!secrets == (err.code < 0));
    cn_confnode_free(secrets);
    return 0;
}
