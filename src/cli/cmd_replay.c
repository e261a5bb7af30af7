/* SPDX-License-Identifier: Apache-2.0 */
/* cairn replay FILE: sends recorded requests (cli/recording.h) to a server again and compares.
 *
 * One loop does everything. A request is sent when it is due and fewer than --concurrency are under
 * way; the file is read one line ahead, so its size does not matter.
 *
 *     due:  at once                       without --rate and --speed
 *           so many in each second        --rate
 *           as far apart as recorded      --speed, times that factor
 *
 * What is late because too many are under way is sent as soon as it can be, and the table says how
 * late the latest was: a server that is too slow for the rate does not slow the clock. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/recording.h"
#include "net/client.h"
#include "net/trust.h"

struct options {
    const char *to, *rate, *speed, *concurrency;
    bool dry_run, verify, keep_host, without_bodies, json;
};

#define CONCURRENCY_MAX 1000
#define DIFFERENCES_SHOWN 10
/* Latencies in microseconds: 32 buckets for each power of two, so 3 % is the largest error. */
#define BUCKETS (64 * 32)

struct replay {
    const struct cn_args *args;
    const struct options *options; /* of it */
    char *to;                      /* owned; without a slash at its end */
    double rate, speed;
    unsigned concurrency;
    FILE *file;
    char *line; /* owned: getline's */
    size_t line_room;
    uint64_t line_number;
    uv_loop_t loop;
    uv_timer_t timer;
    uv_signal_t interrupt;
    struct cn_trust *trust;
    struct cn_client *client;
    struct cn_record next; /* read, not sent yet */
    bool has_next, ended;  /* ended: there is no other */
    unsigned running;
    uint64_t begun_ns;
    int64_t first_ms; /* the time of the first record that has one; -1: none yet */
    struct cn_progress progress;
    /* What came of it. */
    uint64_t sent, answered, failed, skipped, other, unreadable, compared, differing;
    uint64_t statuses[1000];
    uint64_t latencies[BUCKETS], latency_max_us;
    uint64_t late_max_ns;
    struct cn_err first_failure, first_unreadable;
    char *differences[DIFFERENCES_SHOWN]; /* owned */
};

/* A request under way. */
struct flight {
    struct replay *replay;
    uint64_t begun_ns;
    int recorded, status;
    char *what; /* owned: "GET /path" */
};

static void pump(struct replay *replay);

/* --- reading --------------------------------------------------------------------------------- */

/* Whether it is sent. */
static bool take(struct replay *replay, struct cn_record *record)
{
    if (record->body_missing && !replay->options->without_bodies) {
        replay->skipped++;
        cn_record_fini(record);
        return false;
    }
    return true;
}

/* Reads up to the next request that is sent. */
static void read_next(struct replay *replay)
{
    while (!replay->has_next && !replay->ended) {
        struct cn_err err = {0};
        ssize_t size = getline(&replay->line, &replay->line_room, replay->file);
        if (size < 0) {
            replay->ended = true;
            return;
        }
        replay->line_number++;
        cn_progress_add(&replay->progress, (uint64_t)size);
        if (strspn(replay->line, " \t\r\n") == (size_t)size)
            continue;
        int rc = cn_record_parse(&replay->next, replay->line, (size_t)size, &err);
        if (rc < 0 && replay->unreadable++ == 0)
            cn_err_set(&replay->first_unreadable, rc, "line %" PRIu64 ": %s", replay->line_number,
                       err.text);
        if (rc == 0)
            replay->other++;
        replay->has_next = rc == 1 && take(replay, &replay->next);
    }
}

/* When the next one is due, in nanoseconds of the loop's clock. */
static uint64_t next_due(struct replay *replay)
{
    const struct cn_record *next = &replay->next;
    if (replay->rate > 0)
        return replay->begun_ns + (uint64_t)((double)replay->sent * 1e9 / replay->rate);
    if (replay->speed <= 0 || next->time_ms < 0)
        return 0;
    if (replay->first_ms < 0)
        replay->first_ms = next->time_ms;
    int64_t after_ms = next->time_ms - replay->first_ms;
    return after_ms < 0 ? 0 : replay->begun_ns + (uint64_t)((double)after_ms * 1e6 / replay->speed);
}

