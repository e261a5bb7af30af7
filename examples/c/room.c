/* SPDX-License-Identifier: Apache-2.0 */
/* A chat room with hibernation: who is here is what its sockets say, what was said is in SQL. The
 * object keeps nothing in memory, so it may leave it at any time; everybody stays connected, and
 * the next message brings it back.
 *
 *     return env.ROOMS.getByName("lobby").fetch(request);   // "Upgrade: websocket", ?name=Ada
 *
 * Teaches: accepting a socket, tags, attachments, JSON both ways, broadcasting, a rate limit that
 * lives with the socket. */
#include <cairn.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 2000
/* A client may say so much at once, and then so much each second. */
#define BURST 10
#define PER_SECOND 2

/* What is attached to a socket. */
struct member {
    char name[130];
    double allowance, at; /* messages it may send now; when that was so */
};

static int attach(cairn_object *object, cairn_socket *socket, const struct member *member)
{
    cairn_builder *kept = cairn->builder(object);
    cairn->build_object(kept);
    cairn->build_name(kept, "name");
    cairn->build_text(kept, member->name, strlen(member->name));
    cairn->build_name(kept, "allowance");
    cairn->build_number(kept, member->allowance);
    cairn->build_name(kept, "at");
    cairn->build_number(kept, member->at);
    cairn->build_end(kept);
    return cairn->socket_attach(object, socket, kept);
}

static void read_member(cairn_object *object, cairn_socket *socket, struct member *member)
{
    const cairn_value *value = cairn->socket_attachment(object, socket);
    const char *name = cairn->value_text(cairn->value_get(value, "name"), NULL);
    *member = (struct member){"", 0, 0};
    snprintf(member->name, sizeof(member->name), "%s", name ? name : "");
    cairn->value_number(cairn->value_get(value, "allowance"), &member->allowance);
    cairn->value_number(cairn->value_get(value, "at"), &member->at);
}

static void put_text(cairn_builder *out, const char *name, const char *text, size_t size)
{
    cairn->build_name(out, name);
    cairn->build_text(out, text, size);
}

static void put_word(cairn_builder *out, const char *name, const char *text)
{
    put_text(out, name, text, strlen(text));
}

static void put_int(cairn_builder *out, const char *name, int64_t number)
{
    cairn->build_name(out, name);
    cairn->build_int(out, number);
}

/* Sends what was built as JSON. */
static int tell(cairn_object *object, cairn_socket *socket, cairn_builder *message)
{
    size_t size;
    const char *text = cairn->json_write(object, message, &size);
    int rc = text ? cairn->socket_send(object, socket, 1, text, size) : CAIRN_ERROR;
    return rc < 0 ? rc : 0;
}

static int refuse(cairn_object *object, cairn_socket *socket, const char *reason)
{
    cairn_builder *message = cairn->builder(object);
    cairn->build_object(message);
    put_word(message, "type", "refused");
    put_word(message, "reason", reason);
    cairn->build_end(message);
    return tell(object, socket, message);
}

/* --- who is here ------------------------------------------------------------------------------ */

struct names {
    cairn_object *object;
    cairn_socket *except; /* it is leaving */
    char (*items)[130];
    size_t count, room;
};

static int add_name(void *data, cairn_socket *socket)
{
    struct names *names = data;
    struct member member;
    if (socket == names->except)
        return 0;
    read_member(names->object, socket, &member);
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], member.name) == 0)
            return 0; /* another tab of the same person */
    }
    if (names->count == names->room) {
        size_t room = names->room ? 2 * names->room : 16;
        void *items = realloc(names->items, room * sizeof(*names->items));
        if (!items)
            return cairn->error(names->object, NULL, "there is no memory left");
        names->items = items;
        names->room = room;
    }
    memcpy(names->items[names->count++], member.name, sizeof(member.name));
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int tell_who_is_here(cairn_object *object, cairn_socket *except)
{
    struct names names = {object, except, NULL, 0, 0};
    size_t size;
    int rc = cairn->socket_list(object, NULL, add_name, &names);
    if (names.count)
        qsort(names.items, names.count, sizeof(*names.items), by_name);
    cairn_builder *message = cairn->builder(object);
    cairn->build_object(message);
    put_word(message, "type", "here");
    cairn->build_name(message, "names");
    cairn->build_array(message);
    for (size_t i = 0; i < names.count; i++)
        cairn->build_text(message, names.items[i], strlen(names.items[i]));
    cairn->build_end(message);
    cairn->build_end(message);
    free(names.items);
    const char *text = rc == 0 ? cairn->json_write(object, message, &size) : NULL;
    /* One that is leaving is closed, and gets nothing. */
    return text && cairn->socket_broadcast(object, NULL, 1, text, size) >= 0 ? 0 : CAIRN_ERROR;
}

