/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prompt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

/* Up to the end of the line, or of the input. */
static int read_input(struct cn_buf *text, size_t size_max, bool one_line, struct cn_err *err)
{
    char bytes[4096];
    ssize_t count;
    while ((count = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0) {
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return cn_err_errno(err, errno, "standard input cannot be read");
        cn_buf_append(text, bytes, (size_t)count);
        if (text->size > size_max + 2)
            return cn_err_set(err, CN_ELIMIT, "that has more than %zu bytes", size_max);
        if (one_line && memchr(bytes, '\n', (size_t)count))
            break;
    }
    return 0;
}

char *cn_prompt_secret(const char *question, size_t size_max, struct cn_err *err)
{
    struct cn_buf text = {0};
    struct termios before, hidden;
    bool terminal = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
    if (terminal) {
        fprintf(stderr, "%s", question);
        hidden = before;
        hidden.c_lflag &= (tcflag_t)~ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden); /* then it is seen */
    }
    int rc = read_input(&text, size_max, terminal, err);
    if (terminal) {
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
        fprintf(stderr, "\n");
    }
    if (rc == 0 && text.size && text.data[text.size - 1] == '\n')
        text.size--;
    if (rc == 0 && text.size && text.data[text.size - 1] == '\r')
        text.size--;
    if (rc == 0 && text.size && memchr(text.data, 0, text.size))
        rc = cn_err_set(err, CN_EINVALID, "a NUL byte is no part of a text");
    cn_buf_text(&text);
    char *taken = (char *)cn_buf_take(&text);
    if (rc == 0)
        return taken;
    cn_free(taken);
    return NULL;
}
