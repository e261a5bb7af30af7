/* SPDX-License-Identifier: Apache-2.0 */
/* Which process has a port or a file: ourselves, somebody else, nobody. */
#include "base/whose.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/lib/test.h"

static uint16_t listen_somewhere(int *fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    *fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(*fd >= 0);
    CHECK_INT(0, bind(*fd, (struct sockaddr *)&address, size));
    CHECK_INT(0, listen(*fd, 1));
    CHECK_INT(0, getsockname(*fd, (struct sockaddr *)&address, &size));
    return ntohs(address.sin_port);
}

static void check_ourselves(const char *text)
{
    char end[40];
    snprintf(end, sizeof(end), " (process %ld)", (long)getpid());
    CHECK(strlen(text) > strlen(end));
    CHECK_STR(end, text + strlen(text) - strlen(end));
}

TEST(whose, a_port_is_its_listeners)
{
    char text[CN_WHOSE_TEXT_MAX];
    int fd;
    uint16_t port = listen_somewhere(&fd);
    cn_whose_port(port, text);
    check_ourselves(text);
    close(fd);
    cn_whose_port(port, text);
    CHECK_STR("another process", text);
}

TEST(whose, a_file_is_whose_lock_it_has)
{
    char text[CN_WHOSE_TEXT_MAX], path[] = "/tmp/cairn-whose-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    cn_whose_lock(path, text);
    CHECK_STR("another process", text); /* nobody's */
    CHECK_INT(0, flock(fd, LOCK_EX | LOCK_NB));
    cn_whose_lock(path, text);
    check_ourselves(text);
    close(fd);
    unlink(path);
    cn_whose_lock(path, text);
    CHECK_STR("another process", text);
}
