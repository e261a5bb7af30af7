/* SPDX-License-Identifier: Apache-2.0 */
/* base/err.h - error codes and the sentence a person will read.
 *
 * Functions that can fail return int: 0 (or a count, or a descriptor) on
 * success, negative on failure. libuv's codes (UV_E..., which are -errno on
 * Linux) pass through unchanged; ours lie below -10000.
 *
 * The lowest function that knows what happened fills `struct cn_err`; those
 * above add context with cn_err_context() or pass it on. `err` may be NULL
 * everywhere: then only the code travels. */
#ifndef CN_BASE_ERR_H
#define CN_BASE_ERR_H

enum cn_err_code {
    CN_ECORRUPT = -10001,    /* bytes on disk that cannot be what we wrote */
    CN_EOVERLOADED = -10002, /* a bound was reached; try later */
    CN_ENOMEM = -10003,      /* an allocation whose size came from outside failed */
    CN_ELIMIT = -10004,      /* larger than a documented limit */
    CN_EINVALID = -10005,    /* malformed input */
    CN_ENOTFOUND = -10006,
    CN_EEXISTS = -10007,
    CN_EVERSION = -10008,  /* written by a newer version */
    CN_ELOCKED = -10009,   /* in use by another process */
    CN_EREADONLY = -10010, /* the store refuses writes (failed disk, full disk) */
    CN_ESQL = -10011,      /* an SQL statement failed; the text says why */
    CN_ECLOSED = -10012,   /* the thing was closed or reset meanwhile */
    CN_ETIMEOUT = -10013,
    CN_EABORTED = -10014,
    CN_EJS = -10015,          /* a JavaScript exception; the text is its message */
    CN_EPROTOCOL = -10016,    /* a peer broke its protocol */
    CN_EUNSUPPORTED = -10017, /* known, but not built */
    CN_ETLS = -10018,         /* a handshake failed or a certificate is not believed */
    CN_EDENIED = -10019,      /* forbidden by configuration */
    CN_EOLDER = -10020,       /* the other side knows less than it has told before */
};

/* With `code` it fills 512 bytes: errors are parts of messages, CN_ALLOC_CACHED_MAX. */
#define CN_ERR_TEXT_MAX 508

struct cn_err {
    int code; /* 0 while nothing failed */
    char text[CN_ERR_TEXT_MAX];
};

/* Fills `err` (unless NULL) and returns `code`, so that a failure is one line:
 *     return cn_err_set(err, CN_ECORRUPT, "%s: bad magic", name); */
int cn_err_set(struct cn_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Like cn_err_set() for a failed system call: appends strerror(errno_value);
 * returns -errno_value. */
int cn_err_errno(struct cn_err *err, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text that is there. Returns err->code. */
int cn_err_context(struct cn_err *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A short English name for any code of ours or of libuv. Static storage. */
const char *cn_err_name(int code);

#endif
