/* SPDX-License-Identifier: Apache-2.0 */
/* cli/api.h - how a command reaches a data directory: through the server that has it, or itself.
 *
 * If a server answers on DATA/control.sock, calls go there. If none does, the
 * directory is opened, which takes its lock, and the same calls run in this process
 * (admin/control.h). Commands cannot tell the difference.
 *
 * Ownership: the struct owns what it opens. */
#ifndef CN_CLI_API_H
#define CN_CLI_API_H
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "server/offline.h"

struct cn_offline_lane;

struct cn_api {
    char *path;                   /* of the data directory, owned */
    struct cn_offline dir;        /* opened only if no server has it */
    struct cn_offline_lane *lane; /* then: started when a service is first asked; owned */
    bool online;
};

/* A body that is sent as it comes. */
struct cn_api_body {
    int64_t size; /* -1: not known before */
    /* The next piece; 0: it has ended. */
    int64_t (*read)(void *data, void *bytes, size_t size, struct cn_err *err);
    void *data;
};

/* Bytes as a body: cn_api_read_bytes() reads from one. */
struct cn_api_bytes {
    const char *at;
    size_t left;
};
int64_t cn_api_read_bytes(void *data, void *bytes, size_t size, struct cn_err *err);

/* `data` is what --data says, or NULL. With `readonly` the calls to come change nothing: a
 * directory is then opened in memory only. */
int cn_api_open(struct cn_api *api, const char *data, bool readonly, struct cn_err *err);
/* Only to a server; CN_ENOTFOUND with a sentence if none runs. */
int cn_api_connect(struct cn_api *api, const char *data, struct cn_err *err);
void cn_api_close(struct cn_api *api);

/* Makes a call. `body` is JSON, or NULL. On success the answer, which the caller frees; on failure
 * the sentence of the API. */
int cn_api_call(struct cn_api *api, const char *method, const char *target, const char *body,
                struct cn_json **answer, struct cn_err *err);
/* The same for an answer that is no JSON: goes to `write` as it comes. */
int cn_api_fetch(struct cn_api *api, const char *target,
                 int (*write)(void *data, const void *bytes, size_t size, struct cn_err *err),
                 void *data, struct cn_err *err);
/* The same by another method, without a body. `write` may make calls. */
int cn_api_stream(struct cn_api *api, const char *method, const char *target,
                  int (*write)(void *data, const void *bytes, size_t size, struct cn_err *err),
                  void *data, struct cn_err *err);
/* The same with a PUT of a body that is no JSON. */
int cn_api_put(struct cn_api *api, const char *target, const struct cn_api_body *body,
               struct cn_json **answer, struct cn_err *err);

/* Appends "NAME=" (unless NULL) and a text with percent-encoding. */
void cn_api_append_param(struct cn_buf *target, const char *name, const char *value);
void cn_api_append_bytes(struct cn_buf *target, const void *bytes, size_t size);

#endif
