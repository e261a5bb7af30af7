/* SPDX-License-Identifier: Apache-2.0 */
#include "config/address.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

long cn_address_port(const char *text)
{
    char *end;
    long port = *text >= '0' && *text <= '9' ? strtol(text, &end, 10) : -1;
    return port >= 0 && port <= 65535 && *end == 0 ? port : -1;
}

int cn_address_parse(const char *text, char **host, uint16_t *port, struct cn_err *err)
{
    const char *colon = strrchr(text, ':');
    long number = colon ? cn_address_port(colon + 1) : -1;
    size_t host_size = colon ? (size_t)(colon - text) : 0;
    if (number < 0 || (host_size && text[0] == '[' && text[host_size - 1] != ']'))
        return cn_err_set(err, CN_EINVALID, "\"%.100s\" is not an address HOST:PORT", text);
    cn_free(*host);
    if (host_size == 0)
        *host = cn_strdup("0.0.0.0");
    else if (text[0] == '[')
        *host = cn_strndup(text + 1, host_size - 2);
    else
        *host = cn_strndup(text, host_size);
    *port = (uint16_t)number;
    return 0;
}
