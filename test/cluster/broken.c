/* SPDX-License-Identifier: Apache-2.0 */
/* test/cluster/broken.c - a server with one bug of the simulation's in its decisions.
 *
 * Linked before the library together with src/membership/member*.c as the simulation plants bugs into
 * them; CAIRN_BROKEN names one by its number (enum cn_broken of membership/member_private.h). Shows
 * that a campaign against real servers finds what breaks a rule. */
#include <stdlib.h>

#include "membership/member_private.h"

__attribute__((constructor)) static void choose(void)
{
    const char *number = getenv("CAIRN_BROKEN");
    cn_member_broken = number ? atoi(number) : CN_BROKEN_NOTHING;
}
