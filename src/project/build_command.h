/* SPDX-License-Identifier: Apache-2.0 */
/* project/build_command.h - `build.command`: what makes the sources that are bundled.
 *
 * B1  It runs with the programs of the packages that are installed in the
 *     folders of the project and above (node_modules/.bin) before all others.
 * B2  It does not run when nothing has changed: neither what it reads
 *     (`build.watch_dir`, or src) since before its last run, nor any file of the
 *     project since after it. Packages count by their lock file; folders whose
 *     names begin with a dot (the data directory), and `target`, do not count.
 * B3  When that cannot be told (too many files, the last run failed), it runs.
 *
 * Threads: as project/bundler.h: one at a time. */
#ifndef CN_PROJECT_BUILD_COMMAND_H
#define CN_PROJECT_BUILD_COMMAND_H
#include <stdbool.h>

struct cn_bundler;
struct cn_config;
struct cn_err;

/* Runs it, if it must. `memory` is the folder that remembers the last run; `always`: B2 does not
 * hold. A configuration without a command is done. */
int cn_build_command_run(struct cn_bundler *bundler, const struct cn_config *config,
                         const char *memory, bool always, struct cn_err *err);

#endif
