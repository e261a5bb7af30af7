/* SPDX-License-Identifier: Apache-2.0 */
/* cli/cmd_new.c - `cairn new DIR`: a small TypeScript starter. */
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

static const struct starter_file files[] = {
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
    const char *dir = args->rest[0];
    if (access(dir, F_OK) == 0 && rmdir(dir) < 0) { /* an empty folder is as good as none */
        fprintf(stderr, "cairn: %s is there already\n", dir);
        return 1;
    }
    char *name = cn_config_name_from(dir), *src = cn_sprintf("%s/src", dir);
    int rc = cn_files_make_dirs(src, &err);
    for (size_t i = 0; rc == 0 && i < CN_ARRAY_COUNT(files); i++)
        rc = write_file(dir, &files[i], name, &err);
    if (rc == 0)
        printf("%s is ready:\n    cd %s && cairn dev\n", dir, dir);
    else
        fprintf(stderr, "cairn: %s\n", err.text);
    cn_free(name);
    cn_free(src);
    return rc < 0 ? 1 : 0;
}

const struct cn_command cn_cmd_new = {
    .name = "new",
    .usage = "DIR",
    .summary = "write a small TypeScript starter",
    .text = "Writes a small Workers project in TypeScript into the new folder DIR.",
    .rest_max = 1,
    .run = run,
};
