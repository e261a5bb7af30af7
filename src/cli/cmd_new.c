/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_new.c - `cairn new DIR`: a small starter, in TypeScript or with an object in C. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "server/config.h"
#include "server/files.h"

struct starter_file {
    const char *path;
    const char *text; /* @NAME@ stands for the project's name */
};

static const struct starter_file typescript[] = {
    {"wrangler.toml", "name = \"@NAME@\"\n"
                      "main = \"src/index.ts\"\n"
                      "compatibility_date = \"2026-11-01\"\n"
                      "\n"
                      "[vars]\n"
                      "GREETING = \"Hello\"\n"},
    {"src/index.ts", "interface Env {\n"
                     "  GREETING: string;\n"
                     "}\n"
                     "\n"
                     "export default {\n"
                     "  async fetch(request: Request, env: Env): Promise<Response> {\n"
                     "    const url = new URL(request.url);\n"
                     "    if (url.pathname === \"/time\") return Response.json({ now: new "
                     "Date().toISOString() });\n"
                     "    const name = url.searchParams.get(\"name\") ?? \"world\";\n"
                     "    return new Response(`${env.GREETING}, ${name}!\\n`);\n"
                     "  },\n"
                     "};\n"},
    {"package.json", "{\n"
                     "  \"name\": \"@NAME@\",\n"
                     "  \"private\": true,\n"
                     "  \"type\": \"module\",\n"
                     "  \"scripts\": {\n"
                     "    \"dev\": \"cairn dev\",\n"
                     "    \"start\": \"cairn serve\"\n"
                     "  }\n"
                     "}\n"},
    {"tsconfig.json", "{\n"
                      "  \"compilerOptions\": {\n"
                      "    \"target\": \"es2024\",\n"
                      "    \"module\": \"esnext\",\n"
                      "    \"moduleResolution\": \"bundler\",\n"
                      "    \"lib\": [\"es2024\", \"webworker\"],\n"
                      "    \"strict\": true,\n"
                      "    \"noEmit\": true,\n"
                      "    \"skipLibCheck\": true\n"
                      "  },\n"
                      "  \"include\": [\"src\"]\n"
                      "}\n"},
    {".gitignore", "node_modules/\n.cairn/\n.dev.vars\n"},
    {"README.md", "# @NAME@\n"
                  "\n"
                  "A Worker that runs on cairn.\n"
                  "\n"
                  "    cairn dev      # serves it and reloads when a file changes\n"
                  "    cairn serve    # serves it\n"
                  "\n"
                  "Then `curl 'http://127.0.0.1:8787/?name=you'`. Secrets go into `.dev.vars` as\n"
                  "`NAME=value` lines and appear on `env`.\n"},
};

static const struct starter_file c_object[] = {
    {"wrangler.toml", "name = \"@NAME@\"\n"
                      "main = \"src/index.js\"\n"
                      "compatibility_date = \"2026-11-01\"\n"
                      "\n"
                      "[build]\n"
                      "command = \"make\"\n"
                      "\n"
                      "[cairn.modules]\n"
                      "counter = \"build/counter.so\"\n"
                      "\n"
                      "[[durable_objects.bindings]]\n"
                      "name = \"COUNTER\"\n"
                      "class_name = \"counter:Counter\"\n"
                      "\n"
                      "[[migrations]]\n"
                      "tag = \"v1\"\n"
                      "new_sqlite_classes = [\"counter:Counter\"]\n"},
    {"src/counter.c",
     "#include <cairn.h>\n"
     "#include <string.h>\n"
     "\n"
     "static int call(cairn_object *object, void *instance, cairn_event *event)\n"
     "{\n"
     "    int64_t count = 0, by = 1;\n"
     "    if (strcmp(cairn->event_method(event), \"increment\") != 0)\n"
     "        return cairn->error(object, \"TypeError\", \"there is no such method\");\n"
     "    cairn->value_int(cairn->kv_get(object, \"count\"), &count);\n"
     "    cairn->value_int(cairn->value_at(cairn->event_arguments(event), 0), &by);\n"
     "    cairn_builder *kept = cairn->builder(object);\n"
     "    cairn->build_int(kept, count + by);\n"
     "    int rc = cairn->kv_put(object, \"count\", kept);\n"
     "    cairn->build_int(cairn->event_result(event), count + by);\n"
     "    return rc;\n"
     "}\n"
     "\n"
     "static const struct cairn_class classes[] = {{.name = \"Counter\", .call = call}};\n"
     "CAIRN_MODULE(classes)\n"},
    {"src/index.js", "export default {\n"
                     "  async fetch(request, env) {\n"
                     "    const counter = env.COUNTER.getByName(new URL(request.url).pathname);\n"
                     "    return Response.json(await counter.increment(1));\n"
                     "  },\n"
                     "};\n"},
    {"Makefile", "CFLAGS := -std=c11 -O2 -g -Wall -Wextra -Wno-unused-parameter -fPIC $(shell "
                 "pkg-config --cflags cairn)\n"
                 "\n"
                 "build/counter.so: src/counter.c\n"
                 "\tmkdir -p build\n"
                 "\t$(CC) $(CFLAGS) -shared -o $@.new $^\n"
                 "\tmv $@.new $@\n"
                 "\n"
                 "clean:\n"
                 "\trm -rf build\n"},
    {".gitignore", "build/\n"
                   ".cairn/\n"
                   ".dev.vars\n"},
    {"README.md",
     "# @NAME@\n"
     "\n"
     "A Durable Object in C, and the worker in front of it, for cairn.\n"
     "\n"
     "    cairn dev      # compiles and serves it, again when a file changes\n"
     "    cairn serve    # serves it\n"
     "\n"
     "Then `curl http://127.0.0.1:8787/visits`. `cairn.h` says what an object can do.\n"},
};

