/* SPDX-License-Identifier: Apache-2.0 */
/* cli/progress.h - a bar on standard error while a command works for long; nothing if that is no
 * terminal, or if the work is over within a moment. */
#ifndef CN_CLI_PROGRESS_H
#define CN_CLI_PROGRESS_H
#include <stdbool.h>
#include <stdint.h>

struct cn_progress {
    const char *label;
    uint64_t done, total; /* total 0: not known */
    bool bytes;           /* what is counted */
    bool terminal, shown;
    uint64_t begun_ns, drawn_ns;
};

void cn_progress_begin(struct cn_progress *progress, const char *label, uint64_t total, bool bytes);
void cn_progress_add(struct cn_progress *progress, uint64_t count);
/* Takes the bar away. */
void cn_progress_end(struct cn_progress *progress);

#endif
