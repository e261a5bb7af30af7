/* SPDX-License-Identifier: Apache-2.0 */
/* net/decode.h - content codings undone piece by piece: gzip, deflate, br, zstd.
 *
 * Output comes in pieces of at most CN_DECODE_CHUNK bytes and stops when the taker
 * says so: a small input that grows a thousandfold waits, still compressed, until
 * the taker wants it.
 *
 * Threads: none of its own; the owner's. */
#ifndef CN_NET_DECODE_H
#define CN_NET_DECODE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define CN_DECODE_CHUNK 65536

struct cn_decode;
struct cn_holding;

/* What cn_decode_new() understands, for an Accept-Encoding header. */
#define CN_DECODE_ACCEPT "gzip, deflate, br, zstd"

/* `coding` is the value of a Content-Encoding header: a list, undone from its end,
 * of at most three. NULL if it is empty, "identity", or has one that is not known:
 * then the body is delivered as it is. */
/* `holding` is asked for the memory of the libraries until cn_decode_free(); NULL: nobody is. */
struct cn_decode *cn_decode_new(const char *coding, struct cn_holding *holding);
void cn_decode_free(struct cn_decode *decode);

/* Gives it more input; borrowed until cn_decode_next() has returned 0. Call it only
 * when that is so. */
void cn_decode_feed(struct cn_decode *decode, const void *bytes, size_t size);
/* The next piece of output: its size, with *bytes set (borrowed until the next call);
 * 0: all input is used up; CN_EPROTOCOL: damaged input; CN_ENOMEM. */
int cn_decode_next(struct cn_decode *decode, const uint8_t **bytes, struct cn_err *err);
/* After the last input: 0, or CN_EPROTOCOL if the coded data is incomplete. */
int cn_decode_finish(struct cn_decode *decode, struct cn_err *err);

#endif