/* --- coming ----------------------------------------------------------------------------------- */

static int create(cairn_object *object, void **instance)
{
    return cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY "
                                   "AUTOINCREMENT, name TEXT, text TEXT, at INTEGER)");
}

/* ?name=... of the URL, decoded. */
static void name_of(const char *url, char *name, size_t size)
{
    const char *at = strstr(url, "?name=");
    size_t used = 0;
    if (!at)
        at = strstr(url, "&name=");
    for (at = at ? at + 6 : ""; *at && *at != '&' && *at != '#' && used + 1 < size; at++) {
        char digits[3] = {0};
        if (*at == '%' && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2])) {
            memcpy(digits, at + 1, 2);
            name[used++] = (char)strtol(digits, NULL, 16);
            at += 2;
        } else {
            name[used++] = *at == '+' ? ' ' : *at;
        }
    }
    name[used] = '\0';
}

static int send_history(cairn_object *object, cairn_socket *socket)
{
    cairn_statement *rows = cairn->sql_prepare(
        object, "SELECT * FROM (SELECT id, name, text, at FROM messages ORDER BY id DESC LIMIT "
                "100) ORDER BY id");
    cairn_builder *message = cairn->builder(object);
    int rc = rows ? 0 : CAIRN_ERROR;
    cairn->build_object(message);
    put_word(message, "type", "init");
    cairn->build_name(message, "state");
    cairn->build_object(message);
    cairn->build_name(message, "messages");
    cairn->build_array(message);
    while (rc == 0 && (rc = cairn->sql_step(rows)) == 1) {
        size_t name_size, size;
        const char *name = cairn->sql_column_text(rows, 1, &name_size);
        const char *text = cairn->sql_column_text(rows, 2, &size);
        cairn->build_object(message);
        put_int(message, "id", cairn->sql_column_int(rows, 0));
        put_text(message, "name", name, name_size);
        put_text(message, "text", text, size);
        put_int(message, "at", cairn->sql_column_int(rows, 3));
        cairn->build_end(message);
        rc = 0;
    }
    for (int i = 0; i < 3; i++)
        cairn->build_end(message);
    cairn->sql_finalize(rows);
    return rc < 0 ? rc : tell(object, socket, message);
}

static int fetch(cairn_object *object, void *instance, cairn_event *event)
{
    struct member member = {"", BURST, (double)cairn->now(object)};
    char tag[160];
    const char *tags[] = {tag};
    name_of(cairn->request_url(event), member.name, sizeof(member.name));
    snprintf(tag, sizeof(tag), "name:%s", member.name);
    cairn_socket *socket = cairn->socket_accept(event, tags, 1);
    int rc = socket ? attach(object, socket, &member) : CAIRN_ERROR;
    if (rc == 0)
        rc = cairn->socket_auto_response(object, "ping", "pong"); /* without waking the room */
    if (rc == 0)
        rc = send_history(object, socket);
    return rc < 0 ? rc : tell_who_is_here(object, NULL);
}

/* --- saying ----------------------------------------------------------------------------------- */

