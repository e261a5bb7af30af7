/* SPDX-License-Identifier: Apache-2.0 */
/* config/compat.h - compatibility dates and flags of the Workers platform.
 *
 * A flag has a name that turns a behaviour on, usually one that turns it off,
 * and a date from which it is on by itself. The table in compat.c lists every
 * flag that workerd 1.20261104 knows and which side of each cairn has. */
#ifndef CN_CONFIG_COMPAT_H
#define CN_CONFIG_COMPAT_H
#include <stdbool.h>
#include <stddef.h>

enum cn_compat_side {
    CN_COMPAT_ON,   /* cairn always behaves as if the flag were on */
    CN_COMPAT_OFF,  /* ... as if it were off */
    CN_COMPAT_BOTH, /* the flag is honoured */
};

struct cn_compat_flag {
    const char *enable;
    const char *disable;      /* NULL: there is none */
    const char *date;         /* on from this date; NULL: never by itself */
    const char *implied_by;   /* on when that flag is on and ... */
    const char *implied_date; /* ... the compatibility date is not before this */
    enum cn_compat_side side;
};

/* The flag that `name` turns on or off (*enables says which), or NULL. */
const struct cn_compat_flag *cn_compat_find(const char *name, bool *enables);
/* The flags one by one, then NULL. */
const struct cn_compat_flag *cn_compat_at(size_t index);
/* True if asking for `name` asks for a behaviour that cairn has. */
bool cn_compat_is_built(const struct cn_compat_flag *flag, bool enables);
/* The known name nearest to `name`, or NULL. */
const char *cn_compat_suggest(const char *name);
/* True if `date` has the form YYYY-MM-DD and exists. */
bool cn_compat_date_valid(const char *date);
/* True if `enable` (the name that turns a flag on) is on for this date (may be
 * NULL: the oldest) and these flags. `enable` must be in the table. */
bool cn_compat_is_on(const char *enable, const char *date, const char *const *flags,
                     size_t flag_count);

#endif
