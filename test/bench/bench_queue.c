/* SPDX-License-Identifier: Apache-2.0 */
/* What a send, a receive and an acknowledgement of a hundred messages cost a queue that is empty
 * and one with a backlog: ten million messages of 100 bytes, or as many as the first argument says.
 * The two take turns, so that whatever else the machine does happens to both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/mem.h"
#include "base/rand.h"
#include "service/queue/queue.h"
#include "test/lib/service_rig.h"
#include "test/lib/test.h"

#define BATCH 100
#define WARM 200
#define ROUNDS 2000

/* The rig reports failures to the test harness, whose main() is not wanted here. */
void test_fail(const char *file, int line, const char *format, ...)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, format);
    abort();
}

static struct service_rig rig;
static struct cn_rand rand_state;

static double now_us(void)
{
    return (double)uv_hrtime() / 1000;
}

static struct cn_queue_call *new_batch(struct cn_namespace *ns)
{
    struct cn_queue_call *call = cn_queue_call_new(ns, CN_QUEUE_SEND);
    for (int i = 0; i < BATCH; i++) {
        char body[100];
        for (size_t k = 0; k < sizeof(body); k++)
            body[k] = (char)('0' + cn_rand_next(&rand_state) % 64);
        cn_queue_add(call, body, sizeof(body), CN_QUEUE_JSON, 0);
    }
    return call;
}

/* Sends, receives and acknowledges a batch; microseconds of each. */
static void run_round(struct cn_namespace *ns, double times[3])
{
    struct cn_queue_call *send = new_batch(ns);
    double start = now_us();
    service_rig_call(&rig, &send->base);
    double sent = now_us();
    struct cn_queue_call *receive = cn_queue_call_new(ns, CN_QUEUE_RECEIVE);
    receive->count_max = BATCH;
    receive->lease_ms = 60000;
    service_rig_call(&rig, &receive->base);
    double received = now_us();
    struct cn_queue_call *settle = cn_queue_call_new(ns, CN_QUEUE_SETTLE);
    settle->lease = receive->lease;
    settle->verdicts = cn_alloc_zero(receive->count * sizeof(*settle->verdicts));
    settle->verdict_count = receive->count;
    service_rig_call(&rig, &settle->base);
    double settled = now_us();
    cn_service_call_free(&settle->base);
    cn_service_call_free(&receive->base);
    cn_service_call_free(&send->base);
    times[0] = sent - start;
    times[1] = received - sent;
    times[2] = settled - received;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"send", "receive", "acknowledge"};
    static double times[2][3][ROUNDS];
    long backlog = argc > 1 ? strtol(argv[1], NULL, 10) : 10000000;
    char dir[] = "/tmp/cairn-bench-queue-XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR);
    cn_rand_init(&rand_state, 1);
    struct cn_disk *disk = cn_disk_system_new(dir);
    struct cn_err err;
    struct cn_namespace *queues[2];
    service_rig_open(&rig, disk, &cn_queue_class, "$queue/empty");
    queues[0] = rig.ns;
    if (cn_node_namespace(rig.node, "$queue/full", &queues[1], &err) < 0)
        abort();
    for (long i = 0; i < backlog; i += BATCH) {
        struct cn_queue_call *send = new_batch(queues[1]);
        service_rig_call(&rig, &send->base);
        cn_service_call_free(&send->base);
    }
    /* What loading left to be written is not what is measured. */
    if (cn_store_checkpoint(rig.store, &err) < 0)
        fprintf(stderr, "%s\n", err.text);
    for (int i = -WARM; i < ROUNDS; i++) {
        for (int which = 0; which < 2; which++) {
            double round[3];
            run_round(queues[which], round);
            for (int k = 0; k < 3 && i >= 0; k++)
                times[which][k][i] = round[k];
        }
    }
    printf("queue, us per message, median and mean of %d batches of %d:\n", ROUNDS, BATCH);
    for (int k = 0; k < 3; k++) {
        double median[2], mean[2] = {0, 0};
        for (int which = 0; which < 2; which++) {
            for (int i = 0; i < ROUNDS; i++)
                mean[which] += times[which][k][i] / ROUNDS / BATCH;
            qsort(times[which][k], ROUNDS, sizeof(double), compare);
            median[which] = times[which][k][ROUNDS / 2] / BATCH;
        }
        printf("  %-11s  empty %.2f %.2f   %ld waiting %.2f %.2f   ratio %.2f %.2f\n", names[k],
               median[0], mean[0], backlog, median[1], mean[1], median[1] / median[0],
               mean[1] / mean[0]);
    }
    service_rig_close(&rig);
    cn_disk_system_free(disk);
    char *remove = cn_sprintf("rm -rf %s", dir);
    int rc = system(remove);
    cn_free(remove);
    return rc;
}
