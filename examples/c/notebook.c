/* SPDX-License-Identifier: Apache-2.0 */
/* Point-in-time undo: a notebook that can go back to any moment before a risky operation.
 *
 * A restore puts the WHOLE object back, so the list of bookmarks must live somewhere else: in an
 * object of its own. The restore happens when the object comes into memory the next time; abort()
 * makes that now.
 *
 *     const bookmark = await env.NOTEBOOKS.getByName("n").bookmark();
 *     await env.NOTEBOOKS.getByName("n").goTo(bookmark);
 *
 * Teaches: questions to history, an answer that leaves before the object ends. */
#include <cairn.h>
#include <string.h>

#define MARKS_KEPT "50"

static const cairn_value *argument(cairn_event *event, size_t index)
{
    return cairn->value_at(cairn->event_arguments(event), index);
}

/* Runs a statement with the texts and numbers of the event's arguments, and builds its rows if
 * asked to: all of them, or the first one (null if there is none). */
enum rows { NONE, FIRST, ALL };
static int run(cairn_object *object, cairn_event *event, const char *sql, size_t parameters,
               enum rows wanted)
{
    cairn_builder *out = cairn->event_result(event);
    cairn_statement *statement = cairn->sql_prepare(object, sql);
    int rc = statement ? 0 : CAIRN_ERROR, count = 0;
    for (size_t i = 0; i < parameters && rc == 0; i++) {
        size_t size;
        int64_t number;
        const char *text = cairn->value_text(argument(event, i), &size);
        if (text)
            rc = cairn->sql_bind_text(statement, (int)i + 1, text, size);
        else if (cairn->value_int(argument(event, i), &number) == 0)
            rc = cairn->sql_bind_int(statement, (int)i + 1, number);
        else
            rc = cairn->error(object, "TypeError", "argument %d is missing", (int)i + 1);
    }
    if (wanted == ALL)
        cairn->build_array(out);
    while (rc == 0 && (rc = cairn->sql_step(statement)) == 1) {
        rc = 0;
        if (wanted == NONE || (wanted == FIRST && count++))
            continue;
        cairn->build_object(out);
        for (int i = 0; i < cairn->sql_column_count(statement); i++) {
            size_t size;
            cairn->build_name(out, cairn->sql_column_name(statement, i));
            if (cairn->sql_column_kind(statement, i) == CAIRN_NUMBER) {
                cairn->build_int(out, cairn->sql_column_int(statement, i));
            } else { /* no column of these tables is NULL */
                const char *text = cairn->sql_column_text(statement, i, &size);
                cairn->build_text(out, text, size);
            }
        }
        cairn->build_end(out);
    }
    if (wanted == ALL)
        cairn->build_end(out);
    else if (wanted == FIRST && !count)
        cairn->build_null(out);
    cairn->sql_finalize(statement);
    return rc;
}

static int no_method(cairn_object *object)
{
    return cairn->error(object, "TypeError", "there is no such method");
}

/* --- the notebook ----------------------------------------------------------------------------- */

static int notebook_create(cairn_object *object, void **instance)
{
    return cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY "
                                   "AUTOINCREMENT, text TEXT NOT NULL)");
}

/* Answers the event with the bookmark. */
static void marked(cairn_object *object, void *instance, const struct cairn_reply *reply,
                   void *data)
{
    if (reply->error) {
        cairn->error(object, NULL, "%s", reply->error);
        cairn->event_fail(data);
        return;
    }
    cairn->build_value(cairn->event_result(data), reply->value);
    cairn->event_answer(data);
}

static void start_anew(cairn_object *object, void *instance, void *data)
{
    cairn->abort(object, "restarting on an earlier state");
}

/* The restore is asked for: the answer, which is the bookmark that undoes it, leaves first; then
 * this instance ends, and the next one starts on the restored database. */
static void asked(cairn_object *object, void *instance, const struct cairn_reply *reply, void *data)
{
    marked(object, instance, reply, data);
    if (!reply->error)
        cairn->timer_start(object, 0, start_anew, NULL);
}

static int go_to(cairn_object *object, cairn_event *event)
{
    const char *bookmark = cairn->value_text(argument(event, 0), NULL);
    if (!bookmark)
        return cairn->error(object, "TypeError", "goTo(bookmark) takes a text");
    int rc = cairn->restore(object, bookmark, asked, event);
    return rc < 0 ? rc : CAIRN_LATER;
}

static int notebook_call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    if (strcmp(method, "add") == 0)
        return run(object, event, "INSERT INTO notes (text) VALUES (?)", 1, NONE);
    if (strcmp(method, "list") == 0)
        return run(object, event, "SELECT id, text FROM notes ORDER BY id DESC LIMIT 200", 0, ALL);
    if (strcmp(method, "replace") == 0)
        return run(object, event, "UPDATE notes SET text = replace(text, ?, ?)", 2, NONE);
    if (strcmp(method, "clear") == 0)
        return run(object, event, "DELETE FROM notes", 0, NONE);
    if (strcmp(method, "goTo") == 0)
        return go_to(object, event);
    if (strcmp(method, "bookmark") != 0)
        return no_method(object);
    int rc = cairn->bookmark_now(object, marked, event);
    return rc < 0 ? rc : CAIRN_LATER;
}

/* --- the list of bookmarks -------------------------------------------------------------------- */

static int history_create(cairn_object *object, void **instance)
{
    return cairn->sql_exec(object, "CREATE TABLE IF NOT EXISTS marks (id INTEGER PRIMARY KEY "
                                   "AUTOINCREMENT, bookmark TEXT NOT NULL, label TEXT NOT NULL, "
                                   "at INTEGER NOT NULL)");
}

static int push(cairn_object *object, cairn_event *event)
{
    int rc = run(object, event,
                 "INSERT INTO marks (bookmark, label, at) VALUES (?, ?, "
                 "cast(unixepoch('subsec') * 1000 AS INTEGER))",
                 2, NONE);
    return rc < 0 ? rc
                  : cairn->sql_exec(object, "DELETE FROM marks WHERE id <= (SELECT max(id) FROM "
                                            "marks) - " MARKS_KEPT);
}

static int history_call(cairn_object *object, void *instance, cairn_event *event)
{
    const char *method = cairn->event_method(event);
    if (strcmp(method, "push") == 0)
        return push(object, event);
    if (strcmp(method, "list") == 0)
        return run(object, event, "SELECT id, bookmark, label, at FROM marks ORDER BY id DESC", 0,
                   ALL);
    if (strcmp(method, "find") == 0)
        return run(object, event, "SELECT id, bookmark, label, at FROM marks WHERE id = ?", 1,
                   FIRST);
    return no_method(object);
}

static const struct cairn_class classes[] = {
    {.name = "Notebook", .create = notebook_create, .call = notebook_call},
    {.name = "History", .create = history_create, .call = history_call},
};
CAIRN_MODULE(classes)
