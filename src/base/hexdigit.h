/* SPDX-License-Identifier: Apache-2.0 */
/* base/hexdigit.h - one hexadecimal digit. Bytes as digits are in text/hex.h. */
#ifndef CN_BASE_HEXDIGIT_H
#define CN_BASE_HEXDIGIT_H

/* The value of a digit in either case, or -1. */
static inline int cn_hexdigit_value(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The digit of the low four bits, in lower case. */
static inline char cn_hexdigit(unsigned value)
{
    return "0123456789abcdef"[value & 15];
}

#endif
