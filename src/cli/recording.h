/* SPDX-License-Identifier: Apache-2.0 */
/* cli/recording.h - requests that were recorded, one JSON object per line. Three forms are read:
 *
 *     {"event":"request","method","host","target","status","time"}        cairn tail --format json
 *     {"event":{"request":{"url","method","headers"},"response":{"status"}},"eventTimestamp"}
 *                                                          wrangler tail, trace items
 *     {"method","url","headers"?,"body"?|"bodyBase64"?,"status"?,"time"?}  plain
 *
 * The first two have no bodies: a request that had one is told apart by `body_missing`. Lines that
 * are no requests (messages, alarms) are not an error.
 *
 * Threads:   pure.
 * Ownership: a record owns its texts. */
#ifndef CN_CLI_RECORDING_H
#define CN_CLI_RECORDING_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct cn_record_header {
    char *name, *value; /* owned */
};

struct cn_record {
    char *method, *host; /* owned; host NULL: not known */
    char *target;        /* owned: path and query */
    struct cn_record_header *headers;
    size_t header_count;
    struct cn_buf body;
    bool body_missing; /* it had one, which was not recorded */
    int status;        /* 0: not recorded, or none */
    int64_t time_ms;   /* -1: not recorded, or no time */
};

/* 1: a request; 0: something else; negative: not readable. */
int cn_record_parse(struct cn_record *record, const char *line, size_t size, struct cn_err *err);
void cn_record_fini(struct cn_record *record);

#endif
