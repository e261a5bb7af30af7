/* SPDX-License-Identifier: Apache-2.0 */
/* peer/pipe_private.h - what the parts of pipe.h tell each other: pipe.c has the connections,
 * their time and the life of it all, pipe_message.c frames and messages, either way, pipe_ask.c
 * whom we ask and our questions, pipe_answer.c who asks us and his.
 *
 * A *peer* is a lane of another disk that is asked; it has its questions, and at most one dial or
 * one connection. A *connection* (conn) is a stream with its channels: of one that we have dialed a
 * channel is a question of ours (struct cn_pipe_asked), of one that has come in a question of
 * theirs (struct cn_pipe_incoming). Numbers of channels are given by who asks, and used again when
 * the answer has come whole.
 *
 * A message that goes out (struct cn_pipe_out) is in one of four places: the list `ready` of its
 * connection, which is sent from by turns; `behind` another one of the same order that is not sent
 * yet (T3); nowhere, while it waits for ROOM; or it is sent. One that comes in pieces (struct
 * cn_pipe_in) waits for the budget in `starved`, first come, first served. */
#ifndef CN_PEER_PIPE_PRIVATE_H
#define CN_PEER_PIPE_PRIVATE_H
#include "base/handles.h"
#include "base/list.h"
#include "base/map.h"
#include "base/wire.h"
#include "peer/frame.h"
#include "peer/pipe.h"

struct cn_pipe_incoming; /* pipe_answer.c */
struct cn_pipe_peer;     /* pipe_ask.c */
struct cn_stream;

struct cn_pipe_out {
    struct cn_list link;
    struct cn_pipe_conn *conn; /* NULL: it is sent, or not begun */
    uint32_t channel;
    const uint8_t *head, *body;
    size_t head_size, body_size, at; /* at: how much is sent */
    uint64_t order;
    struct cn_list behind;     /* of struct cn_pipe_out */
    struct cn_list large_link; /* of conn->large, while it is large and not sent */
    bool announced, sent;
};

struct cn_pipe_in {
    struct cn_list link; /* of pipes->starved */
    struct cn_pipe_conn *conn;
    uint32_t channel;
    uint8_t *bytes; /* owned; NULL: not granted, or nobody wants it */
    size_t size, got;
    bool wanted, granted;
};

struct cn_pipe_conn {
    struct cn_list link; /* of pipes->conns */
    struct cn_pipes *pipes;
    struct cn_stream *stream;
    struct cn_frame_reader reader;
    struct cn_pipe_peer *peer; /* who is asked; NULL: it came in, or is over */
    struct cn_pipe_asker asker;
    bool came_in, up, over;
    uint64_t opened_ms, heard_ms, sent_ms;
    uint64_t took_ms, taken;       /* T7: when it last took something of what it is sent */
    uint64_t piece_ms;             /* and sent something of what it has room for */
    unsigned granted;              /* messages that it has room for */
    size_t came_bytes, left_bytes; /* of one that came in: questions, answers that wait */
    struct cn_list ready;          /* of struct cn_pipe_out */
    struct cn_list large;          /* of struct cn_pipe_out, by large_link */
    void **slots; /* owned: by channel - 1, a struct cn_pipe_asked or struct cn_pipe_incoming */
    uint32_t slot_count;
    uint32_t *free; /* owned: slots that are not used, of one that asks */
    uint32_t free_count;
};

struct cn_pipes {
    uv_loop_t *loop;
    struct cn_pipes_config config;
    struct cn_stream_lane *streams;
    uv_timer_t timer;
    bool timer_open;
    struct cn_list conns, starved;
    struct cn_map peers; /* struct key (pipe_ask.c) -> struct cn_pipe_peer, owned */
    struct cn_map disks; /* uint64_t -> struct known (the same), owned */
    struct cn_handles tickets;
    unsigned dials, in_count, granted_count;
    uint64_t last_number, ticked_ms;
    uint64_t session; /* T10 */
    struct cn_pipes_stats stats;
    bool freed;
    void (*closed)(void *data);
    void *closed_data;
};

/* --- greetings: T1 ---------------------------------------------------------------------------- */

