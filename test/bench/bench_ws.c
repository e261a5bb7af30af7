/* SPDX-License-Identifier: Apache-2.0 */
/* A load client for WebSockets, cheap enough not to be what is measured
 * (test/bench/websockets.mjs).
 *
 *     bench_ws echo PORT PATH COUNT SECONDS        each socket sends, waits for its echo, sends
 * again bench_ws broadcast PORT PATH COUNT SECONDS   the first one sends "b..."; everybody gets it;
 * four messages are under way bench_ws idle PORT PATH COUNT ROOMS          opens them (PATH gets a
 * room's number appended), says so, and keeps them until its input ends; a line "b" there makes
 * each room broadcast once
 *
 * Prints one JSON object per result. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TEXT_SIZE 32
#define WINDOW 4
#define WARM_SECONDS 1.0
#define FRAME_SIZE (6 + TEXT_SIZE)

struct client {
    int fd;
    uint8_t left[FRAME_SIZE]; /* of a frame that is not all here */
    size_t left_size;
};

static struct client *clients;
static size_t client_count;
static uint8_t frame[FRAME_SIZE];
static int poll_fd;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench_ws: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void open_socket(struct client *client, uint16_t port, const char *path)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char text[512];
    int on = 1;
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        die("connect");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    int size = snprintf(text, sizeof(text),
                        "GET %s HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
                        path);
    if (write(client->fd, text, (size_t)size) != size)
        die("handshake");
}

/* Reads up to the empty line, byte by byte at the end, so that no frame is taken with it. */
static void finish_handshake(struct client *client)
{
    char head[2048];
    size_t size = 0;
    while (size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4) != 0) {
        if (size == sizeof(head) || read(client->fd, head + size, 1) != 1)
            die("the server's answer");
        size++;
    }
    if (memcmp(head, "HTTP/1.1 101", 12) != 0) {
        fprintf(stderr, "bench_ws: %.60s\n", head);
        exit(1);
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    fcntl(client->fd, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, client->fd, &event) < 0)
        die("epoll");
}

static void send_frame(struct client *client)
{
    if (write(client->fd, frame, sizeof(frame)) != sizeof(frame))
        die("send");
}

/* Messages in what has come; the server's frames here are all short and unmasked. */
static size_t receive(struct client *client)
{
    static uint8_t buffer[65536];
    memcpy(buffer, client->left, client->left_size);
    ssize_t got = read(client->fd, buffer + client->left_size, sizeof(buffer) - FRAME_SIZE);
    if (got <= 0) {
        if (got < 0 && errno == EAGAIN)
            return 0;
        die("a socket was closed");
    }
    size_t size = client->left_size + (size_t)got, at = 0, count = 0;
    while (size - at >= 2 && size - at >= 2u + (buffer[at + 1] & 127)) {
        count += (buffer[at] & 15) == 1;
        at += 2u + (buffer[at + 1] & 127);
    }
    client->left_size = size - at;
    memcpy(client->left, buffer + at, client->left_size);
    return count;
}

static int wait_events(struct epoll_event *events, int max, double seconds)
{
    int count = epoll_wait(poll_fd, events, max, seconds > 0 ? (int)(seconds * 1000) + 1 : 0);
    if (count < 0 && errno != EINTR)
        die("epoll_wait");
    return count < 0 ? 0 : count;
}

static void measure(bool broadcast, double seconds)
{
    struct epoll_event events[256];
    uint64_t total = 0, mark = 0, rounds = 0;
    double began = now(), from = began + WARM_SECONDS, until = from + seconds, marked = 0;
    for (size_t i = 0; i < (broadcast ? WINDOW : client_count); i++)
        send_frame(&clients[broadcast ? 0 : i]);
    for (double time = began; time < until; time = now()) {
        if (!marked && time >= from) {
            marked = time;
            mark = total;
        }
        int count = wait_events(events, 256, until - time);
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            size_t got = receive(client);
            total += got;
            for (size_t k = 0; !broadcast && k < got; k++)
                send_frame(client);
        }
        while (broadcast && total / client_count > rounds) {
            rounds++;
            send_frame(&clients[0]);
        }
    }
    printf("{\"messages\":%llu,\"seconds\":%.3f}\n", (unsigned long long)(total - mark),
           now() - marked);
}

/* After a line on standard input: each room's first member broadcasts, all must get it. */
static void broadcast_once(size_t rooms)
{
    struct epoll_event events[256];
    size_t got = 0;
    double began = now();
    for (size_t i = 0; i < rooms; i++)
        send_frame(&clients[i]);
    while (got < client_count && now() - began < 30) {
        int count = wait_events(events, 256, 1);
        for (int i = 0; i < count; i++)
            got += receive(events[i].data.ptr);
    }
    printf("{\"delivered\":%zu,\"seconds\":%.4f}\n", got, now() - began);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        die("usage: bench_ws echo|broadcast|idle PORT PATH COUNT SECONDS|ROOMS");
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    bool idle = strcmp(argv[1], "idle") == 0, broadcast = strcmp(argv[1], "broadcast") == 0;
    uint16_t port = (uint16_t)strtoul(argv[2], NULL, 10);
    client_count = strtoul(argv[4], NULL, 10);
    size_t rooms = idle ? strtoul(argv[5], NULL, 10) : 1;
    clients = calloc(client_count, sizeof(*clients));
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    frame[0] = 0x81;
    frame[1] = 0x80 | TEXT_SIZE; /* the mask is zero */
    memset(frame + 6, 'x', TEXT_SIZE);
    frame[6] = idle || broadcast ? 'b' : 'e';
    double began = now();
    for (size_t at = 0; at < client_count; at += 32) {
        size_t end = at + 32 < client_count ? at + 32 : client_count;
        for (size_t i = at; i < end; i++) {
            char path[256];
            snprintf(path, sizeof(path), idle ? "%s%zu" : "%s", argv[3], i % rooms);
            open_socket(&clients[i], port, path);
        }
        for (size_t i = at; i < end; i++)
            finish_handshake(&clients[i]);
    }
    if (!idle) {
        measure(broadcast, strtod(argv[5], NULL));
        return 0;
    }
    printf("{\"open\":%zu,\"seconds\":%.3f}\n", client_count, now() - began);
    fflush(stdout);
    char line[16];
    while (fgets(line, sizeof(line), stdin))
        broadcast_once(rooms);
    return 0;
}
