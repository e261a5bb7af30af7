/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_d1.c - databases of D1: SQL, files of it in and out, and their past. The database
 * itself is the control API's, which is asked for it.
 *
 * A file goes in three steps, as the platform has it: where to (init), the file (v4_transfers.c),
 * its execution as one transaction (ingest). What goes out is made first, and its address is
 * answered. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/dump.h"
#include "text/percent.h"
#include "v4/v4.h"

#define TABLES_MAX 1000 /* that an export names */

static void append_database(struct cn_buf *json, const struct cn_depot_resource *resource)
{
    cn_buf_append_byte(json, '{');
    cn_v4_put_text(json, "uuid", resource->id);
    cn_v4_put_text(json, "name", resource->name);
    cn_v4_put_text(json, "version", "production");
    cn_buf_append_str(json, ",\"num_tables\":0,\"file_size\":0,\"running_in_region\":\"here\","
                            "\"created_at\":");
    cn_depot_append_time(json, resource->created_ms);
    cn_buf_append_byte(json, '}');
}

static int create_database(struct cn_control_call *call, struct cn_err *err)
{
    const char *name = cn_json_text(call->json, "name");
    char id[CN_DEPOT_ID_SIZE];
    if (!name || !*name || strlen(name) > 200)
        return cn_v4_fail(call, err, CN_EINVALID, 7400, "a database needs a name");
    cn_depot_uuid(id);
    int rc = cn_v4_create(call, "d1", name, id, 7502, err);
    if (rc < 0)
        return rc;
    struct cn_depot_resource made = {.id = id, .name = (char *)name, .created_ms = cn_v4_now()};
    struct cn_buf json = {0};
    append_database(&json, &made);
    return cn_control_result(call, &json);
}

int cn_v4_d1_databases(struct cn_control_call *call, struct cn_err *err)
{
    if (strcmp(call->method, "POST") == 0)
        return create_database(call, err);
    const char *name = cn_control_param(call, "name");
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    struct cn_buf items = {0};
    size_t count = 0;
    for (size_t i = 0; i < state->resource_count && cn_v4_is_first_page(call); i++) {
        const struct cn_depot_resource *resource = &state->resources[i];
        if (strcmp(resource->kind, "d1") != 0 || (name && !strstr(resource->name, name)))
            continue;
        cn_buf_append_str(&items, count++ ? "," : "");
        append_database(&items, resource);
    }
    cn_depot_state_unref(state);
    return cn_v4_list(call, &items, count);
}

int cn_v4_d1_database(struct cn_control_call *call, struct cn_err *err)
{
    const char *id = call->path[6];
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    const struct cn_depot_resource *resource = cn_depot_resource(state, "d1", id, NULL);
    struct cn_buf json = {0};
    if (!resource)
        resource = cn_depot_resource(state, "d1", NULL, id);
    if (resource)
        append_database(&json, resource);
    cn_depot_state_unref(state);
    if (!json.size)
        return cn_v4_fail(call, err, CN_ENOTFOUND, 7404, "there is no database %.60s", id);
    if (strcmp(call->method, "DELETE") != 0)
        return cn_control_result(call, &json);
    cn_buf_fini(&json);
    int rc = cn_v4_forget(call, "d1", id, err);
    return rc < 0 ? rc : cn_v4_answer_null(call);
}

static int check_database(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_depot_state *state = cn_depot_take(cn_v4_of(call)->depot);
    bool known = cn_depot_resource(state, "d1", call->path[6], NULL) != NULL;
    cn_depot_state_unref(state);
    return known ? 0
                 : cn_v4_fail(call, err, CN_ENOTFOUND, 7404, "there is no database %.60s",
                              call->path[6]);
}

/* Asks the control API at .../VERB for JSON; NULL with an error. The caller frees it. */
static struct cn_json *ask(struct cn_control_call *call, const char *method, struct cn_buf *target,
                           const struct cn_buf *body, struct cn_err *err)
{
    struct cn_buf out = {0};
    int status = cn_v4_forward(call, method, cn_buf_text(target), body, &out);
    int rc = cn_v4_forwarded(call, status, &out, 7500, err);
    struct cn_json *json = rc == 0 ? cn_json_parse((const char *)out.data, out.size, err) : NULL;
    cn_buf_fini(&out);
    cn_buf_fini(target);
    return json;
}

