/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/tls_rig.h - clients of test/lib/http_rig.h that speak TLS, and certificates for them. */
#ifndef CN_TEST_TLS_RIG_H
#define CN_TEST_TLS_RIG_H
#include <openssl/ssl.h>

#include "test/lib/http_rig.h"

/* Writes a self-signed pair with this serial number to the test's directory. */
void rig_make_pair(long serial, char *cert_path, char *key_path, size_t path_size);

struct rig_tls {
    struct rig_client raw;
    SSL_CTX *context;
    SSL *ssl;
    BIO *input, *output;
    struct cn_buf got; /* decrypted */
    bool notified;     /* close_notify has come */
};

/* `version_max` 0: whatever OpenSSL has. */
void rig_tls_connect(struct rig *rig, struct rig_tls *client, int version_max);
/* Moves bytes between the socket and OpenSSL. Returns true, to be used in conditions. */
bool rig_tls_step(struct rig_tls *client);
void rig_tls_handshake(struct rig *rig, struct rig_tls *client);
bool rig_tls_has(struct rig_tls *client, const char *part);
void rig_tls_send(struct rig_tls *client, const void *bytes, size_t size);
void rig_tls_disconnect(struct rig_tls *client);

#endif