static const struct template
{
    const char *name;
    const struct starter_file *files;
    size_t count;
}
templates[] = {
    {"typescript", typescript, CN_ARRAY_COUNT(typescript)},
    {"c-object", c_object, CN_ARRAY_COUNT(c_object)},
};

/* By its name; NULL: there is none. */
static const struct template *find_template(const char *name)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(templates); i++) {
        if (strcmp(templates[i].name, name) == 0)
            return &templates[i];
    }
    return NULL;
}

struct options {
    const char *template;
};

static int write_file(const char *dir, const struct starter_file *file, const char *name,
                      struct cn_err *err)
{
    struct cn_buf text = {0};
    const char *from = file->text, *mark;
    while ((mark = strstr(from, "@NAME@"))) {
        cn_buf_append(&text, from, (size_t)(mark - from));
        cn_buf_append_str(&text, name);
        from = mark + strlen("@NAME@");
    }
    cn_buf_append_str(&text, from);
    char *path = cn_sprintf("%s/%s", dir, file->path);
    int rc = cn_files_write(path, text.data, text.size, err);
    cn_free(path);
    cn_buf_fini(&text);
    return rc;
}

static int run(const struct cn_args *args)
{
    struct cn_err err = {0};
    if (args->rest_count == 0) {
        fprintf(stderr, "cairn: which folder? usage: cairn new DIR\n");
        return 2;
    }
    const struct options *options = args->options;
    const struct template *template =
        find_template(options->template ? options->template : "typescript");
    if (!template) {
        fprintf(stderr, "cairn: there is no template \"%s\"; there are typescript and c-object\n",
                options->template);
        return 2;
    }
    const char *dir = args->rest[0];
    if (access(dir, F_OK) == 0 && rmdir(dir) < 0) { /* an empty folder is as good as none */
        fprintf(stderr, "cairn: %s is there already\n", dir);
        return 1;
    }
    char *name = cn_config_name_from(dir), *src = cn_sprintf("%s/src", dir);
    int rc = cn_files_make_dirs(src, &err);
    for (size_t i = 0; rc == 0 && i < template->count; i++)
        rc = write_file(dir, &template->files[i], name, &err);
    if (rc == 0)
        printf("%s is ready:\n    cd %s && cairn dev\n", dir, dir);
    else
        fprintf(stderr, "cairn: %s\n", err.text);
    cn_free(name);
    cn_free(src);
    return rc < 0 ? 1 : 0;
}

static const struct cn_option flags[] = {
    {"template", 0, "NAME", NULL, "typescript (the default), or c-object: a Durable Object in C",
     offsetof(struct options, template), 0},
};

const struct cn_command cn_cmd_new = {
    .name = "new",
    .usage = "DIR [OPTIONS]",
    .summary = "write a small starter",
    .text = "Writes a small Workers project into the new folder DIR.",
    .rest_max = 1,
    .options = flags,
    .option_count = CN_ARRAY_COUNT(flags),
    .options_size = sizeof(struct options),
    .run = run,
};
