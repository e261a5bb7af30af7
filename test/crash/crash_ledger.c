/* SPDX-License-Identifier: Apache-2.0 */
/* test/crash/crash_ledger.c - kills a process that writes to a store on the real disk, with
 * SIGKILL, at a random moment, and compares what the next one finds with what the dead one had
 * said.
 *
 * The child runs the model's workload and tells its parent through a pipe what it is about to
 * commit (I), that it did (C, with the LSN) and what the store called durable (A). The parent
 * enters that into its own model, kills the child after a random number of messages, reads what is
 * left in the pipe, opens the store itself and compares. The last intent may have been
 * carried out or not; everything said to be durable must be there. Then the next child goes on.
 *
 *     crash_ledger [long]      10 kills, or 100
 *
 * Beside crash_kill, whose lanes count upwards, this runs every kind of turn the model knows, with
 * history, and checks the directory after each kill. SIGKILL loses nothing that was given to the
 * operating system; power loss is crash_store's. */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/diag.h"
#include "store/check.h"
#include "store/history.h"
#include "store/store.h"
#include "test/lib/storemodel.h"

enum { OBJECTS = 16, MESSAGES_MAX = 600 };

struct message {
    char kind; /* I, C or A; E: the child has found something wrong */
    int object;
    uint64_t lsn;
    struct model_state state;
};
static_assert(sizeof(struct message) <= 4096, "written to the pipe in one piece");

struct rig {
    struct cn_disk *disk;
    struct cn_history *history;
    struct cn_store *store;
};

static int rig_open(struct rig *rig, struct cn_err *err)
{
    /* Little history: each check reads all of it. */
    struct cn_history_config history_config = {.disk = rig->disk, .size_max = 1 << 20};
    int rc = cn_history_open(&history_config, &rig->history, err);
    if (rc < 0)
        return rc;
    struct cn_store_config config = {.disk = rig->disk,
                                     .segment_size = 256 << 10,
                                     .log_live_size = 2 << 20,
                                     .dirty_size_max = 512 << 10,
                                     .open_files_max = 6,
                                     .history = cn_history_callbacks(rig->history)};
    rc = cn_store_open(&config, &rig->store, err);
    if (rc < 0)
        cn_history_close(rig->history);
    return rc;
}

static void rig_close(struct rig *rig)
{
    cn_store_close(rig->store);
    cn_history_close(rig->history);
}

/* ---- the child ---- */

static void send_message(int fd, const struct message *message)
{
    if (write(fd, message, sizeof(*message)) != sizeof(*message))
        _exit(1); /* the parent is gone */
}

static void send_intent(void *data, int object, const struct model_state *state)
{
    struct message message = {.kind = 'I', .object = object, .state = *state};
    send_message(*(int *)data, &message);
}

/* Works until it is killed. */
static _Noreturn void child_run(struct rig *rig, struct model *model, int fd)
{
    struct cn_err err = {0};
    struct message wrong = {.kind = 'E'};
    model->on_intent = send_intent;
    model->intent_data = &fd;
    int rc = rig_open(rig, &err);
    if (rc == 0)
        rc = model_open_namespaces(model, rig->store);
    while (rc == 0) {
        uint64_t lsn;
        rc = model_turn(model, rig->store, &lsn);
        if (rc == 0 && lsn > 0) {
            send_message(fd, &(struct message){.kind = 'C', .lsn = lsn});
            if (cn_rand_below(&model->rand, 4) == 0)
                rc = cn_store_wait(rig->store, lsn, &err);
        }
        send_message(fd, &(struct message){.kind = 'A', .lsn = cn_store_durable(rig->store)});
    }
    fprintf(stderr, "child: %s %s\n", err.text, model->why);
    send_message(fd, &wrong);
    _exit(1);
}

/* ---- the parent ---- */

struct ledger {
    struct model *model;
    struct message intent; /* announced, and not yet known to be committed */
    uint64_t acked_lsn, last_lsn;
    bool wrong;
};

static void enter(struct ledger *ledger, const struct message *message)
{
    switch (message->kind) {
    case 'I':
        ledger->intent = *message;
        break;
    case 'C':
        if (message->lsn > ledger->last_lsn && ledger->intent.kind)
            model_add(&ledger->model->objects[ledger->intent.object], message->lsn,
                      &ledger->intent.state);
        ledger->last_lsn = message->lsn > ledger->last_lsn ? message->lsn : ledger->last_lsn;
        ledger->intent.kind = 0;
        break;
    case 'A':
        ledger->acked_lsn = message->lsn > ledger->acked_lsn ? message->lsn : ledger->acked_lsn;
        break;
    default:
        ledger->wrong = true;
    }
}

