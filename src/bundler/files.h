/* SPDX-License-Identifier: Apache-2.0 */
/* bundler/files.h - natives of the bundler that need nothing but their arguments: files, digests
 * and texts. A file that cannot be had is an exception whose `code` is that of Node.js.
 *
 * Threads: one. */
#ifndef CN_BUNDLER_FILES_H
#define CN_BUNDLER_FILES_H
#include "js/jsc.h"

/* Adds them to `object` as functions. */
void cn_bundler_files_install(JSContextRef ctx, JSObjectRef object);

#endif
