/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/profile.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/mem.h"

struct piece {
    struct cn_list link;
    struct cn_buf json;
    unsigned lane;
};

struct cn_profile {
    atomic_uint refs;
    pthread_mutex_t lock; /* guards what follows */
    void (*wake)(void *data);
    void *data;
    struct cn_list pieces; /* of struct piece, oldest first */
    size_t bytes;
    unsigned lanes; /* that are not done */
    bool left, refused;
};

struct cn_profile *cn_profile_new(void (*wake)(void *data), void *data)
{
    struct cn_profile *profile = CN_NEW(struct cn_profile);
    atomic_init(&profile->refs, 1);
    pthread_mutex_init(&profile->lock, NULL);
    cn_list_init(&profile->pieces);
    profile->wake = wake;
    profile->data = data;
    return profile;
}

struct cn_profile *cn_profile_ref(struct cn_profile *profile)
{
    atomic_fetch_add(&profile->refs, 1);
    return profile;
}

bool cn_profile_take(struct cn_profile *profile, struct cn_buf *json, unsigned *lane)
{
    pthread_mutex_lock(&profile->lock);
    struct cn_list *node = cn_list_take_front(&profile->pieces);
    struct piece *piece = node ? CN_CONTAINER_OF(node, struct piece, link) : NULL;
    if (piece) {
        *json = piece->json;
        *lane = piece->lane;
        profile->bytes -= piece->json.size;
    }
    pthread_mutex_unlock(&profile->lock);
    cn_free(piece);
    return node != NULL;
}

void cn_profile_unref(struct cn_profile *profile)
{
    struct cn_buf json;
    unsigned lane;
    if (!profile || atomic_fetch_sub(&profile->refs, 1) != 1)
        return;
    while (cn_profile_take(profile, &json, &lane))
        cn_buf_fini(&json);
    pthread_mutex_destroy(&profile->lock);
    cn_free(profile);
}

void cn_profile_leave(struct cn_profile *profile)
{
    pthread_mutex_lock(&profile->lock);
    profile->left = true;
    pthread_mutex_unlock(&profile->lock);
}

bool cn_profile_is_done(struct cn_profile *profile)
{
    pthread_mutex_lock(&profile->lock);
    bool done = profile->lanes == 0 && cn_list_empty(&profile->pieces);
    pthread_mutex_unlock(&profile->lock);
    return done;
}

bool cn_profile_is_refused(struct cn_profile *profile)
{
    pthread_mutex_lock(&profile->lock);
    bool refused = profile->refused;
    pthread_mutex_unlock(&profile->lock);
    return refused;
}

void cn_profile_refuse(struct cn_profile *profile)
{
    pthread_mutex_lock(&profile->lock);
    profile->refused = true;
    pthread_mutex_unlock(&profile->lock);
}

void cn_profile_join(struct cn_profile *profile)
{
    pthread_mutex_lock(&profile->lock);
    profile->lanes++;
    pthread_mutex_unlock(&profile->lock);
}

void cn_profile_give(struct cn_profile *profile, unsigned lane, struct cn_buf *json)
{
    pthread_mutex_lock(&profile->lock);
    bool wanted = !profile->left && json->size <= CN_PROFILE_WAITING_MAX - profile->bytes; /* Q1 */
    if (wanted) {
        struct piece *piece = CN_NEW(struct piece);
        piece->json = *json;
        piece->lane = lane;
        *json = (struct cn_buf){0};
        profile->bytes += piece->json.size;
        cn_list_push_back(&profile->pieces, &piece->link);
        profile->wake(profile->data);
    }
    pthread_mutex_unlock(&profile->lock);
    cn_buf_fini(json);
}

void cn_profile_done(struct cn_profile *profile)
{
    pthread_mutex_lock(&profile->lock);
    profile->lanes--;
    if (!profile->left)
        profile->wake(profile->data);
    pthread_mutex_unlock(&profile->lock);
}
