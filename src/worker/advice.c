/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/advice.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "js/vm.h"
#include "worker/script.h"

/* --- a name on env that is not there ---------------------------------------------------------- */

/* What has such a method, and how the configuration says it; %s is the name of the binding. */
static const struct {
    const char *method, *what, *config;
} by_method[] = {
    {"idFromName", "a Durable Object",
     "[[durable_objects.bindings]]\nname = \"%s\"\nclass_name = \"...\""},
    {"idFromString", "a Durable Object",
     "[[durable_objects.bindings]]\nname = \"%s\"\nclass_name = \"...\""},
    {"getByName", "a Durable Object",
     "[[durable_objects.bindings]]\nname = \"%s\"\nclass_name = \"...\""},
    {"newUniqueId", "a Durable Object",
     "[[durable_objects.bindings]]\nname = \"%s\"\nclass_name = \"...\""},
    {"prepare", "a D1 database",
     "[[d1_databases]]\nbinding = \"%s\"\ndatabase_name = \"...\"\ndatabase_id = \"...\""},
    {"batch", "a D1 database",
     "[[d1_databases]]\nbinding = \"%s\"\ndatabase_name = \"...\"\ndatabase_id = \"...\""},
    {"getWithMetadata", "a KV namespace", "[[kv_namespaces]]\nbinding = \"%s\"\nid = \"...\""},
    {"get", "a KV namespace (or an R2 bucket: r2_buckets)",
     "[[kv_namespaces]]\nbinding = \"%s\"\nid = \"...\""},
    {"put", "a KV namespace (or an R2 bucket: r2_buckets)",
     "[[kv_namespaces]]\nbinding = \"%s\"\nid = \"...\""},
    {"list", "a KV namespace (or an R2 bucket: r2_buckets)",
     "[[kv_namespaces]]\nbinding = \"%s\"\nid = \"...\""},
    {"delete", "a KV namespace (or an R2 bucket: r2_buckets)",
     "[[kv_namespaces]]\nbinding = \"%s\"\nid = \"...\""},
    {"head", "an R2 bucket", "[[r2_buckets]]\nbinding = \"%s\"\nbucket_name = \"...\""},
    {"createMultipartUpload", "an R2 bucket",
     "[[r2_buckets]]\nbinding = \"%s\"\nbucket_name = \"...\""},
    {"send", "a queue", "[[queues.producers]]\nbinding = \"%s\"\nqueue = \"...\""},
    {"sendBatch", "a queue", "[[queues.producers]]\nbinding = \"%s\"\nqueue = \"...\""},
    {"fetch", "another worker (or assets: [assets] binding)",
     "[[services]]\nbinding = \"%s\"\nservice = \"...\""},
    {"writeDataPoint", "an Analytics Engine dataset",
     "[[analytics_engine_datasets]]\nbinding = \"%s\""},
    {"limit", "a rate limit",
     "[[ratelimits]]\nname = \"%s\"\nnamespace_id = \"1\"\nsimple = { limit = 100, period = 60 }"},
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* Whether "NAME" stands in the JSON of variables or of bindings. */
static bool is_known(const char *name, size_t size, const char *env_json, const char *options_json)
{
    struct cn_buf quoted = {0};
    cn_buf_append_json(&quoted, name, size);
    const char *text = cn_buf_text(&quoted);
    bool known =
        (env_json && strstr(env_json, text)) || (options_json && strstr(options_json, text));
    cn_buf_fini(&quoted);
    return known;
}

static void advise_missing(const char *name, size_t size, const char *method, struct cn_buf *out)
{
    char *plain = cn_strndup(name, size);
    size_t method_size = 0;
    while (is_word(method[method_size]))
        method_size++;
    for (size_t i = 0; i < CN_ARRAY_COUNT(by_method); i++) {
        if (strlen(by_method[i].method) != method_size ||
            memcmp(by_method[i].method, method, method_size) != 0)
            continue;
        const char *rest = strstr(by_method[i].config, "%s");
        CN_ASSERT(rest);
        cn_buf_printf(out,
                      "\nhint: the project's configuration has no binding %s. If it is %s, add to "
                      "wrangler.toml:\n\n",
                      plain, by_method[i].what);
        cn_buf_append(out, by_method[i].config, (size_t)(rest - by_method[i].config));
        cn_buf_printf(out, "%s%s\n", plain, rest + 2);
        cn_free(plain);
        return;
    }
    cn_buf_printf(
        out,
        "\nhint: %s is neither a variable nor a secret of the project. A secret is a line "
        "%s=... in .dev.vars; a variable stands below [vars] in wrangler.toml. (Bindings "
        "have sections of their own: docs/reference/bindings.md)\n",
        plain, plain);
    cn_free(plain);
}

/* "... (evaluating 'this.env.NAME.method')": what is on env is not there. */
static bool advise_env(const char *text, const char *env_json, const char *options_json,
                       struct cn_buf *out)
{
    const char *evaluated = strstr(text, "undefined is not an object (evaluating '");
    const char *end = evaluated ? strstr(evaluated, "')") : NULL;
    const char *at = evaluated ? strstr(evaluated, "env.") : NULL;
    if (!end || !at || at > end || is_word(at[-1]))
        return false;
    const char *name = at + 4;
    size_t size = 0;
    while (is_word(name[size]))
        size++;
    if (size == 0 || name + size >= end || name[size] != '.' ||
        is_known(name, size, env_json, options_json))
        return false;
    advise_missing(name, size, name + size + 1, out);
    return true;
}

/* --- a table that is not there ----------------------------------------------------------------- */

/* The name of the one binding of this type; NULL: there are several, or none. */
static char *only_binding(const char *options_json, const char *type)
{
    struct cn_err err;
    char *found = NULL;
    size_t count = 0;
    struct cn_json *options =
        options_json ? cn_json_parse(options_json, strlen(options_json), &err) : NULL;
    const struct cn_json *list = options ? cn_json_find(options, "bindings") : NULL;
    for (const struct cn_json *at = list ? list->first : NULL; at; at = at->next) {
        const char *has = cn_json_text(at, "type"), *name = cn_json_text(at, "name");
        if (!has || !name || strcmp(has, type) != 0 || count++ > 0)
            continue;
        found = cn_strdup(name);
    }
    cn_json_free(options);
    if (count == 1)
        return found;
    cn_free(found);
    return NULL;
}

static void advise_table(const char *options_json, struct cn_buf *out)
{
    char *binding = only_binding(options_json, "d1");
    const char *name = binding ? binding : "NAME";
    cn_buf_printf(out,
                  "\nhint: tables come from migrations. `cairn d1 migrations list %s` shows those "
                  "that are not applied,\n`cairn d1 migrations apply %s` applies them (both also "
                  "while `cairn dev` runs).\n",
                  name, name);
    cn_free(binding);
}

/* --- all of them ------------------------------------------------------------------------------- */

/* How cn_js_end_text() begins. */
#define TOO_LONG "ran for longer than a script may hold its lane"
#define TOO_MUCH "used more than its CPU limit"

/* Sentences of ours, and what there is to do. */
static const struct {
    const char *text, *advice;
} known[] = {
    {"The script has no fetch() handler",
     "the main module exports nothing that takes requests. Add to it:\n\n"
     "export default {\n  async fetch(request, env, ctx) {\n"
     "    return new Response(\"Hello\");\n  },\n};"},
    {"the Promise did not resolve to 'Response'",
     "fetch() returned undefined, or something else that is no Response. Does each of its ways end "
     "in\n`return new Response(...)` or `return Response.json(...)`?"},
    {"The worker behind this service binding is not running",
     "serve both projects: `cairn dev . ../OTHER`; each keeps its own name and bindings."},
    {"has already been used",
     "a body can be read once. Read a copy, `request.clone().text()`, or keep what was read."},
    {TOO_LONG,
     "other requests of this lane wait meanwhile, so `cairn dev` ends a script after 10 s on the "
     "clock. `cairn serve`\ncounts CPU time: [limits] cpu_ms of the configuration. Long work is "
     "cut "
     "into parts, with an `await` between them."},
    {TOO_MUCH, "[limits] cpu_ms in the project's configuration sets the limit."},
    {"was canceled because it detected that your Worker's code had hung",
     "something that is awaited never comes."},
};

void cn_advice_append(const char *text, const char *env_json, const char *options_json,
                      struct cn_buf *out)
{
    if (strstr(text, "D1_ERROR: no such table")) {
        advise_table(options_json, out);
        return;
    }
    if (advise_env(text, env_json, options_json, out))
        return;
    for (size_t i = 0; i < CN_ARRAY_COUNT(known); i++) {
        if (strstr(text, known[i].text)) {
            cn_buf_printf(out, "\nhint: %s\n", known[i].advice);
            return;
        }
    }
}

/* Without the lines "    at ... cairn:prelude...". Where such a line ends in " {", what follows is
 * what the error has besides: that stays. */
static void append_without_ours(const char *text, size_t length, struct cn_buf *out)
{
    const char *end = text + length;
    for (const char *line = text; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *line_end = newline ? newline : end;
        size_t size = (size_t)(line_end - line), indent = 0;
        while (indent < size && line[indent] == ' ')
            indent++;
        bool ours = size - indent > 3 && memcmp(line + indent, "at ", 3) == 0 &&
                    memmem(line, size, "cairn:prelude", 13);
        bool opens = ours && size > 2 && memcmp(line_end - 2, " {", 2) == 0;
        if (opens && out->size && out->data[out->size - 1] == '\n')
            out->size--; /* it belongs to the line before */
        if (opens)
            cn_buf_append_str(out, " {");
        else if (!ours)
            cn_buf_append(out, line, size);
        if (newline && (!ours || opens))
            cn_buf_append_byte(out, '\n');
        line = line_end + 1;
    }
    while (out->size && out->data[out->size - 1] == '\n')
        out->size--;
}

void cn_advice_explain(struct cn_script *script, const char *text, size_t length,
                       struct cn_buf *out)
{
    struct cn_buf shown = {0};
    append_without_ours(text, length, &shown);
    cn_script_explain(script, (const char *)shown.data, shown.size, true, out);
    cn_advice_append(cn_buf_text(&shown), script->env_json, script->options_json, out);
    cn_buf_fini(&shown);
}

void cn_advice_explain_end(struct cn_script *script, const struct cn_js_vm *vm, const char *text,
                           size_t length, struct cn_buf *out)
{
    struct cn_buf placed = {0};
    cn_buf_append(&placed, text, length);
    if (memmem(text, length, TOO_LONG, strlen(TOO_LONG)) ||
        memmem(text, length, TOO_MUCH, strlen(TOO_MUCH)))
        cn_buf_append(&placed, vm->place.data, vm->place.size);
    cn_advice_explain(script, (const char *)placed.data, placed.size, out);
    cn_buf_fini(&placed);
}
