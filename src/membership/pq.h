/* SPDX-License-Identifier: Apache-2.0 */
/* membership/pq.h - libpq, loaded when a node is to be part of a cluster.
 *
 * The program is not linked with it: a single node needs no PostgreSQL, nor the libraries that its
 * client brings. A machine that lacks the package is told so when a cluster is asked for.
 *
 * Threads:   cn_pq_load() from any; the functions as libpq says: one thread for a connection.
 * Ownership: the table is the process's, and stays. */
#ifndef CN_MEMBERSHIP_PQ_H
#define CN_MEMBERSHIP_PQ_H
#include <libpq-fe.h>

struct cn_err;

/* The functions that are used; each is a field of the same name. */
#define CN_PQ_FUNCTIONS(EACH)  \
    EACH(PQconninfoParse)      \
    EACH(PQconninfoFree)       \
    EACH(PQconnectStartParams) \
    EACH(PQconnectPoll)        \
    EACH(PQfinish)             \
    EACH(PQstatus)             \
    EACH(PQsocket)             \
    EACH(PQhost)               \
    EACH(PQport)               \
    EACH(PQserverVersion)      \
    EACH(PQerrorMessage)       \
    EACH(PQsetNoticeReceiver)  \
    EACH(PQsetnonblocking)     \
    EACH(PQflush)              \
    EACH(PQconsumeInput)       \
    EACH(PQisBusy)             \
    EACH(PQgetResult)          \
    EACH(PQclear)              \
    EACH(PQnotifies)           \
    EACH(PQfreemem)            \
    EACH(PQsendQuery)          \
    EACH(PQsendPrepare)        \
    EACH(PQsendQueryParams)    \
    EACH(PQsendQueryPrepared)  \
    EACH(PQenterPipelineMode)  \
    EACH(PQpipelineSync)       \
    EACH(PQresultStatus)       \
    EACH(PQresultErrorField)   \
    EACH(PQresultErrorMessage) \
    EACH(PQntuples)            \
    EACH(PQnfields)            \
    EACH(PQgetisnull)          \
    EACH(PQgetvalue)           \
    EACH(PQgetlength)

struct cn_pq {
#define CN_PQ_FIELD(name) __typeof__(name) *name;
    CN_PQ_FUNCTIONS(CN_PQ_FIELD)
#undef CN_PQ_FIELD
};

/* 0, or CN_EUNSUPPORTED with a sentence that names the package. */
int cn_pq_load(const struct cn_pq **pq, struct cn_err *err);

#endif
