/* SPDX-License-Identifier: Apache-2.0 */
/* deploy/tell.h - what `cairn dev` says of the projects that it serves: a line for each of the
 * bindings, variables and secrets that their code finds on `env`.
 *
 *     hello has
 *       env.ROOM       Durable Object   Room
 *       env.DB         D1 database      shop
 *       env.GREETING   variable         "hello"
 *       env.API_KEY    secret           from .dev.vars
 *
 * Secrets are named, and their values never shown.
 *
 * Threads: any, beside cn_deployer_load(). */
#ifndef CN_DEPLOY_TELL_H
#define CN_DEPLOY_TELL_H

struct cn_buf;
struct cn_deployer;

/* Appends the lines; nothing for a project without any. */
void cn_deployer_tell(struct cn_deployer *deployer, struct cn_buf *out);

#endif