static void api_target(const struct cn_control_call *call, struct cn_buf *target, const char *verb)
{
    cn_buf_append_str(target, "/api/d1");
    cn_v4_segment(target, call->path[6], strlen(call->path[6]));
    cn_buf_printf(target, "/%s", verb);
}

static void object_target(const struct cn_control_call *call, struct cn_buf *target,
                          const char *verb)
{
    char *name = cn_sprintf("$d1/%s", call->path[6]);
    cn_buf_append_str(target, "/api/objects");
    cn_v4_segment(target, name, strlen(name));
    cn_buf_printf(target, "/db/%s", verb); /* the one object of a database */
    cn_free(name);
}

/* --- queries ------------------------------------------------------------------------------------
 */

/* .../query, .../raw: with the names of columns apart. */
int cn_v4_d1_query(struct cn_control_call *call, struct cn_err *err)
{
    static const char *const members[] = {"sql", "params", "batch"};
    bool raw = strcmp(call->path[7], "raw") == 0;
    struct cn_buf target = {0}, body = {0}, result = {0};
    int rc = check_database(call, err);
    if (rc < 0)
        return rc;
    cn_buf_printf(&body, "{\"rows\":%s", raw ? "true" : "false");
    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        const struct cn_json *value = cn_json_find(call->json, members[i]);
        if (!value)
            continue;
        cn_buf_printf(&body, ",\"%s\":", members[i]);
        cn_json_write(&body, value);
    }
    cn_buf_append_byte(&body, '}');
    api_target(call, &target, "query");
    struct cn_json *json = ask(call, "POST", &target, &body, err);
    const struct cn_json *results = cn_json_find(json, "results");
    if (results)
        cn_json_write(&result, results);
    cn_json_free(json);
    cn_buf_fini(&body);
    return result.size ? cn_control_result(call, &result) : err->code;
}

/* --- files in -----------------------------------------------------------------------------------
 */

static int begin_import(struct cn_control_call *call, struct cn_err *err)
{
    const char *etag = cn_json_text(call->json, "etag");
    struct cn_buf url = {0}, json = {0};
    char name[33];
    if (!etag || strlen(etag) != 32)
        return cn_v4_fail(call, err, CN_EINVALID, 7400, "\"etag\" is the MD5 of the file");
    int rc = cn_v4_transfer_begin(call, etag, name, &url, err);
    if (rc == 0) {
        cn_buf_append_str(&json, "{\"success\":true,\"type\":\"import\",\"messages\":[]");
        cn_v4_put_text(&json, "filename", name);
        cn_v4_put_text(&json, "upload_url", cn_buf_text(&url));
        cn_buf_append_byte(&json, '}');
    }
    cn_buf_fini(&url);
    return rc < 0 ? rc : cn_control_result(call, &json);
}

static int append_bookmark(struct cn_control_call *call, struct cn_buf *json, const char *name,
                           struct cn_err *err)
{
    struct cn_buf target = {0};
    api_target(call, &target, "bookmark");
    struct cn_json *moment = ask(call, "GET", &target, NULL, err);
    const char *bookmark = cn_json_text(moment, "bookmark");
    if (moment)
        cn_v4_put_text(json, name, bookmark ? bookmark : "");
    int rc = moment ? 0 : err->code;
    cn_json_free(moment);
    return rc;
}

static int ingest(struct cn_control_call *call, struct cn_err *err)
{
    const char *name = cn_json_text(call->json, "filename");
    const char *etag = cn_json_text(call->json, "etag");
    struct cn_buf sql = {0}, target = {0}, json = {0};
    int rc = cn_v4_transfer_take(call, name ? name : "", etag ? etag : "", &sql, err);
    if (rc < 0)
        return rc;
    api_target(call, &target, "import");
    struct cn_json *answer = ask(call, "POST", &target, &sql, err);
    cn_buf_fini(&sql);
    if (!answer)
        return err->code;
    const struct cn_json *results = cn_json_find(answer, "results");
    const struct cn_json *meta = cn_json_find(results, "meta");
    cn_buf_append_str(&json, "{\"success\":true,\"type\":\"import\",\"status\":\"complete\","
                             "\"messages\":[]");
    rc = append_bookmark(call, &json, "at_bookmark", err);
    cn_buf_printf(&json, ",\"result\":{\"num_queries\":%lld",
                  (long long)cn_json_int(results, "count"));
    if (rc == 0)
        rc = append_bookmark(call, &json, "final_bookmark", err);
    cn_buf_append_str(&json, ",\"meta\":");
    if (meta)
        cn_json_write(&json, meta);
    else
        cn_buf_append_str(&json, "{}");
    cn_buf_append_str(&json, "}}");
    cn_json_free(answer);
    if (rc == 0)
        return cn_control_result(call, &json);
    cn_buf_fini(&json);
    return rc;
}

