/* SPDX-License-Identifier: Apache-2.0 */
/* The administration's two listeners, without a server behind them: who is let in, what is answered
 * on the loop, how many calls run, and how it ends (A1 to A4 of admin/admin.h). */
#include "admin/admin.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "test/lib/test.h"

#define TOKEN "a-token-of-the-test"

static const char *dir;
static struct cn_admin *admin;
static struct cn_buf got;

static struct cn_admin *start(const struct cn_admin_options *options)
{
    struct cn_admin *started = NULL;
    struct cn_err err = {0};
    if (cn_admin_start(options, &started, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    return started;
}

static void begin(void)
{
    dir = test_dir();
    struct cn_admin_options options = {
        .socket_dir = dir, .host = "127.0.0.1", .port = 0, .token = TOKEN};
    admin = start(&options);
    CHECK(cn_admin_port(admin) > 0);
}

static void end(void)
{
    cn_admin_stop(admin);
    admin = NULL;
    cn_buf_fini(&got);
}

/* --- clients -----------------------------------------------------------------------------------
 */

static int connect_tcp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(cn_admin_port(admin))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static int connect_socket(void)
{
    int fd = cn_admin_socket(dir, "control.sock", false);
    CHECK(fd >= 0);
    return fd;
}

static void say(int fd, const char *request)
{
    size_t size = strlen(request);
    CHECK_INT(size, write(fd, request, size));
}

/* Reads until the text is there, or the other side has ended; true: it is. */
static bool read_until(int fd, const char *text)
{
    cn_buf_clear(&got);
    while (!text || !strstr(cn_buf_text(&got), text)) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        char bytes[4096];
        CHECK(poll(&ready, 1, 30000) == 1);
        ssize_t count = read(fd, bytes, sizeof(bytes));
        if (count <= 0)
            return false;
        cn_buf_append(&got, bytes, (size_t)count);
    }
    return true;
}

/* The status of the answer; `got` has all of it. */
static int ask(int fd, const char *method, const char *path, const char *fields)
{
    struct cn_buf request = {0};
    cn_buf_printf(&request, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s\r\n",
                  method, path, fields);
    say(fd, cn_buf_text(&request));
    cn_buf_fini(&request);
    (void)read_until(fd, NULL);
    close(fd);
    int status = 0;
    CHECK(sscanf(cn_buf_text(&got), "HTTP/1.1 %d ", &status) == 1);
    return status;
}

static bool has(const char *text)
{
    return strstr(cn_buf_text(&got), text) != NULL;
}

#define AUTHORIZED "Authorization: Bearer " TOKEN "\r\n"

/* --- who is let in ------------------------------------------------------------------------------
 */

static const struct {
    const char *path;
    bool open; /* to whoever reaches the port of a loopback address */
} paths[] = {
    {"/healthz", true},         {"/metrics", true},          {"/healthz?x", true},
    {"/openapi.json", false},   {"/api/address", false},     {"/api/recent", false},
    {"/api/memory", false},     {"/api/nothing", false},     {"/healthzz", false},
    {"/api/tails", false},      {"//healthz//", true},       {"//api///memory/", false},
    {"/client/v4/user", false}, {"//client/v4/user", false}, {"/client//v4/user/", false},
};

TEST(admin, A1_the_socket_asks_nothing_and_the_port_for_the_token)
{
    begin();
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int on_socket = ask(connect_socket(), "GET", paths[i].path, "");
        CHECK(on_socket == 200 || on_socket == 404);
        int with = ask(connect_tcp(), "GET", paths[i].path, AUTHORIZED);
        CHECK_INT(on_socket, with);
        int without = ask(connect_tcp(), "GET", paths[i].path, "");
        if (without != (paths[i].open ? on_socket : 401))
            test_fail(__FILE__, __LINE__, "%s: %d", paths[i].path, without);
        CHECK(paths[i].open || has("www-authenticate: Bearer"));
        CHECK(!has(TOKEN));
    }
    end();
}

TEST(admin, A1_the_file_of_the_socket_is_its_owners_and_goes_with_the_server)
{
    begin();
    char path[256];
    struct stat status;
    snprintf(path, sizeof(path), "%s/control.sock", dir);
    CHECK_INT(0, stat(path, &status));
    CHECK(S_ISSOCK(status.st_mode));
    CHECK_INT(0600, status.st_mode & 0777);
    end();
    CHECK(stat(path, &status) < 0 && errno == ENOENT);
}

