/* SPDX-License-Identifier: Apache-2.0 */
/* Where the admin listener is and who may use it: addresses, and tokens given (N1) and kept (N2).
 */
#include "config/adminconf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "config/config.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

#define TOKEN "a token of somebody"

static struct cn_config config; /* says nothing */
static struct cn_adminconf conf;
static struct cn_admin_options options;
static struct cn_err err;

static int choose(struct cn_adminconf_wishes wishes)
{
    if (!wishes.config)
        wishes.config = &config;
    options = (struct cn_admin_options){0};
    err = (struct cn_err){0};
    int rc = cn_adminconf_choose(&conf, &wishes, &options, &err);
    CHECK_INT(rc, err.code);
    return rc;
}

static void write_token(const char *data, const char *text)
{
    tree_write(data, "admin.token", text);
}

TEST(adminconf, an_address_comes_from_the_flag_the_configuration_or_neither)
{
    const char *data = test_dir();
    struct cn_config given = {.server.admin = "127.0.0.1:99"};
    CHECK_INT(0, choose((struct cn_adminconf_wishes){.data = data}));
    CHECK_STR("127.0.0.1", options.host);
    CHECK_INT(8788, options.port);
    CHECK(options.port_optional && options.token && !options.tls);
    CHECK_STR(data, options.socket_dir);
    cn_adminconf_fini(&conf);
    CHECK_INT(0, choose((struct cn_adminconf_wishes){.data = data, .config = &given}));
    CHECK_INT(99, options.port);
    CHECK(!options.port_optional);
    cn_adminconf_fini(&conf);
    CHECK_INT(0, choose((struct cn_adminconf_wishes){
                     .data = data, .config = &given, .address = "http://[::1]:7"}));
    CHECK_INT(7, options.port);
    CHECK_STR("::1", options.host);
    cn_adminconf_fini(&conf);
    /* Development without a word: any free port, and a token all the same. */
    CHECK_INT(0, choose((struct cn_adminconf_wishes){.data = data, .development = true}));
    CHECK_STR("127.0.0.1", options.host);
    CHECK_INT(0, options.port);
    CHECK(options.token && options.socket_dir);
    cn_adminconf_fini(&conf);
    CHECK_INT(
        0, choose((struct cn_adminconf_wishes){.data = data, .config = &given, .address = "off"}));
    CHECK(!options.host && !options.token);
    cn_adminconf_fini(&conf);
    CHECK_INT(CN_EINVALID,
              choose((struct cn_adminconf_wishes){.data = data, .address = "nonsense"}));
    CHECK(strncmp(err.text, "--admin: ", 9) == 0);
    CHECK(!options.host);
    cn_adminconf_fini(&conf);
}

TEST(adminconf, https_needs_a_certificate)
{
    const char *data = test_dir();
    struct cn_tls_context *tls = (struct cn_tls_context *)&config; /* not looked into */
    CHECK_INT(CN_EINVALID,
              choose((struct cn_adminconf_wishes){.data = data, .address = "https://127.0.0.1:1"}));
    CHECK(strstr(err.text, "--tls-cert"));
    cn_adminconf_fini(&conf);
    CHECK_INT(0, choose((struct cn_adminconf_wishes){
                     .data = data, .address = "https://127.0.0.1:1", .tls = tls}));
    CHECK(options.tls == tls);
    cn_adminconf_fini(&conf);
    CHECK_INT(0, choose((struct cn_adminconf_wishes){
                     .data = data, .address = "127.0.0.1:1", .tls = tls}));
    CHECK(!options.tls);
    cn_adminconf_fini(&conf);
}

/* N1 */
TEST(adminconf, a_listener_for_others_needs_a_token_that_somebody_chose)
{
    const char *data = test_dir();
    static const char *const open[] = {"0.0.0.0:1", ":1", "[::]:1", "192.0.2.1:1"};
    for (size_t i = 0; i < CN_ARRAY_COUNT(open); i++) {
        CHECK_INT(CN_EDENIED,
                  choose((struct cn_adminconf_wishes){.data = data, .address = open[i]}));
        CHECK(!options.host && !options.token);
        cn_adminconf_fini(&conf);
        CHECK_INT(0, choose((struct cn_adminconf_wishes){
                         .data = data, .address = open[i], .token = TOKEN}));
        CHECK_STR(TOKEN, options.token);
        cn_adminconf_fini(&conf);
    }
    CHECK(!tree_has(data, "admin.token"));
}