int cn_v4_d1_import(struct cn_control_call *call, struct cn_err *err)
{
    const char *action = cn_json_text(call->json, "action");
    int rc = check_database(call, err);
    if (rc < 0)
        return rc;
    if (action && strcmp(action, "init") == 0)
        return begin_import(call, err);
    if (action && strcmp(action, "ingest") == 0)
        return ingest(call, err);
    return cn_v4_fail(call, err, CN_EINVALID, 7400,
                      "an import is \"init\" or \"ingest\", which answers when it is done");
}

/* --- files out ----------------------------------------------------------------------------------
 */

/* A file that an export makes. */
struct out_file {
    struct cn_v4_export *export;
    int fd;
};

static int write_piece(void *data, const void *bytes, size_t size, struct cn_err *err)
{
    struct out_file *file = data;
    int rc = cn_v4_export_take(file->export, size, err);
    return rc < 0 ? rc : cn_v4_write_all(file->fd, bytes, size, err);
}

static int open_file(struct out_file *file, struct cn_v4_export *export, const char *path,
                     struct cn_err *err)
{
    *file = (struct out_file){export, open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    return file->fd < 0 ? cn_err_errno(err, errno, "the export cannot be written") : 0;
}

/* A copy of the database at `path`. 1: it is there; 0: nothing was ever written. */
static int copy_database(struct cn_v4_export *export, const char *path, struct cn_err *err)
{
    struct cn_control_call *call = export->call;
    struct cn_buf target = {0}, out = {0};
    struct out_file file;
    struct cn_v4_sink sink = {.write = write_piece, .data = &file};
    int rc = open_file(&file, export, path, err);
    if (rc < 0)
        return rc;
    object_target(call, &target, "export");
    int status = cn_v4_forward_to(call, "GET", cn_buf_text(&target), &sink, &out);
    if (sink.err.code) {
        *err = sink.err;
        rc = err->code;
    } else if (status != 404) {
        rc = cn_v4_forwarded(call, status, &out, 7500, err);
    }
    close(file.fd);
    cn_buf_fini(&target);
    cn_buf_fini(&out);
    return rc < 0 ? rc : status != 404;
}

/* Each table once, however often it is asked for. */
static int dump_listed(struct cn_disk *disk, const char *copy, const struct cn_json *tables,
                       struct cn_dump *dump, struct cn_err *err)
{
    struct cn_map seen;
    int rc = 0;
    cn_map_init(&seen);
    for (const struct cn_json *table = tables->first; table && rc == 0; table = table->next) {
        const char *name = table->kind == CN_JSON_STRING ? table->text : "";
        if (cn_map_find(&seen, name, strlen(name)))
            continue;
        cn_map_set(&seen, name, strlen(name), &seen);
        dump->table = name;
        rc = seen.count > TABLES_MAX
                 ? cn_err_set(err, CN_EINVALID, "an export names at most %d tables", TABLES_MAX)
                 : cn_dump_sql(disk, copy, dump, err);
    }
    cn_map_fini(&seen);
    return rc;
}

static int dump_tables(struct cn_v4_export *export, const char *copy, struct cn_dump *dump,
                       struct cn_err *err)
{
    const struct cn_json *options = cn_json_find(export->call->json, "dump_options");
    const struct cn_json *tables = cn_json_find(options, "tables");
    const struct cn_json *no_schema = cn_json_find(options, "no_schema");
    const struct cn_json *no_data = cn_json_find(options, "no_data");
    struct cn_disk *disk = cn_disk_system_new(export->folder);
    if (!disk)
        return cn_err_set(err, CN_ENOTFOUND, "cannot open %s", export->folder);
    dump->no_schema = no_schema && no_schema->boolean;
    dump->no_data = no_data && no_data->boolean;
    int rc = tables && tables->first ? dump_listed(disk, copy, tables, dump, err)
                                     : cn_dump_sql(disk, copy, dump, err);
    cn_disk_system_free(disk);
    return rc;
}

/* The SQL of the database in the export's file. */
static int dump_database(struct cn_v4_export *export, struct cn_err *err)
{
    char *path = cn_sprintf("%s/%s", export->folder, export->name);
    char *copy = cn_sprintf("%s.copy", path), *copy_name = cn_sprintf("%s.copy", export->name);
    struct out_file file = {.fd = -1};
    int copied = copy_database(export, copy, err);
    int rc = copied < 0 ? copied : open_file(&file, export, path, err);
    struct cn_dump dump = {.write = write_piece, .data = &file};
    if (rc == 0 && copied)
        rc = dump_tables(export, copy_name, &dump, err);
    if (file.fd >= 0)
        close(file.fd);
    (void)unlink(copy); /* may not exist */
    cn_free(path);
    cn_free(copy);
    cn_free(copy_name);
    return rc;
}

int cn_v4_d1_export(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_buf url = {0}, json = {0};
    struct cn_v4_export export;
    int rc = check_database(call, err);
    if (rc == 0)
        rc = cn_v4_export_begin(call, &export, err);
    if (rc < 0)
        return rc;
    cn_buf_append_str(&json, "{\"success\":true,\"type\":\"export\",\"status\":\"complete\","
                             "\"messages\":[]");
    rc = dump_database(&export, err);
    if (rc == 0)
        rc = append_bookmark(call, &json, "at_bookmark", err);
    rc = cn_v4_export_end(&export, rc, &url);
    cn_buf_append_str(&json, ",\"result\":{");
    cn_v4_put_text(&json, "filename", export.name);
    cn_v4_put_text(&json, "signed_url", cn_buf_text(&url));
    cn_buf_append_str(&json, "}}");
    cn_buf_fini(&url);
    if (rc == 0)
        return cn_control_result(call, &json);
    cn_buf_fini(&json);
    return rc;
}

/* --- the past -----------------------------------------------------------------------------------
 */

static int get_bookmark(struct cn_control_call *call, struct cn_err *err)
{
    const char *time = cn_control_param(call, "timestamp");
    struct cn_buf target = {0}, json = {0};
    api_target(call, &target, "bookmark");
    if (time) {
        cn_buf_append_str(&target, "?time=");
        cn_percent_encode(&target, time, strlen(time), "-_");
    }
    struct cn_json *answer = ask(call, "GET", &target, NULL, err);
    const char *bookmark = cn_json_text(answer, "bookmark");
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "bookmark", bookmark ? bookmark : "");
    cn_buf_append_byte(&json, '}');
    cn_json_free(answer);
    if (answer)
        return cn_control_result(call, &json);
    cn_buf_fini(&json);
    return err->code;
}