/* A folder whose path is longer than the address of a socket can be. */
TEST(admin, a_long_path_is_no_obstacle)
{
    char path[600];
    int at = snprintf(path, sizeof(path), "%s", test_dir());
    for (int i = 0; i < 4; i++) {
        at += snprintf(path + at, sizeof(path) - (size_t)at, "/%0100d", i);
        CHECK_INT(0, mkdir(path, 0700));
    }
    CHECK(strlen(path) > sizeof(((struct sockaddr_un *)0)->sun_path) * 3);
    dir = path;
    struct cn_admin_options options = {.socket_dir = path};
    admin = start(&options);
    CHECK_INT(0, cn_admin_port(admin)); /* no other listener was asked for */
    CHECK_INT(200, ask(connect_socket(), "GET", "/healthz", ""));
    CHECK_INT(404, ask(connect_socket(), "GET", "/api/address", ""));
    end();
    CHECK_INT(-ENOENT, cn_admin_socket(path, "control.sock", false));
    CHECK_INT(-ENOENT, cn_admin_socket("/nowhere/at/all", "control.sock", true));
}

/* What a server that was killed has left is taken over; one that answers is not. */
TEST(admin, A2_a_socket_that_answers_is_not_taken_from_its_server)
{
    dir = test_dir();
    int dead = cn_admin_socket(dir, "control.sock", true);
    CHECK(dead >= 0);
    close(dead);
    struct cn_admin_options options = {.socket_dir = dir, .host = "127.0.0.1", .token = TOKEN};
    admin = start(&options);
    CHECK_INT(200, ask(connect_socket(), "GET", "/healthz", ""));
    struct cn_admin *second = start(&options); /* a warning, and no socket */
    cn_admin_stop(second);
    CHECK_INT(200, ask(connect_socket(), "GET", "/healthz", "")); /* it is still the first one's */
    end();
}

TEST(admin, A2_a_port_that_is_taken_is_an_error_or_a_warning)
{
    begin();
    struct cn_admin_options options = {
        .host = "127.0.0.1", .port = cn_admin_port(admin), .token = TOKEN};
    struct cn_admin *second = NULL;
    struct cn_err err = {0};
    CHECK_INT(-EADDRINUSE, cn_admin_start(&options, &second, &err));
    CHECK(!second && strstr(err.text, "admin listener"));
    options.port_optional = true;
    second = start(&options);
    CHECK_INT(0, cn_admin_port(second));
    cn_admin_stop(second);
    cn_admin_stop(NULL);
    end();
}

/* --- answers -------------------------------------------------------------------------------------
 */

TEST(admin, ready_is_who_serves)
{
    begin();
    CHECK_INT(503, ask(connect_tcp(), "GET", "/readyz", ""));
    CHECK(has("starting\n"));
    cn_admin_set_state(admin, CN_ADMIN_SERVING);
    CHECK_INT(200, ask(connect_tcp(), "GET", "/readyz", ""));
    CHECK(has("ready\n"));
    cn_admin_set_state(admin, CN_ADMIN_DRAINING);
    CHECK_INT(503, ask(connect_tcp(), "GET", "/readyz", ""));
    CHECK(has("draining\n"));
    CHECK_INT(200, ask(connect_tcp(), "GET", "/healthz", "")); /* it still answers */
    cn_admin_set_state(NULL, CN_ADMIN_SERVING);
    end();
}

TEST(admin, pages_are_read_and_nothing_else)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"};
    begin();
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        CHECK_INT(405, ask(connect_tcp(), methods[i], "/healthz", "Content-Length: 0\r\n"));
        CHECK_INT(405, ask(connect_socket(), methods[i], "/api/tail", "Content-Length: 0\r\n"));
    }
    CHECK_INT(200, ask(connect_tcp(), "HEAD", "/healthz", ""));
    CHECK(!has("ok\n"));
    /* One that never ends has no head of its own: it would never be over. */
    CHECK_INT(405, ask(connect_socket(), "HEAD", "/api/tail", ""));
    end();
}

