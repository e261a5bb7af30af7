/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/postgres.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <libpq-fe.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/lib/test.h"

enum { NOBODY = 65534, WAIT_S = 60 };

static char bin[200];

void test_postgres_need(void)
{
    glob_t found;
    if (!*bin && glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) == 0) {
        const char *last = found.gl_pathv[found.gl_pathc - 1];
        snprintf(bin, sizeof(bin), "%.*s", (int)(strlen(last) - strlen("/initdb")), last);
        globfree(&found);
    }
    if (!*bin)
        test_skip("PostgreSQL is not installed (Debian package postgresql)");
}

/* --- processes ------------------------------------------------------------------------------- */

static void become_nobody(void)
{
    if (geteuid() == 0 && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
        _exit(126);
}

static pid_t start(const struct test_postgres *server, char *const argv[])
{
    char path[300], messages[100];
    snprintf(path, sizeof(path), "%s/%s", bin, argv[0]);
    snprintf(messages, sizeof(messages), "%s/messages", server->dir);
    pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid)
        return pid;
    become_nobody();
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != parent)
        _exit(126);
    setsid();
    int fd = open(messages, O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(fd, 1);
    dup2(fd, 2);
    if (chdir(server->dir) == 0)
        execv(path, argv);
    _exit(127);
}

static void show_messages(const struct test_postgres *server)
{
    char line[500], path[100];
    snprintf(path, sizeof(path), "%s/messages", server->dir);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        fputs(line, stderr);
    if (file)
        fclose(file);
}

static void run(const struct test_postgres *server, char *const argv[])
{
    int status = 0;
    pid_t pid = start(server, argv);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status)
        show_messages(server);
    CHECK_INT(0, status);
}

/* What a test that failed left behind. */
static char left[32][64];
static pid_t maker;

static void remove_dir(const char *dir)
{
    pid_t pid = fork();
    if (!pid) {
        execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

static void remove_left(void)
{
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]) && maker == getpid(); i++) {
        char path[100];
        long pid = 0;
        snprintf(path, sizeof(path), "%.63s/data/postmaster.pid", left[i]);
        FILE *file = *left[i] ? fopen(path, "r") : NULL;
        if (file && fscanf(file, "%ld", &pid) == 1 && pid > 1)
            kill((pid_t)pid, SIGQUIT);
        if (file)
            fclose(file);
        if (*left[i])
            remove_dir(left[i]);
    }
}

static void make_dir(struct test_postgres *server)
{
    *server = (struct test_postgres){.dir = "/tmp/cairn-pg-XXXXXX"};
    CHECK(mkdtemp(server->dir) != NULL);
    if (!maker)
        atexit(remove_left);
    maker = getpid();
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        if (!*left[i]) {
            snprintf(left[i], sizeof(left[i]), "%s", server->dir);
            break;
        }
    if (geteuid() == 0)
        CHECK_INT(0, chown(server->dir, NOBODY, NOBODY));
}

static void configure(const struct test_postgres *server, const char *format, ...)
{
    char path[100];
    va_list args;
    va_start(args, format);
    snprintf(path, sizeof(path), "%s/data/postgresql.conf", server->dir);
    FILE *file = fopen(path, "a");
    CHECK(file != NULL);
    vfprintf(file, format, args);
    fclose(file);
    va_end(args);
}

/* --- asking ---------------------------------------------------------------------------------- */

static struct {
    PGconn *(*connect)(const char *);
    PGresult *(*exec)(PGconn *, const char *);
    ConnStatusType (*status)(const PGconn *);
    void (*finish)(PGconn *);
    void (*clear)(PGresult *);
    ExecStatusType (*result)(const PGresult *);
    char *(*value)(const PGresult *, int, int);
    int (*rows)(const PGresult *);
    char *(*message)(const PGconn *);
} pq;

