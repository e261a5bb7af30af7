/* SPDX-License-Identifier: Apache-2.0 */
/* server/enter_sandbox.h - puts a server into the sandbox (base/sandbox.h), with a process outside
 * of it that builds (monitor.h): which files a server needs.
 *
 *   read   the projects' folders and their folders of assets, the other projects' data directories
 *          (bundles), cairn's own files, and the folders of certificates, which a reload reads
 *          again
 *   write  the data directory, and what --sandbox-write names
 *
 *   E1  What a process outside does for this one is not decided by anything that this one can
 *       write: by no file of the data directory, and by no message but "build" (bundler.h U1).
 *   E2  The UNIX sockets of a server (control.sock, the service manager's) are made before.
 *
 * Threads: the main one, before any other exists. */
#ifndef CN_SERVER_ENTER_SANDBOX_H
#define CN_SERVER_ENTER_SANDBOX_H

struct cn_deployer;
struct cn_err;
struct cn_monitor;
struct cn_run_options;

/* Starts the monitor, gives it to the deployer and enters. The projects are open. E2: `*control_fd`
 * becomes that of cn_admin_bind(). */
int cn_enter_sandbox(struct cn_monitor *monitor, struct cn_deployer *deployer,
                     const struct cn_run_options *options, int *control_fd, struct cn_err *err);

#endif