struct cn_pipe_hello {
    uint32_t version_min, version_max;
    char cluster[CN_FRAME_CLUSTER_SIZE];
    uint64_t disk, life, to;
    uint32_t lane, to_lane;
    uint64_t features; /* none yet */
    uint64_t session;  /* T10 */
};

struct cn_pipe_welcome {
    uint32_t version; /* 0: refused */
    uint64_t disk, life;
    uint32_t lane, lane_count;
    uint64_t features;
};

extern const struct cn_wire_field cn_pipe_hello_fields[], cn_pipe_welcome_fields[];

/* --- pipe.c ----------------------------------------------------------------------------------- */

/* NULL: it is gone. */
struct cn_pipe_conn *cn_pipe_conn_new(struct cn_pipes *pipes, struct cn_stream_moved *moved);
void cn_pipe_conn_end(struct cn_pipe_conn *conn);
/* T6. Is false. */
bool cn_pipe_malformed(struct cn_pipe_conn *conn);
/* What has the channel; NULL: nothing. */
void *cn_pipe_slot(const struct cn_pipe_conn *conn, uint32_t channel);
void cn_pipe_slots_grow(struct cn_pipe_conn *conn, uint32_t channel); /* so that it has this one */
void cn_pipe_keep_time(struct cn_pipes *pipes); /* there is a connection, or a dial */
/* It may be that it was freed, and this was the last of it. */
void cn_pipe_end_if_empty(struct cn_pipes *pipes);

/* --- pipe_message.c --------------------------------------------------------------------------- */

void cn_pipe_send(struct cn_pipe_conn *conn, enum cn_frame_kind kind, uint32_t channel,
                  const void *body, size_t body_size, const void *more, size_t more_size);
void cn_pipe_send_struct(struct cn_pipe_conn *conn, enum cn_frame_kind kind,
                         const struct cn_wire_field *fields, const void *of);
/* Sends what is ready, as far as the stream takes it. */
void cn_pipe_pump(struct cn_pipe_conn *conn);

size_t cn_pipe_out_size(const struct cn_pipe_out *out);
void cn_pipe_out_init(struct cn_pipe_out *out);
void cn_pipe_out_enqueue(struct cn_pipe_conn *conn, struct cn_pipe_out *out);
/* It is sent, or will not be: those behind it go on. */
void cn_pipe_out_leave(struct cn_pipe_out *out);

/* T5: it does not take what it is sent. */
bool cn_pipe_is_deaf(const struct cn_pipe_conn *conn);
void cn_pipe_feed_starved(struct cn_pipes *pipes); /* there may be room again */
/* Of a frame LARGE. False: it is malformed. */
bool cn_pipe_in_size(const struct cn_frame *frame, size_t *size);
void cn_pipe_in_want(struct cn_pipe_conn *conn, struct cn_pipe_in *in, uint32_t channel,
                     size_t size);
/* False: it is none of this message. */
bool cn_pipe_in_piece(struct cn_pipe_in *in, const struct cn_frame *frame);
/* Gives back what it has of the budget, and its bytes unless they were taken. */
void cn_pipe_in_release(struct cn_pipes *pipes, struct cn_pipe_in *in);

/* --- pipe_ask.c ------------------------------------------------------------------------------- */

/* A frame of the one who is asked: the answer to our PIPE, those behind it. False: the connection
 * is over. */
bool cn_pipe_ask_welcome(struct cn_pipe_conn *conn, const struct cn_frame *frame);
bool cn_pipe_ask_frame(struct cn_pipe_conn *conn, const struct cn_frame *frame);
void cn_pipe_ask_lost(struct cn_pipe_peer *peer); /* its connection is over */
void cn_pipe_ask_drop(struct cn_pipe_asked *asked);
void cn_pipe_ask_tick(struct cn_pipes *pipes, uint64_t now);
void cn_pipe_ask_end(struct cn_pipes *pipes); /* all dials and questions */

/* --- pipe_answer.c ---------------------------------------------------------------------------- */

/* A frame of the one who asks. False: the connection is over. */
bool cn_pipe_answer_frame(struct cn_pipe_conn *conn, const struct cn_frame *frame);
void cn_pipe_answer_sent(struct cn_pipe_out *out); /* whole */
void cn_pipe_answer_drop(struct cn_pipe_incoming *incoming);

#endif