static void load(void)
{
    void *library = pq.connect ? NULL : dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    const struct {
        void **field;
        const char *name;
    } names[] = {{(void **)&pq.connect, "PQconnectdb"},   {(void **)&pq.exec, "PQexec"},
                 {(void **)&pq.status, "PQstatus"},       {(void **)&pq.finish, "PQfinish"},
                 {(void **)&pq.clear, "PQclear"},         {(void **)&pq.result, "PQresultStatus"},
                 {(void **)&pq.value, "PQgetvalue"},      {(void **)&pq.rows, "PQntuples"},
                 {(void **)&pq.message, "PQerrorMessage"}};
    if (pq.connect)
        return;
    CHECK(library != NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK((*names[i].field = dlsym(library, names[i].name)) != NULL);
}

/* False: it did not work, `text` says why. */
static bool try_ask(const struct test_postgres *server, const char *sql, char *text, size_t size)
{
    char conninfo[300];
    load();
    snprintf(conninfo, sizeof(conninfo),
             "host=%s user=cairn dbname=postgres connect_timeout=20 application_name=test "
             "options='-c synchronous_commit=local -c client_min_messages=warning'",
             server->dir);
    PGconn *conn = pq.connect(conninfo);
    PGresult *result = pq.status(conn) == CONNECTION_OK ? pq.exec(conn, sql) : NULL;
    ExecStatusType status = result ? pq.result(result) : PGRES_FATAL_ERROR;
    bool good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
    snprintf(text, size, "%s",
             !good                                              ? pq.message(conn)
             : status == PGRES_TUPLES_OK && pq.rows(result) > 0 ? pq.value(result, 0, 0)
                                                                : "");
    pq.clear(result);
    pq.finish(conn);
    return good;
}

const char *test_postgres_ask(const struct test_postgres *server, const char *sql)
{
    static char text[4096];
    if (!try_ask(server, sql, text, sizeof(text)))
        test_fail(__FILE__, __LINE__, "%s: %s", sql, text);
    return text;
}

void test_postgres_await(const struct test_postgres *server, const char *sql, const char *want)
{
    char text[4096];
    for (time_t end = time(NULL) + WAIT_S; time(NULL) < end; usleep(20000))
        if (try_ask(server, sql, text, sizeof(text)) && !strcmp(text, want))
            return;
    show_messages(server);
    test_fail(__FILE__, __LINE__, "%s: want %s, got %s", sql, want, text);
}

/* --- servers --------------------------------------------------------------------------------- */

void test_postgres_start(struct test_postgres *server)
{
    char text[1000];
    CHECK(!server->pid);
    for (time_t end = time(NULL) + WAIT_S; time(NULL) < end; usleep(20000)) {
        if (!server->pid) /* one that was killed leaves processes, which end a moment later */
            server->pid = start(server, (char *[]){"postgres", "-D", "data", NULL});
        if (waitpid(server->pid, NULL, WNOHANG) == server->pid)
            server->pid = 0;
        else if (try_ask(server, "SELECT 1", text, sizeof(text)))
            return;
    }
    show_messages(server);
    test_fail(__FILE__, __LINE__, "PostgreSQL does not start: %s", text);
}

void test_postgres_make(struct test_postgres *server, const char *standbys)
{
    make_dir(server);
    run(server, (char *[]){"initdb", "-D", "data", "-U", "cairn", "-A", "trust", "-E", "UTF8",
                           "--no-locale", "--no-sync", "--no-instructions", NULL});
    configure(server,
              "listen_addresses = ''\nunix_socket_directories = '%s'\nshared_buffers = 16MB\n"
              "max_connections = 40\nmax_wal_senders = 6\nwal_keep_size = 64MB\n"
              "synchronous_standby_names = '%s'\nautovacuum = off\n",
              server->dir, standbys);
    test_postgres_start(server);
}

void test_postgres_copy(struct test_postgres *server, const struct test_postgres *of,
                        const char *name)
{
    char conninfo[200], sql[200];
    make_dir(server);
    snprintf(conninfo, sizeof(conninfo), "host=%s user=cairn application_name=%s", of->dir, name);
    run(server, (char *[]){"pg_basebackup", "-D", "data", "-R", "-X", "stream", "-c", "fast",
                           "--no-sync", "-d", conninfo, NULL});
    configure(server, "unix_socket_directories = '%s'\n", server->dir);
    test_postgres_start(server);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM pg_stat_replication WHERE application_name = '%s' AND state = "
             "'streaming'",
             name);
    test_postgres_await(of, sql, "1");
}

void test_postgres_kill(struct test_postgres *server)
{
    if (!server->pid)
        return;
    kill(server->pid, SIGKILL);
    while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    server->pid = 0;
}

void test_postgres_promote(struct test_postgres *server)
{
    run(server, (char *[]){"pg_ctl", "promote", "-D", "data", "-w", NULL});
}

void test_postgres_end(struct test_postgres *server)
{
    if (!*server->dir)
        return;
    if (server->pid) {
        kill(server->pid, SIGQUIT);
        while (waitpid(server->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        server->pid = 0;
    }
    for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
        if (!strcmp(left[i], server->dir))
            *left[i] = 0;
    remove_dir(server->dir);
    *server = (struct test_postgres){0};
}