/* --- sending --------------------------------------------------------------------------------- */

static size_t bucket_of(uint64_t us)
{
    if (us < 32)
        return (size_t)us;
    unsigned power = 63u - (unsigned)__builtin_clzll(us); /* at least 5 */
    return (size_t)(power - 4) * 32 + (size_t)(us >> (power - 5) & 31);
}

/* The largest value of a bucket. */
static uint64_t bucket_top(size_t bucket)
{
    if (bucket < 32)
        return bucket;
    unsigned power = (unsigned)(bucket / 32) + 4;
    return ((uint64_t)(32 + bucket % 32 + 1) << (power - 5)) - 1;
}

static void note_difference(struct replay *replay, const struct flight *flight)
{
    if (replay->differing < DIFFERENCES_SHOWN)
        replay->differences[replay->differing] = cn_sprintf(
            "recorded %d, answered %d: %s", flight->recorded, flight->status, flight->what);
    replay->differing++;
}

static void on_head(struct cn_client_request *request, const struct cn_client_head *head,
                    void *data)
{
    (void)request;
    ((struct flight *)data)->status = head->status;
}

static void on_body(struct cn_client_request *request, const void *bytes, size_t size, void *data)
{
    (void)request, (void)bytes, (void)size, (void)data; /* only the status is compared */
}

static void note_failure(struct replay *replay, const struct cn_err *error)
{
    if (replay->failed++ == 0)
        replay->first_failure = *error;
}

static void on_done(struct cn_client_request *request, const struct cn_err *error, void *data)
{
    (void)request;
    struct flight *flight = data;
    struct replay *replay = flight->replay;
    if (error) {
        note_failure(replay, error);
    } else {
        uint64_t us = (uv_hrtime() - flight->begun_ns) / 1000;
        replay->answered++;
        replay->statuses[flight->status % 1000]++;
        replay->latencies[bucket_of(us)]++;
        replay->latency_max_us = us > replay->latency_max_us ? us : replay->latency_max_us;
        replay->compared += flight->recorded != 0;
        if (flight->recorded && flight->recorded != flight->status)
            note_difference(replay, flight);
    }
    cn_free(flight->what);
    cn_free(flight);
    replay->running--;
    pump(replay);
}

static const struct cn_client_callbacks callbacks = {
    .on_head = on_head, .on_body = on_body, .on_done = on_done};

static void send_next(struct replay *replay)
{
    struct cn_record *record = &replay->next;
    struct cn_client_header headers[257];
    size_t count = 0;
    struct cn_err err = {0};
    char *url = cn_sprintf("%s%s", replay->to, record->target);
    if (replay->options->keep_host && record->host)
        headers[count++] = (struct cn_client_header){"host", record->host, 4, strlen(record->host)};
    for (size_t i = 0; i < record->header_count && count < CN_ARRAY_COUNT(headers); i++) {
        const struct cn_record_header *header = &record->headers[i];
        headers[count++] = (struct cn_client_header){header->name, header->value,
                                                     strlen(header->name), strlen(header->value)};
    }
    struct flight *flight = CN_NEW(struct flight);
    *flight = (struct flight){replay, uv_hrtime(), record->status, 0,
                              cn_sprintf("%s %s", record->method, record->target)};
    struct cn_client_params params = {
        .method = record->method,
        .url = url,
        .headers = headers,
        .header_count = count,
        .body_kind = record->body.size ? CN_CLIENT_BODY_BYTES : CN_CLIENT_BODY_NONE,
        .body = record->body.data,
        .body_size = record->body.size,
    };
    replay->sent++;
    if (cn_client_fetch(replay->client, &params, &callbacks, flight, &err)) {
        replay->running++;
    } else {
        note_failure(replay, &err);
        cn_free(flight->what);
        cn_free(flight);
    }
    cn_free(url);
    cn_record_fini(record);
    replay->has_next = false;
}

