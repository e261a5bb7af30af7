/* SPDX-License-Identifier: Apache-2.0 */
/* test/cluster/stranger.c - one who speaks TLS 1.3 by a key of his own to the port of a node's
 * peers, and says what he is told to: `stranger HOST PORT KEY [deaf]`, KEY in hexadecimal digits,
 * "-": he has none.
 *
 * On stderr: "secure" when the handshake is done, then "ended" with why the connection is over,
 * which ends the program. What comes on stdin is sent; what comes from the node goes to stdout. One
 * who is deaf reads nothing once he is secure, and sends on. Knows nothing of the server's code:
 * what it says here is what docs and headers say of the protocol. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEY_SIZE = 32 };
static unsigned char key[KEY_SIZE];

static void end(const char *why)
{
    fprintf(stderr, "ended: %s\n", why);
    exit(0);
}

static void refuse(const char *what)
{
    fprintf(stderr, "stranger: %s\n", what);
    exit(2);
}

static int offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **name, size_t *name_size,
                     SSL_SESSION **session)
{
    static const unsigned char cipher[] = {0x13, 0x02}; /* TLS_AES_256_GCM_SHA384 */
    (void)digest;
    *session = SSL_SESSION_new();
    *name = (const unsigned char *)"cairn";
    *name_size = 5;
    return SSL_SESSION_set1_master_key(*session, key, KEY_SIZE) == 1 &&
           SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, cipher)) == 1 &&
           SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION) == 1;
}

static int dial(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        refuse("no such address");
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0)
        end(strerror(errno));
    freeaddrinfo(found);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static SSL *greet(int fd, bool has_key)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (has_key) {
        SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
        SSL_CTX_set_ciphersuites(context, "TLS_AES_256_GCM_SHA384");
        SSL_CTX_set_psk_use_session_callback(context, offer_key);
    }
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    return ssl;
}

/* Whether it is to be tried again when the socket is ready; ends the program if it is over. */
static void check(SSL *ssl, int rc)
{
    int error = SSL_get_error(ssl, rc);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return;
    unsigned long code = ERR_peek_error();
    if (error == SSL_ERROR_ZERO_RETURN)
        end("closed");
    end(code ? ERR_reason_error_string(code) : "the connection was closed");
}

static void relay(SSL *ssl, int fd, bool deaf)
{
    static unsigned char out[1 << 16], in[1 << 16];
    size_t at = 0, size = 0;
    bool more = true;
    for (;;) {
        short events = (short)((deaf ? 0 : POLLIN) | (at < size ? POLLOUT : 0));
        struct pollfd polled[] = {{.fd = fd, .events = events},
                                  {.fd = at == size && more ? 0 : -1, .events = POLLIN}};
        poll(polled, 2, -1);
        if (polled[0].revents & (POLLERR | POLLHUP) && deaf)
            end("the connection was closed");
        for (int got; !deaf && polled[0].revents;) {
            ERR_clear_error();
            got = SSL_read(ssl, in, sizeof(in));
            if (got <= 0) {
                check(ssl, got);
                break;
            }
            if (write(1, in, (size_t)got) != got)
                exit(1);
        }
        if (polled[1].revents) {
            ssize_t got = read(0, out, sizeof(out));
            at = 0;
            size = got > 0 ? (size_t)got : 0;
            more = got > 0;
        }
        if (at < size) {
            ERR_clear_error();
            int sent = SSL_write(ssl, out + at, (int)(size - at));
            if (sent > 0)
                at += (size_t)sent;
            else
                check(ssl, sent);
        }
    }
}

int main(int argc, char **argv)
{
    bool has_key = argc > 3 && strcmp(argv[3], "-") != 0;
    if (argc < 4 || (has_key && strlen(argv[3]) != 2 * KEY_SIZE))
        refuse("usage: stranger HOST PORT KEY [deaf]");
    for (size_t i = 0; i < KEY_SIZE && has_key; i++)
        sscanf(argv[3] + 2 * i, "%2hhx", &key[i]);
    int fd = dial(argv[1], argv[2]);
    SSL *ssl = greet(fd, has_key);
    for (int rc; (rc = SSL_connect(ssl)) != 1;) {
        check(ssl, rc);
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
        ERR_clear_error();
    }
    fprintf(stderr, "secure\n");
    relay(ssl, fd, argc > 4);
}
