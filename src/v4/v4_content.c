/* SPDX-License-Identifier: Apache-2.0 */
/* v4/v4_content.c - the modules of a version, as they were uploaded: a form with a part for
 * each, which could be uploaded again. `wrangler versions secret` does that.
 *
 *   C1  What goes out is what came in: names, kinds and bytes of the modules, and nothing else of
 *       the server's files. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "v4/v4.h"

/* The content type of a module of this kind: v4_upload.c reads them. */
static const char *type_of(const char *kind)
{
    static const struct {
        const char *kind, *type;
    } types[] = {
        {"ESModule", "application/javascript+module"}, {"CommonJS", "application/javascript"},
        {"CompiledWasm", "application/wasm"},          {"Text", "text/plain"},
        {"Data", "application/octet-stream"},          {"JSON", "application/json"},
        {"SourceMap", "application/source-map"},
    };
    for (size_t i = 0; kind && i < CN_ARRAY_COUNT(types); i++) {
        if (strcmp(types[i].kind, kind) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

/* A name within quotes: control characters are in none (D5). */
static void append_name(struct cn_buf *out, const char *member, const char *name)
{
    cn_buf_printf(out, "; %s=\"", member);
    for (; *name; name++) {
        if (*name == '"')
            cn_buf_append_str(out, "%22");
        else
            cn_buf_append_byte(out, (uint8_t)*name);
    }
    cn_buf_append_byte(out, '"');
}

static int append_module(struct cn_v4 *v4, const char *code, const struct cn_json *module,
                         const char *boundary, struct cn_buf *out, struct cn_err *err)
{
    const char *name = cn_json_text(module, "name");
    struct cn_buf bytes = {0};
    if (!name || !cn_depot_path_is_good(name, strlen(name)))
        return cn_err_set(err, CN_ECORRUPT, "a module of the version has no name");
    int rc = cn_depot_read_module(v4->depot, code, name, &bytes, err);
    if (rc == 0 && out->size + bytes.size > 2 * CN_V4_UPLOAD_MAX)
        rc = cn_err_set(err, CN_ELIMIT, "the modules are too large");
    if (rc == 0) {
        cn_buf_printf(out, "--%s\r\nContent-Disposition: form-data", boundary);
        append_name(out, "name", name);
        append_name(out, "filename", name);
        cn_buf_printf(out, "\r\nContent-Type: %s\r\n\r\n", type_of(cn_json_text(module, "type")));
        cn_buf_append(out, bytes.data, bytes.size);
        cn_buf_append_str(out, "\r\n");
    }
    cn_buf_fini(&bytes);
    return rc;
}

static int append_modules(struct cn_v4 *v4, const struct cn_depot_version *version,
                          const struct cn_json *file, const char *boundary, struct cn_buf *out,
                          struct cn_err *err)
{
    const struct cn_json *modules = cn_json_find(file, "modules");
    int rc = 0;
    for (const struct cn_json *item = modules ? modules->first : NULL; item && rc == 0;
         item = item->next)
        rc = append_module(v4, version->code, item, boundary, out, err);
    if (rc == 0)
        cn_buf_printf(out, "--%s--\r\n", boundary);
    return rc;
}

/* Of the version that `version` names, or the one that serves, or the newest. */
static const struct cn_depot_version *
find_version(struct cn_control_call *call, const struct cn_depot_script *script, struct cn_err *err)
{
    const char *id = cn_control_param(call, "version");
    const struct cn_depot_version *version =
        cn_depot_find_version(script, id ? id : cn_depot_serving(script));
    if (!version && !id && script->version_count)
        version = &script->versions[script->version_count - 1];
    if (!version)
        cn_v4_fail(call, err, CN_ENOTFOUND, 10146, "there is no such version");
    return version;
}

int cn_v4_content(struct cn_control_call *call, struct cn_err *err)
{
    struct cn_v4 *v4 = cn_v4_of(call);
    struct cn_depot_state *state = cn_depot_take(v4->depot);
    const struct cn_depot_script *script = cn_v4_script(call, state, 6, err);
    const struct cn_depot_version *version = script ? find_version(call, script, err) : NULL;
    struct cn_json *file = version ? cn_depot_read_version(v4->depot, version->id, err) : NULL;
    struct cn_buf out = {0};
    char boundary[33];
    cn_depot_digits(boundary); /* by chance: no module has it */
    int rc = file ? append_modules(v4, version, file, boundary, &out, err) : err->code;
    if (rc == 0) {
        const char *entry = cn_json_text(file, "main");
        if (entry)
            cn_control_field(call, "cf-entrypoint", entry);
        char *type = cn_sprintf("multipart/form-data; boundary=%s", boundary);
        cn_control_field(call, "x-cairn-content-type", type); /* where it stays for the answer */
        call->type = (char *)call->fields.data + call->fields.size - strlen(type) - 1;
        call->length = (int64_t)out.size;
        (void)call->write(call, out.data, out.size); /* whoever is gone needs none */
        cn_free(type);
    }
    cn_buf_fini(&out);
    cn_json_free(file);
    cn_depot_state_unref(state);
    return rc;
}