static void print_plan(struct replay *replay)
{
    const struct cn_record *record = &replay->next;
    printf("%s %s%s", record->method, replay->to, record->target);
    if (record->body.size)
        printf("  %zu bytes", record->body.size);
    if (record->status)
        printf("  recorded %d", record->status);
    putchar('\n');
    replay->sent++;
    cn_record_fini(&replay->next);
    replay->has_next = false;
}

static void on_timer(uv_timer_t *timer)
{
    pump(timer->data);
}

static void on_client_closed(void *data)
{
    (void)data; /* the loop ends */
}

/* Sends what is due; at the end lets the loop go. */
static void pump(struct replay *replay)
{
    while (replay->running < replay->concurrency) {
        read_next(replay);
        if (!replay->has_next)
            break;
        uint64_t due = next_due(replay), now = uv_hrtime();
        if (due > now) {
            uv_update_time(&replay->loop);
            uv_timer_start(&replay->timer, on_timer, (due - now + 999999) / 1000000, 0);
            return;
        }
        if (due && now - due > replay->late_max_ns)
            replay->late_max_ns = now - due;
        send_next(replay);
    }
    if (replay->ended && !replay->running && !replay->has_next && replay->client) {
        cn_client_close(replay->client, on_client_closed, NULL);
        replay->client = NULL;
        uv_close((uv_handle_t *)&replay->timer, NULL);
        uv_close((uv_handle_t *)&replay->interrupt, NULL);
    }
}

/* Ctrl-C: nothing more is sent; what is under way comes to its end. */
static void on_interrupt(uv_signal_t *handle, int number)
{
    (void)number;
    struct replay *replay = handle->data;
    uv_signal_stop(handle); /* a second one ends the process */
    uv_timer_stop(&replay->timer);
    replay->ended = true;
    if (replay->has_next)
        cn_record_fini(&replay->next);
    replay->has_next = false;
    pump(replay);
}

/* --- the table ------------------------------------------------------------------------------- */

static double percentile_ms(const struct replay *replay, double share)
{
    uint64_t wanted = (uint64_t)((double)replay->answered * share), seen = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        seen += replay->latencies[i];
        if (seen > wanted || seen == replay->answered) {
            uint64_t top = bucket_top(i);
            return (double)(top < replay->latency_max_us ? top : replay->latency_max_us) / 1000;
        }
    }
    return 0;
}

static void print_json(const struct replay *replay, double seconds)
{
    bool first = true;
    printf("{\"sent\":%" PRIu64 ",\"answered\":%" PRIu64 ",\"failed\":%" PRIu64
           ",\"skippedBodies\":%" PRIu64 ",\"otherLines\":%" PRIu64 ",\"unreadableLines\":%" PRIu64
           ",\"compared\":%" PRIu64 ",\"differing\":%" PRIu64 ",\"seconds\":%.3f,\"statuses\":{",
           replay->sent, replay->answered, replay->failed, replay->skipped, replay->other,
           replay->unreadable, replay->compared, replay->differing, seconds);
    for (int i = 0; i < 1000; i++) {
        if (!replay->statuses[i])
            continue;
        printf("%s\"%d\":%" PRIu64, first ? "" : ",", i, replay->statuses[i]);
        first = false;
    }
    printf("},\"latencyMs\":{\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"max\":%.3f},\"lateMs\":%.3f}"
           "\n",
           percentile_ms(replay, 0.5), percentile_ms(replay, 0.9), percentile_ms(replay, 0.99),
           (double)replay->latency_max_us / 1000, (double)replay->late_max_ns / 1e6);
}

