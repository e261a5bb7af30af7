/* SPDX-License-Identifier: Apache-2.0 */
/* worker/profile.h - samples of where lanes spend their time, on their way to whoever asked.
 *
 *     asker                          each lane
 *     cn_server_profile(profile) ──► starts, and once a second gives what was sampled
 *     cn_server_profile_stop()   ──► gives the rest, and is done
 *     cn_profile_take() ◄── wake
 *
 *   Q1  What waits for the asker is bounded: past CN_PROFILE_WAITING_MAX bytes samples are dropped.
 *   Q2  Either side may go first: each lane has a reference until it is done, and one whose asker
 *       has left wakes nobody.
 *
 * Threads:   any.
 * Ownership: counted references. */
#ifndef CN_WORKER_PROFILE_H
#define CN_WORKER_PROFILE_H
#include <stdbool.h>

#include "base/buf.h"

struct cn_profile;

#define CN_PROFILE_WAITING_MAX (64u << 20)

/* `wake` runs on lanes whenever there is something to take. */
struct cn_profile *cn_profile_new(void (*wake)(void *data), void *data);
struct cn_profile *cn_profile_ref(struct cn_profile *profile);
void cn_profile_unref(struct cn_profile *profile); /* NULL is fine */
/* The asker: nobody is woken any more when this returns. */
void cn_profile_leave(struct cn_profile *profile);
/* The oldest piece, as js/profile.h has it, and its lane; false: there is none. */
bool cn_profile_take(struct cn_profile *profile, struct cn_buf *json, unsigned *lane);
/* Whether all lanes are done, and everything was taken. */
bool cn_profile_is_done(struct cn_profile *profile);

/* Whether a lane could not begin: the engine has no profiler. */
bool cn_profile_is_refused(struct cn_profile *profile);

/* --- lanes --- */
void cn_profile_refuse(struct cn_profile *profile);
void cn_profile_join(struct cn_profile *profile);
/* Takes over the buffer. */
void cn_profile_give(struct cn_profile *profile, unsigned lane, struct cn_buf *json);
void cn_profile_done(struct cn_profile *profile);

#endif