static struct cn_json *body(void)
{
    struct cn_err err;
    const char *at = strstr(cn_buf_text(&got), "\r\n\r\n");
    CHECK(at);
    struct cn_json *json = cn_json_parse(at + 4, strlen(at + 4), &err);
    CHECK(json);
    return json;
}

TEST(admin, answers_are_json_that_nobody_keeps)
{
    static const char *const documents[] = {"/api/recent", "/api/memory", "/openapi.json",
                                            "/api/address"};
    begin();
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        CHECK_INT(200, ask(connect_socket(), "GET", documents[i], ""));
        CHECK(has("cache-control: no-store\r\n") && has("x-content-type-options: nosniff\r\n"));
        cn_json_free(body());
    }
    struct cn_json *address = body(); /* the last one */
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", cn_admin_port(admin));
    CHECK_STR(url, cn_json_text(address, "url"));
    CHECK_STR(TOKEN, cn_json_text(address, "token"));
    cn_json_free(address);
    CHECK_INT(200, ask(connect_socket(), "GET", "/metrics", ""));
    CHECK(has("cairn_build_info{version=\"" CN_VERSION "\"} 1\n"));
    end();
}

/* The address as a browser on this machine can use it. */
TEST(admin, the_address_is_one_that_can_be_opened)
{
    static const struct {
        const char *host, *url;
    } hosts[] = {{"", "http://127.0.0.1:"},
                 {"*", "http://127.0.0.1:"},
                 {"0.0.0.0", "http://127.0.0.1:"},
                 {"localhost", "http://localhost:"}};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        dir = test_dir();
        struct cn_admin_options options = {
            .socket_dir = dir, .host = hosts[i].host, .token = TOKEN};
        admin = start(&options);
        CHECK_INT(200, ask(connect_socket(), "GET", "/api/address", ""));
        struct cn_json *address = body();
        CHECK(strncmp(cn_json_text(address, "url"), hosts[i].url, strlen(hosts[i].url)) == 0);
        cn_json_free(address);
        /* and not on loopback alone, metrics need the token */
        if (strcmp(hosts[i].host, "localhost") != 0)
            CHECK_INT(401, ask(connect_tcp(), "GET", "/metrics", ""));
        end();
    }
}

/* --- calls and the end
 * ---------------------------------------------------------------------------- */

/* A call that waits for a body that does not come. */
static int hang(void)
{
    int fd = connect_socket();
    say(fd, "POST /api/deploy HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{");
    return fd;
}

/* The same, if it was refused: the question whether there is room takes some itself. */
static int hang_again(int fd)
{
    char byte;
    if (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0)
        return fd;
    close(fd);
    return hang();
}

TEST(admin, A3_calls_have_a_bound_and_pages_have_none)
{
    begin();
    int fds[CN_ADMIN_JOB_MAX];
    for (int i = 0; i < CN_ADMIN_JOB_MAX; i++)
        fds[i] = hang();
    /* Until all of them are under way. */
    int status;
    for (int tries = 0; (status = ask(connect_socket(), "GET", "/api/nothing", "")) != 503;
         tries++) {
        CHECK(tries < 10000);
        for (int i = 0; i < CN_ADMIN_JOB_MAX; i++)
            fds[i] = hang_again(fds[i]);
    }
    CHECK(has("retry-after: 1\r\n") && has("too many operations"));
    CHECK_INT(200, ask(connect_socket(), "GET", "/healthz", ""));
    CHECK_INT(200, ask(connect_socket(), "GET", "/metrics", ""));
    close(fds[0]); /* whoever goes makes room */
    for (int tries = 0; (status = ask(connect_socket(), "GET", "/api/nothing", "")) == 503; tries++)
        CHECK(tries < 10000);
    CHECK_INT(404, status);
    for (int i = 1; i < CN_ADMIN_JOB_MAX; i++)
        close(fds[i]);
    end();
}

TEST(admin, A4_it_ends_with_calls_and_listeners_under_way)
{
    begin();
    int call = hang(), tail = connect_socket(), idle = connect_tcp();
    say(tail, "GET /api/tail HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(read_until(tail, "{\"listening\":true}\n"));
    cn_admin_stop(admin);
    CHECK(!read_until(tail, NULL)); /* cut */
    CHECK(!read_until(call, NULL));
    CHECK(!read_until(idle, NULL));
    close(call);
    close(tail);
    close(idle);
    cn_buf_fini(&got);
}