static int restore(struct cn_control_call *call, struct cn_err *err)
{
    const char *bookmark = cn_control_param(call, "bookmark");
    const char *time = cn_control_param(call, "timestamp");
    struct cn_buf target = {0}, body = {0}, json = {0};
    if (!bookmark && !time)
        return cn_v4_fail(call, err, CN_EINVALID, 7400,
                          "to which moment? A bookmark or a timestamp is missing");
    object_target(call, &target, "restore");
    cn_buf_append_byte(&body, '{');
    cn_v4_put_text(&body, bookmark ? "bookmark" : "time", bookmark ? bookmark : time);
    cn_buf_append_byte(&body, '}');
    struct cn_json *answer = ask(call, "POST", &target, &body, err);
    const char *undo = cn_json_text(answer, "undo");
    cn_buf_fini(&body);
    cn_buf_append_byte(&json, '{');
    cn_v4_put_text(&json, "message", "restored");
    cn_v4_put_text(&json, "bookmark", bookmark ? bookmark : time);
    cn_v4_put_text(&json, "previous_bookmark", undo ? undo : "");
    cn_buf_append_byte(&json, '}');
    cn_json_free(answer);
    if (answer)
        return cn_control_result(call, &json);
    cn_buf_fini(&json);
    return err->code;
}

int cn_v4_d1_time_travel(struct cn_control_call *call, struct cn_err *err)
{
    int rc = check_database(call, err);
    if (rc < 0)
        return rc;
    return strcmp(call->method, "GET") == 0 ? get_bookmark(call, err) : restore(call, err);
}
