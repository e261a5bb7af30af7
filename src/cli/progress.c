/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/print.h"

#define PATIENCE_NS 300000000u /* before it is shown */
#define REDRAW_NS 100000000u
#define WIDTH 30

void cn_progress_begin(struct cn_progress *progress, const char *label, uint64_t total, bool bytes)
{
    *progress = (struct cn_progress){.label = label, .total = total, .bytes = bytes};
    progress->terminal = isatty(STDERR_FILENO);
    progress->begun_ns = cn_clock_mono_ns(cn_clock_system());
}

static void draw(const struct cn_progress *progress)
{
    char done[32], total[32];
    if (progress->bytes) {
        cn_print_size(progress->done, done);
        cn_print_size(progress->total, total);
    } else {
        snprintf(done, sizeof(done), "%" PRIu64, progress->done);
        snprintf(total, sizeof(total), "%" PRIu64, progress->total);
    }
    fprintf(stderr, "\r\033[K%s ", progress->label);
    if (progress->total) {
        uint64_t most = progress->done < progress->total ? progress->done : progress->total;
        int full = (int)((double)most / (double)progress->total * WIDTH);
        fputc('[', stderr);
        for (int i = 0; i < WIDTH; i++)
            fputc(i < full ? '#' : '.', stderr);
        fprintf(stderr, "] %3d%% %s of %s", (int)((double)most / (double)progress->total * 100),
                done, total);
    } else {
        fputs(done, stderr);
    }
    fflush(stderr);
}

void cn_progress_add(struct cn_progress *progress, uint64_t count)
{
    progress->done += count;
    if (!progress->terminal)
        return;
    uint64_t now = cn_clock_mono_ns(cn_clock_system());
    if (now - progress->begun_ns < PATIENCE_NS || now - progress->drawn_ns < REDRAW_NS)
        return;
    progress->drawn_ns = now;
    progress->shown = true;
    draw(progress);
}

void cn_progress_end(struct cn_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
