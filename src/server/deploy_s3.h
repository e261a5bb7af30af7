/* SPDX-License-Identifier: Apache-2.0 */
/* server/deploy_s3.h - the S3-compatible endpoint: a script of the server's own for the host that
 * [cairn.s3] names, with the buckets of all projects. */
#ifndef CN_SERVER_DEPLOY_S3_H
#define CN_SERVER_DEPLOY_S3_H
#include <stddef.h>

struct cn_err;
struct cn_node;
struct cn_project;
struct cn_script;

/* *script is NULL if it is not asked for. */
int cn_deploy_s3(const struct cn_project *projects, size_t count, struct cn_node *node,
                 struct cn_script **script, struct cn_err *err);

#endif
