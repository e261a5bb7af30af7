/* SPDX-License-Identifier: Apache-2.0 */
/* All lanes together: a deployment is taken by every one or by none (S1), and the end of all. */
#include "base/loop.h"
#include "worker/server.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "bindings/all.h"
#include "test/lib/test.h"
#include "worker/guest.h"
#include "worker/metrics.h"

struct world {
    uv_loop_t loop;
    struct cn_server *server;
    bool deployed, drained, stopped;
    struct cn_err err;
};

static void on_deployed(struct cn_server *server, const struct cn_err *err)
{
    struct world *world = cn_server_data(server);
    CHECK(!world->deployed); /* once */
    world->deployed = true;
    world->err = err ? *err : (struct cn_err){0};
}

static void on_drained(struct cn_server *server)
{
    ((struct world *)cn_server_data(server))->drained = true;
}

static void on_stopped(void *data)
{
    ((struct world *)data)->stopped = true;
}

static void until(struct world *world, const bool *flag)
{
    while (!*flag)
        uv_run(&world->loop, UV_RUN_ONCE);
}

static struct cn_server_options options_of(struct world *world, unsigned lanes)
{
    return (struct cn_server_options){.loop = &world->loop,
                                      .host = "127.0.0.1",
                                      .lane_count = lanes,
                                      .guest = &cn_javascript,
                                      .on_deployed = on_deployed,
                                      .on_drained = on_drained,
                                      .data = world};
}

static void world_open(struct world *world, unsigned lanes)
{
    static bool set_up;
    struct cn_err err;
    if (!set_up)
        CHECK_INT(0, cn_javascript.setup(&err));
    set_up = true;
    *world = (struct world){0};
    CHECK_INT(0, cn_loop_init(&world->loop, NULL));
    struct cn_server_options options = options_of(world, lanes);
    CHECK_INT(0, cn_server_start(&options, &world->server, &err));
}

static void world_close(struct world *world)
{
    cn_server_stop(world->server, on_stopped, world);
    until(world, &world->stopped);
    CHECK_INT(0, uv_loop_close(&world->loop));
}

static void deploy(struct world *world, const char *source)
{
    struct cn_script *script = cn_script_new();
    script->name = cn_strdup("worker");
    script->url = cn_strdup("worker.js");
    script->source = cn_strdup(source);
    script->cpu_limit_ms = 10000;
    script->has_source = true;
    struct cn_deployment *deployment = cn_deployment_new();
    cn_deployment_add(deployment, script);
    world->deployed = false;
    cn_server_deploy(world->server, deployment);
    until(world, &world->deployed);
}

#define ANSWER(text) "(() => ({ default: { fetch: () => new Response('" text "') } }))"

static const char *ask(struct world *world)
{
    static char text[4096];
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(cn_server_port(world->server)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = 30};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    CHECK_INT(0, connect(fd, (struct sockaddr *)&address, sizeof(address)));
    static const char request[] = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    CHECK(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) > 0);
    size_t size = 0;
    ssize_t got;
    while ((got = recv(fd, text + size, sizeof(text) - 1 - size, 0)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    close(fd);
    return text;
}

TEST(server, S1_a_deployment_is_current_on_every_lane_or_refused_and_the_former_stays)
{
    struct world world;
    world_open(&world, 3);
    CHECK_INT(3, cn_server_lane_count(world.server));
    deploy(&world, ANSWER("one"));
    CHECK_INT(0, world.err.code);
    cn_server_listen(world.server);
    for (int i = 0; i < 12; i++) /* the kernel spreads them over the lanes */
        CHECK(strstr(ask(&world), "\r\n\r\none"));
    deploy(&world, "(() => { throw new Error('not today'); })");
    CHECK_INT(CN_EJS, world.err.code);
    CHECK(strstr(world.err.text, "not today"));
    for (int i = 0; i < 12; i++)
        CHECK(strstr(ask(&world), "\r\n\r\none"));
    deploy(&world, ANSWER("two"));
    CHECK_INT(0, world.err.code);
    for (int i = 0; i < 12; i++)
        CHECK(strstr(ask(&world), "\r\n\r\ntwo"));
    world_close(&world);
}

TEST(server, drains_every_lane_before_it_says_so)
{
    struct world world;
    world_open(&world, 2);
    deploy(&world, ANSWER("x"));
    cn_server_listen(world.server);
    CHECK(strstr(ask(&world), "\r\n\r\nx"));
    cn_server_drain(world.server);
    until(&world, &world.drained);
    world_close(&world);
}

TEST(server, one_that_is_stopped_at_once_or_while_it_deploys_leaves_nothing)
{
    struct world world;
    world_open(&world, 2);
    world_close(&world);
    world_open(&world, 2);
    struct cn_deployment *deployment = cn_deployment_new();
    cn_server_deploy(world.server, deployment);
    world_close(&world);
    CHECK(!world.deployed);
}

TEST(server, an_address_that_is_taken_or_wrong_is_said)
{
    struct world world;
    struct cn_server *second;
    struct cn_err err;
    world_open(&world, 1);
    int taken = socket(AF_INET, SOCK_STREAM, 0); /* without SO_REUSEPORT: nobody shares it */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    CHECK_INT(0, bind(taken, (struct sockaddr *)&address, sizeof(address)));
    CHECK_INT(0, listen(taken, 1));
    CHECK_INT(0, getsockname(taken, (struct sockaddr *)&address, &size));
    struct cn_server_options options = options_of(&world, 1);
    options.port = ntohs(address.sin_port);
    CHECK(cn_server_start(&options, &second, &err) < 0);
    CHECK(err.text[0]);
    options.host = "not an address";
    CHECK(cn_server_start(&options, &second, &err) < 0);
    close(taken);
    world_close(&world);
}