static void print_table(const struct replay *replay, double seconds)
{
    printf("sent       %" PRIu64 " in %.1f s\n", replay->sent, seconds);
    printf("answered   %" PRIu64 "\n", replay->answered);
    for (int i = 0; i < 1000; i++) {
        if (replay->statuses[i])
            printf("  %3d      %" PRIu64 "\n", i, replay->statuses[i]);
    }
    if (replay->failed)
        printf("failed     %" PRIu64 " (%s)\n", replay->failed, replay->first_failure.text);
    if (replay->skipped)
        printf("skipped    %" PRIu64 " whose bodies were not recorded (--without-bodies sends them "
               "without)\n",
               replay->skipped);
    if (replay->other)
        printf("no request %" PRIu64 " lines\n", replay->other);
    if (replay->unreadable)
        printf("unreadable %" PRIu64 " lines (%s)\n", replay->unreadable,
               replay->first_unreadable.text);
    printf("differing  %" PRIu64 " of %" PRIu64 " whose status was recorded\n", replay->differing,
           replay->compared);
    for (size_t i = 0; i < DIFFERENCES_SHOWN && replay->differences[i]; i++)
        printf("  %s\n", replay->differences[i]);
    if (replay->answered)
        printf("latency    p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, max %.1f ms\n",
               percentile_ms(replay, 0.5), percentile_ms(replay, 0.9), percentile_ms(replay, 0.99),
               (double)replay->latency_max_us / 1000);
    if (replay->late_max_ns > 100000000)
        printf("late       up to %.1f s: the server or --concurrency was too slow for the rate\n",
               (double)replay->late_max_ns / 1e9);
}

/* --- the command ----------------------------------------------------------------------------- */

static int read_positive(const char *text, const char *name, double max, double *value,
                         struct cn_err *err)
{
    char *end = NULL;
    if (!text)
        return 0;
    *value = strtod(text, &end);
    return !*text || *end || !(*value > 0) || *value > max
               ? cn_err_set(err, CN_EINVALID,
                            "--%s must be a number above 0, at most %g, not "
                            "\"%.40s\"",
                            name, max, text)
               : 0;
}

static int read_options(struct replay *replay, struct cn_err *err)
{
    const struct options *options = replay->options;
    double concurrency = 10;
    int rc = read_positive(options->rate, "rate", 1e6, &replay->rate, err);
    if (rc == 0)
        rc = read_positive(options->speed, "speed", 1e6, &replay->speed, err);
    if (rc == 0)
        rc = read_positive(options->concurrency, "concurrency", CONCURRENCY_MAX, &concurrency, err);
    if (rc == 0 && options->rate && options->speed)
        rc = cn_err_set(err, CN_EINVALID, "--rate and --speed exclude each other");
    const char *to = options->to ? options->to : "http://127.0.0.1:8787";
    if (rc == 0 && strncmp(to, "http://", 7) != 0 && strncmp(to, "https://", 8) != 0)
        rc = cn_err_set(err, CN_EINVALID, "--to must be a URL such as http://127.0.0.1:8787");
    if (rc < 0)
        return rc;
    size_t size = strlen(to);
    while (size > 0 && to[size - 1] == '/')
        size--;
    replay->to = cn_strndup(to, size);
    replay->concurrency = concurrency < 1 ? 1 : (unsigned)concurrency;
    return 0;
}

static int open_file(struct replay *replay, struct cn_err *err)
{
    const char *path = replay->args->rest[0];
    bool is_stdin = strcmp(path, "-") == 0;
    replay->file = is_stdin ? stdin : fopen(path, "re");
    if (!replay->file)
        return cn_err_errno(err, errno, "cannot read %s", path);
    long size = 0;
    if (!is_stdin && fseek(replay->file, 0, SEEK_END) == 0) {
        size = ftell(replay->file);
        rewind(replay->file);
    }
    cn_progress_begin(&replay->progress, "replaying", size > 0 ? (uint64_t)size : 0, true);
    return 0;
}

static int send_all(struct replay *replay, struct cn_err *err)
{
    if (replay->options->dry_run) {
        for (read_next(replay); replay->has_next; read_next(replay))
            print_plan(replay);
        return 0;
    }
    replay->trust = cn_trust_new(NULL, err);
    if (!replay->trust)
        return err->code;
    signal(SIGPIPE, SIG_IGN);
    int rc = cn_loop_init(&replay->loop, err);
    if (rc < 0)
        return rc;
    struct cn_client_options options = {.trust = replay->trust,
                                        .connections_max = replay->concurrency,
                                        .connections_host_max = replay->concurrency,
                                        .requests_max = replay->concurrency};
    replay->client = cn_client_new(&replay->loop, &options);
    uv_timer_init(&replay->loop, &replay->timer);
    uv_signal_init(&replay->loop, &replay->interrupt);
    replay->timer.data = replay->interrupt.data = replay;
    uv_signal_start(&replay->interrupt, on_interrupt, SIGINT);
    uv_unref((uv_handle_t *)&replay->interrupt);
    replay->begun_ns = uv_hrtime();
    pump(replay);
    uv_run(&replay->loop, UV_RUN_DEFAULT);
    CN_ASSERT(uv_loop_close(&replay->loop) == 0);
    return 0;
}