static bool receive(int fd, struct ledger *ledger)
{
    struct message message;
    size_t got = 0;
    while (got < sizeof(message)) {
        ssize_t count = read(fd, (char *)&message + got, sizeof(message) - got);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        got += (size_t)count;
    }
    enter(ledger, &message);
    return true;
}

static int compare(struct rig *rig, struct ledger *ledger, char *why, size_t why_size)
{
    struct cn_err err = {0};
    struct cn_check_report report = {0};
    /* The last intent, if it is there, came after all else. */
    if (ledger->intent.kind)
        model_add(&ledger->model->objects[ledger->intent.object], UINT64_MAX - 1,
                  &ledger->intent.state);
    int rc = cn_check(rig->disk, &report, &err);
    if (rc == 0 && report.problem_count > 0)
        rc =
            cn_err_set(&err, CN_ECORRUPT, "the check finds %d problems", (int)report.problem_count);
    if (rc == CN_ENOTFOUND)
        rc = 0; /* killed before there was anything */
    if (rc == 0)
        rc = rig_open(rig, &err);
    if (rc < 0) {
        snprintf(why, why_size, "%s", err.text);
        return rc;
    }
    rc = model_open_namespaces(ledger->model, rig->store);
    if (rc == 0)
        rc = model_compare(ledger->model, rig->store, ledger->acked_lsn);
    snprintf(why, why_size, "%s", ledger->model->why);
    /* From here on LSNs are those of the store: the last intent, if it survived, gets a real one.
     */
    uint64_t last = cn_log_appended(cn_store_log(rig->store));
    for (int i = 0; i < ledger->model->object_count; i++) {
        struct model_object *object = &ledger->model->objects[i];
        struct model_version *version = &object->versions[object->version_count - 1];
        version->lsn = version->lsn > last ? last : version->lsn;
    }
    rig_close(rig);
    return rc;
}

/* One life and death of a child. 0, or -1 with why[]. */
static int kill_once(struct rig *rig, struct model *model, struct cn_rand *rand, char *why,
                     size_t why_size)
{
    int fds[2];
    uint64_t limit = 1 + cn_rand_below(rand, MESSAGES_MAX);
    if (pipe(fds) < 0)
        return -1;
    pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid == 0) {
        close(fds[0]);
        child_run(rig, model, fds[1]);
    }
    close(fds[1]);
    struct ledger ledger = {.model = model};
    bool alive = true;
    while (alive && limit-- > 0)
        alive = receive(fds[0], &ledger);
    kill(pid, SIGKILL);
    while (receive(fds[0], &ledger)) /* what it had said before */
        ;
    waitpid(pid, NULL, 0);
    close(fds[0]);
    cn_rand_next(&model->rand); /* the next child does something else */
    if (ledger.wrong) {
        snprintf(why, why_size, "the child found something wrong");
        return -1;
    }
    return compare(rig, &ledger, why, why_size) < 0 ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    bool is_long = argc > 1 && strcmp(argv[1], "long") == 0;
    const char *given = getenv("CAIRN_TEST_SEED"), *base = getenv("TMPDIR");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003;
    char path[256], why[MODEL_WHY_MAX] = "";
    static struct model model;
    struct rig rig = {0};
    struct cn_rand rand;
    int kills = is_long ? 100 : 10, done = 0, rc = 0;
    snprintf(path, sizeof(path), "%s/cairn-ledger-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(path) || !(rig.disk = cn_disk_system_new(path)))
        return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    cn_diag_setup(CN_DIAG_PRETTY, CN_DIAG_ERROR);
    cn_rand_init(&rand, seed);
    model_init(&model, seed + 1, OBJECTS);
    uint64_t start = cn_clock_mono_ns(cn_clock_system());
    for (; rc == 0 && done < kills; done++)
        rc = kill_once(&rig, &model, &rand, why, sizeof(why));
    uint64_t last = 0;
    for (int i = 0; i < OBJECTS; i++)
        last = model.objects[i].versions[model.objects[i].version_count - 1].lsn > last
                   ? model.objects[i].versions[model.objects[i].version_count - 1].lsn
                   : last;
    if (rc < 0)
        printf("FAIL kill %d: %s (CAIRN_TEST_SEED=%llu, data in %s)\n", done, why,
               (unsigned long long)seed, path);
    printf("%d kills, %llu commits in %.1f s\n", done, (unsigned long long)last,
           (double)(cn_clock_mono_ns(cn_clock_system()) - start) / 1e9);
    printf("%d passed, %d failed, 0 skipped\n", rc == 0, rc < 0);
    model_fini(&model);
    cn_disk_system_free(rig.disk);
    if (rc == 0 && !getenv("CAIRN_TEST_KEEP"))
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return rc < 0;
}