/* N1 */
TEST(adminconf, a_token_is_made_once_for_one_user)
{
    const char *data = tree_path(test_dir(), "data");
    char folder[512], first[128];
    struct stat info;
    snprintf(folder, sizeof(folder), "%s", data);
    mode_t before = umask(0);
    CHECK_INT(0, choose((struct cn_adminconf_wishes){.data = folder}));
    umask(before);
    CHECK_INT(0, stat(folder, &info));
    CHECK_INT(0700, info.st_mode & 0777);
    CHECK_INT(0, stat(tree_path(folder, "admin.token"), &info));
    CHECK_INT(0600, info.st_mode & 0777);
    CHECK_INT(6 + 40 + 8, strlen(options.token));
    CHECK(strncmp(options.token, "cairn-", 6) == 0);
    snprintf(first, sizeof(first), "%s", options.token);
    cn_adminconf_fini(&conf);
    CHECK_INT(0, choose((struct cn_adminconf_wishes){.data = folder}));
    CHECK_STR(first, options.token);
    CHECK_INT(0, cn_adminconf_check(folder, &err));
    cn_adminconf_fini(&conf);
    CHECK_INT(0, unlink(tree_path(folder, "admin.token")));
    CHECK_INT(0, cn_adminconf_check(folder, &err)); /* none is fine, and none is made */
    CHECK(!tree_has(folder, "admin.token"));
    CHECK_INT(0, choose((struct cn_adminconf_wishes){.data = folder}));
    CHECK(strcmp(first, options.token) != 0);
    cn_adminconf_fini(&conf);
}

/* N2 */
TEST(adminconf, a_token_that_is_given_has_a_length)
{
    char text[600];
    memset(text, 'x', sizeof(text));
    static const struct {
        size_t size;
        int rc;
    } rows[] = {{0, CN_EINVALID}, {15, CN_EINVALID}, {16, 0}, {512, 0}, {513, CN_EINVALID}};
    const char *data = test_dir();
    for (size_t i = 0; i < CN_ARRAY_COUNT(rows); i++) {
        text[rows[i].size] = 0;
        CHECK_INT(rows[i].rc, choose((struct cn_adminconf_wishes){.data = data, .token = text}));
        cn_adminconf_fini(&conf);
        write_token(data, text); /* the same in a file, which may end with a line feed */
        CHECK_INT(rows[i].rc, cn_adminconf_check(data, &err));
        strcpy(text + rows[i].size, "\n");
        write_token(data, text);
        CHECK_INT(rows[i].rc, choose((struct cn_adminconf_wishes){.data = data}));
        if (rows[i].rc == 0)
            CHECK_INT(rows[i].size, strlen(options.token));
        cn_adminconf_fini(&conf);
        CHECK_INT(0, unlink(tree_path(data, "admin.token")));
        memset(text, 'x', sizeof(text));
    }
}

/* N2: every byte of it counts. */
TEST(adminconf, a_token_of_ours_that_is_damaged_is_refused)
{
    const char *data = test_dir();
    CHECK_INT(0, choose((struct cn_adminconf_wishes){.data = data}));
    cn_adminconf_fini(&conf);
    char *good = tree_read(data, "admin.token");
    size_t size = strlen(good);
    for (size_t at = 0; at < size; at++) {
        good[at] ^= (char)(1 << at % 8);
        tree_write_bytes(data, "admin.token", good, size);
        CHECK_INT(CN_ECORRUPT, cn_adminconf_check(data, &err));
        good[at] ^= (char)(1 << at % 8);
    }
    CHECK_INT(CN_ECORRUPT, (good[10] ^= 1, write_token(data, good),
                            choose((struct cn_adminconf_wishes){.data = data})));
    CHECK(strstr(err.text, "damaged") && !options.token);
    cn_adminconf_fini(&conf);
    cn_free(good);
}

/* N2 */
TEST(adminconf, half_a_token_is_not_left_behind)
{
    const char *data = test_dir();
    struct rlimit before, small;
    CHECK_INT(0, getrlimit(RLIMIT_FSIZE, &before));
    small = before;
    small.rlim_cur = 10;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(0, setrlimit(RLIMIT_FSIZE, &small));
    int rc = choose((struct cn_adminconf_wishes){.data = data});
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    CHECK(rc < 0 && strstr(err.text, "admin.token"));
    CHECK(!tree_has(data, "admin.token"));
    cn_adminconf_fini(&conf);
    CHECK_INT(0, choose((struct cn_adminconf_wishes){.data = data}));
    cn_adminconf_fini(&conf);
}

TEST(adminconf, a_data_directory_that_cannot_be_made_is_an_error)
{
    const char *dir = test_dir();
    tree_write(dir, "file", "");
    CHECK_INT(-ENOTDIR, choose((struct cn_adminconf_wishes){.data = tree_path(dir, "file/data")}));
    CHECK(strstr(err.text, "cannot make"));
    cn_adminconf_fini(&conf);
    tree_folder(dir, "admin.token"); /* a folder is no token */
    CHECK_INT(-EISDIR, choose((struct cn_adminconf_wishes){.data = dir}));
    cn_adminconf_fini(&conf);
}