/* The exit code of a replay that went to its end. */
static int verdict(const struct replay *replay)
{
    if (replay->options->dry_run)
        return 0;
    if (replay->sent && !replay->answered)
        return 1;
    return replay->options->verify && (replay->differing || replay->failed) ? 1 : 0;
}

static int run(const struct cn_args *args)
{
    struct cn_err err = {0};
    struct replay *replay = CN_NEW(struct replay);
    replay->args = args;
    replay->options = args->options;
    replay->first_ms = -1;
    if (args->rest_count != 1) {
        fprintf(stderr, "cairn: replay needs a FILE (-: standard input); `cairn help replay` "
                        "explains it\n");
        cn_free(replay);
        return 2;
    }
    int rc = read_options(replay, &err);
    int code = rc < 0 ? 2 : 1;
    if (rc == 0)
        rc = open_file(replay, &err);
    if (rc == 0)
        rc = send_all(replay, &err);
    cn_progress_end(&replay->progress);
    if (rc == 0) {
        double seconds = replay->begun_ns ? (double)(uv_hrtime() - replay->begun_ns) / 1e9 : 0;
        if (replay->options->json)
            print_json(replay, seconds);
        else
            print_table(replay, seconds);
        code = verdict(replay);
    } else {
        fprintf(stderr, "cairn: %s\n", err.text);
    }
    if (replay->file && replay->file != stdin)
        fclose(replay->file);
    for (size_t i = 0; i < DIFFERENCES_SHOWN; i++)
        cn_free(replay->differences[i]);
    cn_trust_free(replay->trust);
    free(replay->line);
    cn_free(replay->to);
    cn_free(replay);
    return code;
}

#define AT(member) offsetof(struct options, member)

static const struct cn_option flags[] = {
    {"dry-run", 0, NULL, NULL, "only say what would be done", AT(dry_run), 0},
    {"to", 0, "URL", NULL, "the server (http://127.0.0.1:8787)", AT(to), 0},
    {"rate", 0, "N", NULL, "requests per second", AT(rate), 0},
    {"speed", 0, "X", NULL, "as far apart as recorded, X times as fast", AT(speed), 0},
    {"concurrency", 0, "N", NULL, "under way at once (10)", AT(concurrency), 0},
    {"verify", 0, NULL, NULL, "exit code 1 if a status differs from the recorded one", AT(verify),
     0},
    {"keep-host", 0, NULL, NULL, "send the recorded Host, not that of the server", AT(keep_host),
     0},
    {"without-bodies", 0, NULL, NULL, "send requests whose body was not recorded, too",
     AT(without_bodies), 0},
    CN_OPTION_JSON(AT(json)),
};

const struct cn_command cn_cmd_replay = {
    .name = "replay",
    .usage = "FILE [OPTIONS]",
    .summary = "send recorded requests again and compare",
    .text =
        "Sends the requests of FILE (-: standard input) to a server and prints how many were "
        "answered\n"
        "how, which answers have another status than recorded, and how long they took. Each line "
        "is "
        "a\n"
        "JSON object: what `cairn tail --format json` or `wrangler tail --format json` wrote, "
        "or\n\n"
        "  {\"method\",\"url\",\"headers\"?,\"body\"?|\"bodyBase64\"?,\"status\"?,\"time\"?}\n\n"
        "A tail records no bodies: requests that had one are skipped and counted, unless\n"
        "--without-bodies. That of cairn records no headers either. As fast as --concurrency "
        "allows\n"
        "without --rate and --speed. Exit code 0: done; 1: nothing was answered, or with --verify "
        "a\n"
        "status differs or a request failed; 2: wrong command line.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
