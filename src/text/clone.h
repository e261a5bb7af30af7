/* SPDX-License-Identifier: Apache-2.0 */
/* text/clone.h - the numbers of docs/reference/structured-clone.md, for those who read and write
 * it in C. */
#ifndef CN_TEXT_CLONE_H
#define CN_TEXT_CLONE_H

#define FORMAT_VERSION 1

enum {
    TAG_UNDEFINED = 0x00,
    TAG_NULL = 0x01,
    TAG_FALSE = 0x02,
    TAG_TRUE = 0x03,
    TAG_INT = 0x04,
    TAG_DOUBLE = 0x05,
    TAG_BIGINT = 0x06,
    TAG_BIGINT_NEGATIVE = 0x07,
    TAG_LATIN1 = 0x08,
    TAG_UTF16 = 0x09,
    TAG_REFERENCE = 0x0a,
    TAG_EXTERNAL = 0x0b,
    TAG_HOLE = 0x0c,
    TAG_OBJECT = 0x10,
    TAG_ARRAY = 0x11,
    TAG_ARRAY_WITH_KEYS = 0x12,
    TAG_DATE = 0x13,
    TAG_REGEXP = 0x14,
    TAG_MAP = 0x15,
    TAG_SET = 0x16,
    TAG_BOXED = 0x17,
    TAG_BUFFER = 0x18,
    TAG_BUFFER_RESIZABLE = 0x19,
    TAG_VIEW = 0x1a,
    TAG_VIEW_WHOLE = 0x1b,
    TAG_ERROR = 0x1c,
    TAG_DOM_EXCEPTION = 0x1d,
    TAG_HOST_FIRST = 0x20,
    TAG_HOST_TRANSFER = 0x20,
    /* What calls carry by reference (prelude/workers/object/rpc.js). */
    TAG_HOST_FUNCTION = 0x30,
    TAG_HOST_STREAM = 0x31,
    TAG_HOST_OBJECT = 0x35,
    TAG_HOST_SINK = 0x37,
    TAG_HOST_SIGNAL = 0x38,
    TAG_HOST_DISPOSABLE = 0x39,
    TAG_HOST_LAST = 0x3f,
    TAG_SHORT_STRING = 0x40,
    TAG_SMALL_INT = 0x80,
};

#define SHORT_STRING_MAX 31
#define SMALL_INT_MIN (-16)
#define SMALL_INT_MAX 111

enum { KEY_END, KEY_LATIN1, KEY_UTF16, KEY_REFERENCE };
enum { ERROR_HAS_MESSAGE = 1, ERROR_HAS_STACK = 2 };

#define VIEW_UINT8 1
#define VIEW_TRACKS_LENGTH 0x80

#endif
