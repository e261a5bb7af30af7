/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/tls_rig.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

/* --- a certificate ---------------------------------------------------------------------- */

/* Writes a self-signed pair with this serial number to the test's directory. */
void rig_make_pair(long serial, char *cert_path, char *key_path, size_t path_size)
{
    snprintf(cert_path, path_size, "%s/cert%ld.pem", test_dir(), serial);
    snprintf(key_path, path_size, "%s/key%ld.pem", test_dir(), serial);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
    FILE *file = fopen(cert_path, "w");
    CHECK(file && PEM_write_X509(file, cert) == 1 && fclose(file) == 0);
    file = fopen(key_path, "w");
    CHECK(file && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 &&
          fclose(file) == 0);
    X509_free(cert);
    EVP_PKEY_free(key);
}

/* --- a client --------------------------------------------------------------------------- */

void rig_tls_connect(struct rig *rig, struct rig_tls *client, int version_max)
{
    memset(client, 0, sizeof(*client));
    client->context = SSL_CTX_new(TLS_client_method());
    if (version_max) {
        SSL_CTX_set_security_level(client->context, 0);
        SSL_CTX_set_min_proto_version(client->context, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(client->context, version_max);
    }
    client->ssl = SSL_new(client->context);
    client->input = BIO_new(BIO_s_mem());
    client->output = BIO_new(BIO_s_mem());
    SSL_set_bio(client->ssl, client->input, client->output);
    SSL_set_connect_state(client->ssl);
    static const unsigned char protocols[] = "\x02h2\x08http/1.1";
    SSL_set_alpn_protos(client->ssl, protocols, sizeof(protocols) - 1);
    rig_connect(rig, &client->raw);
}

/* Moves bytes between the socket and OpenSSL. Returns true, to be used in conditions. */
bool rig_tls_step(struct rig_tls *client)
{
    struct cn_buf *raw = &client->raw.got;
    if (raw->size > 0) {
        CHECK_INT((long long)raw->size, BIO_write(client->input, raw->data, (int)raw->size));
        cn_buf_clear(raw);
    }
    char bytes[16384];
    int count;
    while ((count = SSL_read(client->ssl, bytes, sizeof(bytes))) > 0)
        cn_buf_append(&client->got, bytes, (size_t)count);
    client->notified |= (SSL_get_shutdown(client->ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
    char *out;
    long size = BIO_get_mem_data(client->output, &out);
    if (size > 0) {
        size_t sent = rig_send_some(&client->raw, out, (size_t)size);
        char drop[16384];
        while (sent > 0) {
            size_t part = sent < sizeof(drop) ? sent : sizeof(drop);
            BIO_read(client->output, drop, (int)part);
            sent -= part;
        }
    }
    return true;
}

bool rig_tls_has(struct rig_tls *client, const char *part)
{
    rig_tls_step(client);
    return strstr(cn_buf_text(&client->got), part) != NULL;
}

void rig_tls_send(struct rig_tls *client, const void *bytes, size_t size)
{
    CHECK_INT((long long)size, SSL_write(client->ssl, bytes, (int)size));
    rig_tls_step(client);
}

void rig_tls_disconnect(struct rig_tls *client)
{
    rig_disconnect(&client->raw);
    SSL_free(client->ssl);
    SSL_CTX_free(client->context);
    cn_buf_fini(&client->got);
}

void rig_tls_handshake(struct rig *rig, struct rig_tls *client)
{
    RIG_UNTIL(rig, rig_tls_step(client) && SSL_is_init_finished(client->ssl));
}
