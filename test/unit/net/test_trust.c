/* SPDX-License-Identifier: Apache-2.0 */
/* Which certificates are believed: files that are none are refused with their name. Whether a peer
 * is checked against them is in test_client.c and test_socket.c. */
#include "net/trust.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "test/lib/origin.h"
#include "test/lib/test.h"

static const char *file_with(const char *text)
{
    static char path[300];
    snprintf(path, sizeof(path), "%s/ca.pem", test_dir());
    FILE *file = fopen(path, "w");
    CHECK(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static const char *refusal(const char *path)
{
    static struct cn_err err;
    CHECK(!cn_trust_new(path, &err));
    CHECK_INT(CN_EINVALID, err.code);
    CHECK(strncmp(err.text, path, strlen(path)) == 0);
    return err.text + strlen(path);
}

TEST(trust, a_file_without_certificates_is_refused)
{
    CHECK(strstr(refusal("/nowhere/ca.pem"), "No such file or directory"));
    CHECK(strstr(refusal(file_with("")), "no certificates can be read from it"));
    CHECK(strstr(refusal(file_with("-----BEGIN CERTIFICATE-----\nnonsense\n")), "no certificates"));
    CHECK_INT(0, ERR_peek_error()); /* nothing is left for the next to stumble over */
}

TEST(trust, its_context_checks_peers_and_speaks_no_tls_below_1_2)
{
    char cert[300], key[300];
    struct cn_err err;
    snprintf(cert, sizeof(cert), "%s/own.pem", test_dir());
    snprintf(key, sizeof(key), "%s/own.key", test_dir());
    origin_write_cert(cert, key);
    struct cn_trust *trust = cn_trust_new(cert, &err);
    CHECK(trust);
    SSL_CTX *context = cn_trust_context(trust);
    CHECK(context == cn_trust_context(trust));
    CHECK_INT(SSL_VERIFY_PEER, SSL_CTX_get_verify_mode(context));
    CHECK_INT(TLS1_2_VERSION, SSL_CTX_get_min_proto_version(context));
    SSL_CTX *other = SSL_CTX_new(TLS_client_method());
    cn_trust_apply(trust, other);
    CHECK_INT(SSL_VERIFY_PEER, SSL_CTX_get_verify_mode(other));
    CHECK(SSL_CTX_get_cert_store(other) == SSL_CTX_get_cert_store(context));
    cn_trust_free(trust); /* the other has a reference of its own */
    CHECK(SSL_CTX_get_cert_store(other));
    SSL_CTX_free(other);
    cn_trust_free(NULL);
}
