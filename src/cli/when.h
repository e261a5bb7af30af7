/* SPDX-License-Identifier: Apache-2.0 */
/* cli/when.h - a moment as people write it, for --time and the like.
 *
 *     2026-01-31T12:00:00.123Z   2026-01-31 12:00+01:00   20260131T120000Z   1769860800123
 *     2026-01-31 12:00   2026-01-31   10:00   yesterday 10:00   today   now   90 minutes ago
 *
 * Without a zone it is this machine's local time (TZ). A date alone is its first moment; a time
 * alone is today's. Milliseconds count from 1970.
 *
 * Threads: the command's. */
#ifndef CN_CLI_WHEN_H
#define CN_CLI_WHEN_H
#include <stdint.h>

struct cn_err;

#define CN_WHEN_HELP "2026-01-31T12:00:00Z, or local: \"2026-01-31 12:00\", \"yesterday 10:00\""

int cn_when_parse(const char *text, int64_t now_ms, int64_t *time_ms, struct cn_err *err);
/* As the server takes it: milliseconds since 1970, in digits. */
int cn_when_text(const char *text, char digits[24], struct cn_err *err);

#endif
