/* SPDX-License-Identifier: Apache-2.0 */
/* store/imagefile.c - the files of images: their names, and the few that are open.
 *
 * Descriptors are bounded by open_files_max, whatever the number of databases:
 * the one least recently used is closed for a new one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/image_private.h"
#include "text/hex.h"

/* ---- Names ---- */

void cn_image_path(const struct cn_object_key *key, char path[CN_IMAGE_PATH_MAX])
{
    char hex[2 * CN_OBJECT_ID_SIZE + 1];
    cn_hex_encode(key->id, CN_OBJECT_ID_SIZE, hex);
    snprintf(path, CN_IMAGE_PATH_MAX, "objects/%08" PRIx32 "/%.2s/%s.db", key->namespace_id, hex,
             hex);
}

void cn_image_aside_path(const struct cn_object_key *key, uint64_t lsn,
                         char path[CN_IMAGE_PATH_MAX])
{
    char hex[2 * CN_OBJECT_ID_SIZE + 1];
    cn_hex_encode(key->id, CN_OBJECT_ID_SIZE, hex);
    snprintf(path, CN_IMAGE_PATH_MAX, "aside/%016" PRIx64 "-%08" PRIx32 "-%s.db", lsn,
             key->namespace_id, hex);
}

bool cn_image_aside_parse(const char *name, struct cn_object_key *key, uint64_t *lsn)
{
    char again[CN_IMAGE_PATH_MAX];
    unsigned long long number;
    unsigned namespace_id;
    char hex[2 * CN_OBJECT_ID_SIZE + 1];
    if (sscanf(name, "%16llx-%8x-%64[0-9a-f].db", &number, &namespace_id, hex) != 3 ||
        strlen(hex) != 2 * CN_OBJECT_ID_SIZE)
        return false;
    key->namespace_id = namespace_id;
    for (int i = 0; i < CN_OBJECT_ID_SIZE; i++) {
        char byte[3] = {hex[2 * i], hex[2 * i + 1], 0};
        key->id[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
    *lsn = number;
    cn_image_aside_path(key, *lsn, again);
    return strcmp(again + strlen("aside/"), name) == 0;
}

int cn_image_file_create(struct cn_disk *disk, const struct cn_object_key *key,
                         struct cn_disk_file **file, bool *made)
{
    char path[CN_IMAGE_PATH_MAX];
    cn_image_path(key, path);
    *made = false;
    int rc = cn_disk_open(disk, path, 0, file);
    if (rc != -ENOENT)
        return rc;
    *made = true;
    rc = cn_disk_open(disk, path, CN_DISK_CREATE, file);
    if (rc != -ENOENT)
        return rc;
    /* The folders are missing: objects/<namespace>, then objects/<namespace>/<byte>. */
    for (char *slash = strchr(path + strlen("objects/"), '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        rc = cn_disk_mkdir(disk, path);
        *slash = '/';
        if (rc < 0)
            return rc;
    }
    return cn_disk_open(disk, path, CN_DISK_CREATE, file);
}

/* ---- The files that are open ---- */

/* Closes the file least recently used, if there are too many. Under images->lock;
 * returns the file for the caller to close. */
static struct cn_disk_file *file_evict(struct cn_images *images)
{
    const struct cn_images_budget *budget = images->config.budget;
    bool over = budget && atomic_load_explicit(&budget->open_files, memory_order_relaxed) >
                              budget->open_files_max;
    if (images->open_files <= images->config.open_files_max && !over)
        return NULL;
    for (struct cn_list *link = images->files.prev; link != &images->files; link = link->prev) {
        struct cn_image *image = CN_CONTAINER_OF(link, struct cn_image, file_link);
        if (image->file_users > 0)
            continue;
        struct cn_disk_file *file = image->file;
        image->file = NULL;
        cn_list_remove(&image->file_link);
        cn_images_count_files(images, -1);
        return file;
    }
    return NULL; /* all in use: at most one per thread */
}

int cn_image_file_use(struct cn_image *image, bool create, struct cn_disk_file **file)
{
    struct cn_images *images = image->images;
    pthread_mutex_lock(&images->lock);
    if (image->file) {
        if (image->file_users++ == 0) {
            cn_list_remove(&image->file_link);
            cn_list_push_front(&images->files, &image->file_link);
        }
        *file = image->file;
        pthread_mutex_unlock(&images->lock);
        return 0;
    }
    pthread_mutex_unlock(&images->lock);

    bool made = false;
    struct cn_disk_file *opened;
    int rc;
    if (create) {
        rc = cn_image_file_create(images->config.disk, &image->key, &opened, &made);
    } else {
        char path[CN_IMAGE_PATH_MAX];
        cn_image_path(&image->key, path);
        rc = cn_disk_open(images->config.disk, path, 0, &opened);
    }
    if (rc < 0)
        return rc;

    pthread_mutex_lock(&images->lock);
    struct cn_disk_file *surplus = NULL;
    if (image->file) {
        surplus = opened; /* another thread was faster */
    } else {
        image->file = opened;
        cn_images_count_files(images, 1);
        cn_list_push_front(&images->files, &image->file_link);
    }
    image->file_users++;
    images->names_unsynced |= made;
    *file = image->file;
    if (!surplus)
        surplus = file_evict(images);
    pthread_mutex_unlock(&images->lock);
    if (surplus)
        cn_disk_close(surplus);
    return 0;
}

void cn_image_file_done(struct cn_image *image)
{
    pthread_mutex_lock(&image->images->lock);
    CN_ASSERT(image->file_users > 0);
    image->file_users--;
    pthread_mutex_unlock(&image->images->lock);
}

void cn_image_file_forget(struct cn_image *image)
{
    struct cn_images *images = image->images;
    pthread_mutex_lock(&images->lock);
    CN_ASSERT(image->file_users == 0);
    struct cn_disk_file *file = image->file;
    if (file) {
        image->file = NULL;
        cn_list_remove(&image->file_link);
        cn_images_count_files(images, -1);
    }
    pthread_mutex_unlock(&images->lock);
    if (file)
        cn_disk_close(file);
}
