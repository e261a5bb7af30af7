/* SPDX-License-Identifier: Apache-2.0 */
/* Puts FILE into the program as NAME (NUL-terminated) with NAME_size beside it. */
#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)
    .section .rodata
    .global NAME
    .global GLUE(NAME, _size)
    .balign 16
NAME:
    .incbin FILE
GLUE(NAME, _end):
    .byte 0
    .balign 8
GLUE(NAME, _size):
    .quad GLUE(NAME, _end) - NAME
    .section .note.GNU-stack, "", %progbits
