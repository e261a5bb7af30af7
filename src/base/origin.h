/* SPDX-License-Identifier: Apache-2.0 */
/* base/origin.h - what caused a piece of work: carried by calls from lane to lane.
 *
 * `request` is what log lines name; the rest is for traces (the ids of W3C Trace Context) and zero
 * unless somebody traces. */
#ifndef CN_BASE_ORIGIN_H
#define CN_BASE_ORIGIN_H
#include <stdbool.h>
#include <stdint.h>

struct cn_origin {
    uint64_t request;  /* 0: nobody asked, as for an alarm */
    uint64_t trace[2]; /* the trace's id, high half first; both 0: none */
    uint64_t span;     /* of whoever called; 0: nobody */
    uint32_t depth;    /* how many calls from script to script this one is in */
    bool unsampled;    /* whoever began the trace does not want it kept */
};

#endif
