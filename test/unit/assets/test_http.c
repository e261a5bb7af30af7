/* SPDX-License-Identifier: Apache-2.0 */
/* Assets over real connections: bytes from memory, from disk piece by piece as the client takes
 * them, files that change or shrink meanwhile (A2), clients that leave, and what is left to the
 * worker. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "assets/assets.h"
#include "base/mem.h"
#include "test/lib/http_rig.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

#define GET(target) "GET " target " HTTP/1.1\r\nHost: h.example:81\r\nConnection: close\r\n\r\n"

struct world {
    struct cn_assets *assets;
    bool alone;
    unsigned left; /* requests that the assets did not take */
};

static void handle(struct rig *rig, struct cn_http_request *req)
{
    struct world *world = rig->extra;
    if (cn_assets_respond(world->assets, world->alone, &rig->loop, req))
        return;
    world->left++;
    CHECK_INT(0, rig_answer(req, 299, "worker"));
}

static void open_world(struct rig *rig, struct world *world, struct cn_assets_options options)
{
    struct cn_err err = {0};
    options.copy_fd = -1;
    *world = (struct world){0};
    if (cn_assets_load(&options, &world->assets, &err) != 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    rig_open(rig, handle, NULL);
    rig->extra = world;
}

static void close_world(struct rig *rig, struct world *world)
{
    rig_close(rig);
    cn_assets_unref(world->assets);
}

/* The body of what a client got. */
static const char *body(struct rig_client *client)
{
    const char *end = strstr(rig_got(client), "\r\n\r\n");
    return end ? end + 4 : "";
}

/* Asks, and waits until the server ends the connection: it is told to. */
static void ask(struct rig *rig, struct rig_client *client, const char *request)
{
    rig_connect(rig, client);
    rig_send(client, request);
    RIG_UNTIL(rig, client->ended);
}

static const char *exchange(struct rig *rig, const char *request)
{
    static char got[2048];
    struct rig_client client;
    ask(rig, &client, request);
    snprintf(got, sizeof(got), "%s", rig_got(&client));
    rig_disconnect(&client);
    return got;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

TEST(asset_http, a_small_file_goes_out_whole_in_part_or_as_its_head)
{
    struct rig rig;
    struct world world;
    const char *dir = test_dir();
    tree_write(dir, "f.txt", "0123456789");
    tree_write(dir, "empty", "");
    open_world(&rig, &world, (struct cn_assets_options){.directory = dir});
    const char *got = exchange(&rig, GET("/f.txt?x"));
    CHECK(begins(got, "HTTP/1.1 200 ") && strstr(got, "\r\n\r\n0123456789"));
    CHECK(strstr(got, "text/plain"));
    got = exchange(&rig, "GET /f.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                         "Range: bytes=3-5\r\n\r\n");
    CHECK(begins(got, "HTTP/1.1 206 ") && strstr(got, "\r\n\r\n345"));
    CHECK(!strstr(got, "3456"));
    got = exchange(&rig, "HEAD /f.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    CHECK(begins(got, "HTTP/1.1 200 ") && !strstr(got, "0123"));
    CHECK(strstr(got, "ontent-length: 10\r\n") || strstr(got, "ontent-Length: 10\r\n"));
    got = exchange(&rig, GET("/empty"));
    CHECK(begins(got, "HTTP/1.1 200 "));
    close_world(&rig, &world);
}

TEST(asset_http, what_no_asset_answers_is_the_workers_or_a_404_where_there_is_none)
{
    struct rig rig;
    struct world world;
    const char *dir = test_dir();
    static const char *const first[] = {"/api/*"};
    tree_write(dir, "api/f.txt", "asset");
    open_world(&rig, &world,
               (struct cn_assets_options){
                   .directory = dir, .has_worker = true, .first = first, .first_count = 1});
    CHECK(begins(exchange(&rig, GET("/none")), "HTTP/1.1 299 "));
    CHECK(begins(exchange(&rig, GET("/api/f.txt?x=1")), "HTTP/1.1 299 "));
    CHECK_INT(2, world.left);
    world.alone = true;
    CHECK(begins(exchange(&rig, GET("/none")), "HTTP/1.1 404 "));
    CHECK_INT(2, world.left);
    close_world(&rig, &world);
}

TEST(asset_http, rules_see_the_host_without_its_port)
{
    struct rig rig;
    struct world world;
    const char *dir = test_dir();
    tree_write(dir, "_redirects", "https://h.example/x /y 301\n");
    tree_write(dir, "x", "x");
    open_world(&rig, &world, (struct cn_assets_options){.directory = dir});
    CHECK(begins(exchange(&rig, GET("/x")), "HTTP/1.1 301 "));
    close_world(&rig, &world);
}

/* The server's own queue and the kernel's are both full long before the file is read. */
TEST(asset_http, a_large_file_is_read_as_the_client_takes_it)
{
    enum { SIZE = 12 << 20 };
    struct rig rig;
    struct world world;
    struct rig_client client;
    const char *dir = test_dir();
    int files = tree_open_files();
    tree_write_long(dir, "big", SIZE);
    open_world(&rig, &world, (struct cn_assets_options){.directory = dir});
    rig_connect_small(&rig, &client, 4096);
    rig_pause(&client, true);
    rig_send(&client, GET("/big"));
    RIG_UNTIL(&rig, rig.request_count == 1);
    rig_pause(&client, false);
    RIG_UNTIL(&rig, client.ended);
    char *file = tree_read(dir, "big");
    CHECK_INT(SIZE, strlen(body(&client)));
    CHECK(strcmp(file, body(&client)) == 0);
    cn_free(file);
    rig_disconnect(&client);
    close_world(&rig, &world);
    CHECK_INT(files, tree_open_files());
}

TEST(asset_http, a_part_of_a_large_file_is_that_part)
{
    struct rig rig;
    struct world world;
    struct rig_client client;
    const char *dir = test_dir();
    tree_write_long(dir, "big", 700000);
    open_world(&rig, &world, (struct cn_assets_options){.directory = dir});
    ask(&rig, &client,
        "GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
        "Range: bytes=1-600000\r\n\r\n");
    CHECK(begins(rig_got(&client), "HTTP/1.1 206 "));
    CHECK_INT(600000, strlen(body(&client)));
    char *file = tree_read(dir, "big");
    CHECK(strncmp(file + 1, body(&client), 600000) == 0);
    cn_free(file);
    rig_disconnect(&client);
    close_world(&rig, &world);
}

/* A2 */
TEST(asset_http, a_file_that_has_changed_goes_out_as_it_is_and_without_its_etag)
{
    struct rig rig;
    struct world world;
    const char *dir = test_dir();
    tree_write_long(dir, "big", 700000);
    open_world(&rig, &world, (struct cn_assets_options){.directory = dir});
    tree_write(dir, "big", "new bytes");
    const char *got = exchange(&rig, "GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                                     "Range: bytes=100-200\r\n\r\n");
    CHECK(begins(got, "HTTP/1.1 200 ") && strstr(got, "\r\n\r\nnew bytes"));
    CHECK(!strcasestr(got, "\r\netag:") && !strcasestr(got, "\r\ncontent-range:"));
    tree_write(dir, "big", "");
    got = exchange(&rig, GET("/big"));
    CHECK(begins(got, "HTTP/1.1 200 ") && strcasestr(got, "\r\ncontent-length: 0\r\n"));
    CHECK(unlink(tree_path(dir, "big")) == 0);
    CHECK(begins(exchange(&rig, GET("/big")), "HTTP/1.1 404 "));
    close_world(&rig, &world);
}

/* The length is promised with the head: a client must be able to tell that the rest is missing. */
TEST(asset_http, a_file_cut_while_it_is_sent_ends_the_connection_short)
{
    struct rig rig;
    struct world world;
    struct rig_client client;
    const char *dir = test_dir();
    tree_write_long(dir, "big", 12 << 20);
    open_world(&rig, &world, (struct cn_assets_options){.directory = dir});
    rig_connect_small(&rig, &client, 4096);
    rig_pause(&client, true);
    rig_send(&client, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    RIG_UNTIL(&rig, rig.request_count == 1);
    CHECK(truncate(tree_path(dir, "big"), 1000) == 0);
    rig_pause(&client, false);
    RIG_UNTIL(&rig, client.ended);
    CHECK(strlen(body(&client)) < 12 << 20);
    rig_disconnect(&client);
    close_world(&rig, &world);
}

/* In every phase: before the first piece is read, while one is, while the queue drains. */
TEST(asset_http, a_client_that_leaves_takes_its_descriptor_with_it)
{
    struct rig rig;
    struct world world;
    const char *dir = test_dir();
    int files = tree_open_files();
    tree_write_long(dir, "big", 12 << 20);
    open_world(&rig, &world, (struct cn_assets_options){.directory = dir});
    for (unsigned turns = 0; turns < 12; turns++) {
        struct rig_client client;
        rig_connect_small(&rig, &client, 4096);
        rig_pause(&client, true);
        rig_send(&client, GET("/big"));
        RIG_UNTIL(&rig, rig.request_count == turns + 1);
        for (unsigned i = 0; i < turns; i++)
            rig_turn(&rig);
        rig_disconnect(&client);
    }
    close_world(&rig, &world);
    CHECK_INT(files, tree_open_files());
}

/* Transfers and answers from memory hold the assets, though their deployment is over. */
TEST(asset_http, a_transfer_outlives_the_deployment)
{
    struct rig rig;
    struct world world;
    struct rig_client client;
    const char *dir = test_dir();
    tree_write_long(dir, "big", 4 << 20);
    open_world(&rig, &world, (struct cn_assets_options){.directory = dir});
    rig_connect_small(&rig, &client, 4096);
    rig_pause(&client, true);
    rig_send(&client, GET("/big"));
    RIG_UNTIL(&rig, rig.request_count == 1);
    cn_assets_unref(world.assets);
    world.assets = NULL;
    rig_pause(&client, false);
    RIG_UNTIL(&rig, client.ended);
    CHECK_INT(4 << 20, strlen(body(&client)));
    rig_disconnect(&client);
    close_world(&rig, &world);
}
