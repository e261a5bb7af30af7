/* SPDX-License-Identifier: Apache-2.0 */
/* config/frame.h - the line of a configuration that an error is about. Threads: any. */
#ifndef CN_CONFIG_FRAME_H
#define CN_CONFIG_FRAME_H

struct cn_buf;

/* Of an error "PATH:LINE:COLUMN: ..." whose file can be read: appends the line with its number and
 * a mark below the column. Else nothing. */
void cn_config_frame(const char *error, struct cn_buf *out);

#endif