/* "@name ..." goes to every tab of that name, found by their tag, and is not kept. */
static int tell_aside(cairn_object *object, cairn_socket *from, const char *name, const char *text)
{
    const char *space = strchr(text, ' ');
    char to[130], tag[160], reason[200], from_tag[160];
    size_t size;
    snprintf(to, sizeof(to), "%.*s", (int)(space - text - 1), text + 1);
    snprintf(tag, sizeof(tag), "name:%s", to);
    snprintf(from_tag, sizeof(from_tag), "name:%s", name);
    if (!cairn->socket_count(object, tag)) {
        snprintf(reason, sizeof(reason), "Nobody called %s is here.", to);
        return refuse(object, from, reason);
    }
    cairn_builder *message = cairn->builder(object);
    cairn->build_object(message);
    put_word(message, "type", "aside");
    put_word(message, "name", name);
    put_word(message, "to", to);
    put_word(message, "text", space + 1);
    put_int(message, "at", cairn->now(object));
    cairn->build_end(message);
    const char *json = cairn->json_write(object, message, &size);
    int64_t sent = json ? cairn->socket_broadcast(object, tag, 1, json, size) : CAIRN_ERROR;
    if (sent >= 0 && strcmp(tag, from_tag) != 0)
        sent = cairn->socket_send(object, from, 1, json, size);
    return sent < 0 ? (int)sent : 0;
}

static int say(cairn_object *object, const char *name, const char *text)
{
    int64_t now = cairn->now(object), id = 0;
    size_t size;
    cairn_statement *insert =
        cairn->sql_prepare(object, "INSERT INTO messages(name, text, at) VALUES(?, ?, ?)");
    int rc = insert ? cairn->sql_bind_text(insert, 1, name, strlen(name)) : CAIRN_ERROR;
    if (rc == 0)
        rc = cairn->sql_bind_text(insert, 2, text, strlen(text));
    if (rc == 0)
        rc = cairn->sql_bind_int(insert, 3, now);
    if (rc == 0)
        rc = cairn->sql_step(insert);
    cairn->sql_finalize(insert);
    id = cairn->sql_last_rowid(object);
    if (rc == 0)
        rc = cairn->sql_exec(object, "DELETE FROM messages WHERE id <= (SELECT max(id) FROM "
                                     "messages) - 1000");
    if (rc < 0)
        return rc;
    cairn_builder *message = cairn->builder(object);
    cairn->build_object(message);
    put_word(message, "type", "message");
    put_int(message, "id", id);
    put_word(message, "name", name);
    put_word(message, "text", text);
    put_int(message, "at", now);
    cairn->build_end(message);
    const char *json = cairn->json_write(object, message, &size);
    /* Nobody reads it before it is on disk. */
    return json && cairn->socket_broadcast(object, NULL, 1, json, size) >= 0 ? 0 : CAIRN_ERROR;
}

static int socket_message(cairn_object *object, void *instance, cairn_socket *socket, int is_text,
                          const void *bytes, size_t size)
{
    struct member member;
    char text[4 * TEXT_MAX + 1];
    double now = (double)cairn->now(object);
    const cairn_value *message =
        is_text && size <= 8 * TEXT_MAX ? cairn->json_read(object, bytes, size) : NULL;
    const char *type = cairn->value_text(cairn->value_get(message, "type"), NULL);
    const char *given = cairn->value_text(cairn->value_get(message, "text"), &size);
    while (given && size && isspace((unsigned char)*given))
        given++, size--;
    while (given && size && isspace((unsigned char)given[size - 1]))
        size--;
    if (!type || strcmp(type, "say") != 0 || !given || !size || size > 4 * TEXT_MAX)
        return refuse(object, socket, "Say something of at most 2000 characters.");
    memcpy(text, given, size);
    text[size] = '\0';
    read_member(object, socket, &member);
    member.allowance += (now - member.at) / 1000 * PER_SECOND;
    if (member.allowance > BURST)
        member.allowance = BURST;
    member.at = now;
    if (member.allowance < 1)
        return refuse(object, socket, "Not so fast.");
    member.allowance--;
    int rc = attach(object, socket, &member);
    if (rc < 0)
        return rc;
    const char *space = *text == '@' ? strchr(text, ' ') : NULL;
    return space && space > text + 1 ? tell_aside(object, socket, member.name, text)
                                     : say(object, member.name, text);
}

static int socket_close(cairn_object *object, void *instance, cairn_socket *socket, int code,
                        const char *reason, int is_clean)
{
    return tell_who_is_here(object, socket);
}

static const struct cairn_class classes[] = {
    {.name = "Room",
     .create = create,
     .fetch = fetch,
     .socket_message = socket_message,
     .socket_close = socket_close},
};
CAIRN_MODULE(classes)
