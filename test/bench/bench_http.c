/* SPDX-License-Identifier: Apache-2.0 */
/* bench_http - the cost of net/ alone: a server on one thread that gives a fixed answer.
 *
 *     build/bench/bench_http [--port N] [--idle N] [--cert F --key F]
 *
 * Prints the port it listens on; measure with, for instance,
 *
 *     wrk -t1 -c64 -d5 http://127.0.0.1:PORT/
 *
 * On SIGINT or SIGTERM it prints requests, CPU time per request, and ends. `--idle N` also opens
 * N connections of its own that stay silent, to see whether they cost the others anything. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/assert.h"
#include "base/loop.h"
#include "net/server.h"
#include "net/tls.h"

static const struct cn_http_header headers[] = {
    {.name = "Content-Type", .name_size = 12, .value = "text/plain", .value_size = 10},
};

static void on_request(struct cn_http_server *server, struct cn_http_request *req)
{
    struct cn_http_head head = {.status = 200, .headers = headers, .header_count = 1};
    CN_ASSERT(cn_http_respond(req, &head, "Hello World!", 12, NULL, NULL) == 0);
    cn_http_request_release(req);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) / 1e6;
}

struct bench {
    struct cn_http_server *server;
    uv_signal_t signals[2];
    double cpu_start;
};

static void on_server_closed(void *data)
{
    struct bench *bench = data;
    for (int i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&bench->signals[i], NULL);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct bench *bench = handle->data;
    struct cn_http_stats stats;
    cn_http_server_stats(bench->server, &stats);
    double cpu = cpu_seconds() - bench->cpu_start;
    printf("requests %llu, connections open %u, cpu %.2f s, %.2f us/request\n",
           (unsigned long long)stats.request_count, stats.connection_count, cpu,
           stats.request_count ? cpu * 1e6 / (double)stats.request_count : 0.0);
    cn_http_server_close(bench->server, on_server_closed, bench);
}

static void open_idle(uint16_t port, unsigned count)
{
    struct rlimit limit = {1 << 16, 1 << 16};
    setrlimit(RLIMIT_NOFILE, &limit);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (unsigned i = 0; i < count; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0 || (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
                       errno != EINPROGRESS)) {
            perror("idle connection");
            exit(1);
        }
        uv_run(uv_default_loop(), UV_RUN_NOWAIT); /* accept it, so that the backlog never fills */
    }
}

int main(int argc, char **argv)
{
    unsigned port = 0, idle = 0;
    const char *cert = NULL, *key = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0)
            port = (unsigned)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--idle") == 0)
            idle = (unsigned)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--cert") == 0)
            cert = argv[i + 1];
        else if (strcmp(argv[i], "--key") == 0)
            key = argv[i + 1];
    }
    signal(SIGPIPE, SIG_IGN);
    cn_loop_take(uv_default_loop());
    struct cn_err err = {0};
    struct bench bench = {0};
    struct cn_http_server_options options = {.callbacks = {.on_request = on_request}};
    int fd;
    uint16_t bound;
    if ((cert && cn_tls_context_new(cert, key, &options.tls, &err) < 0) ||
        cn_http_bind("127.0.0.1", (uint16_t)port, &fd, 1, &bound, &err) < 0 ||
        cn_http_server_new(uv_default_loop(), &options, &bench.server, &err) < 0 ||
        cn_http_server_listen(bench.server, fd, &err) < 0) {
        fprintf(stderr, "bench_http: %s\n", err.text);
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        uv_signal_init(uv_default_loop(), &bench.signals[i]);
        bench.signals[i].data = &bench;
        uv_signal_start(&bench.signals[i], on_signal, i == 0 ? SIGINT : SIGTERM);
    }
    open_idle(bound, idle);
    printf("port %u\n", bound);
    fflush(stdout);
    bench.cpu_start = cpu_seconds();
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    cn_tls_context_unref(options.tls);
    return 0;
}
