/* SPDX-License-Identifier: Apache-2.0 */
/* worker/rollout.h - which version of a worker gets an event while several are rolled out
 * (script.h, R1 to R3).
 *
 * A request that names a version in Cloudflare-Workers-Version-Overrides gets it, whatever its
 * share, if the deployment has it; else one with a Cloudflare-Workers-Version-Key always gets the
 * version of that key; else chance decides. Events that come from inside the server stay with one
 * version for all calls of one request.
 *
 * Threads: the lane's. */
#ifndef CN_WORKER_ROLLOUT_H
#define CN_WORKER_ROLLOUT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cn_deployment;
struct cn_http_request;
struct cn_object_key;
struct cn_rand;

/* The place in the deployment of the version for this request; `first` is the worker's. */
size_t cn_rollout_request(const struct cn_deployment *deployment, size_t first,
                          const struct cn_http_request *http, struct cn_rand *rand);
/* For an event that another event caused; `request` is that one's number, 0: none. */
size_t cn_rollout_event(const struct cn_deployment *deployment, size_t first, uint64_t request,
                        struct cn_rand *rand);
/* For an object: the same one for as long as the shares stay (R3). */
size_t cn_rollout_object(const struct cn_deployment *deployment, size_t first,
                         const struct cn_object_key *key);
/* The version that a list of overrides, worker="id", ..., names for this worker: borrowed, NULL if
 * it names none. */
const char *cn_rollout_override(const char *text, size_t size, const char *worker, size_t *id_size);

#endif
