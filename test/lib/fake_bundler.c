/* SPDX-License-Identifier: Apache-2.0 */
#include "test/lib/fake_bundler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "test/lib/test.h"
#include "test/lib/tree.h"

static const char program[] =
    "#!/bin/sh\n"
    "here=${0%/*}\n"
    "echo start >> \"$here/starts\"\n"
    "while read -r job; do\n"
    "  echo \"$job\" >> \"$here/jobs\"\n"
    "  read -r mode < \"$here/mode\"\n"
    "  key=${job##*'\"key\":\"'} entry=${job#*'\"entry\":\"'} out=${job#*'\"out\":\"'}\n"
    "  key=${key%%'\"'*} entry=${entry%%'\"'*} out=${out%%'\"'*}\n"
    "  text=\n"
    "  case $mode in\n"
    "    die) exit 1;;\n"
    "    die-once) echo build > \"$here/mode\"; exit 1;;\n"
    "    half-once) echo build > \"$here/mode\"; printf '{\"ok\"'; exit 1;;\n"
    "    garbage) echo 'no JSON at all'; continue;;\n"
    "    fail) echo '{\"ok\":false,\"text\":\"broken: <line> 7\"}'; continue;;\n"
    "    forget) echo '{\"ok\":true}'; continue;;\n"
    "    hang) exec sleep 1000;;\n"
    "    say) text='a warning';;\n"
    "  esac\n"
    "  cp \"$entry\" \"$out/bundle.js\"\n"
    "  echo data > \"$out/file.bin\"\n"
    "  set -- $(stat -L -c '%s %.9Y' \"$entry\")\n"
    "  printf '{\"key\":\"%s\",\"script\":\"bundle.js\",\"map\":\"bundle.js.map\",\"files\":"
    "[\"file.bin\"],\"exports\":[\"default\",\"Room\"],\"inputs\":[{\"path\":\"%s\",\"size\":%s,"
    "\"mtime\":\"%s\"}]}' \"$key\" \"$entry\" \"$1\" \"${2%%[.,]*}${2#*[.,]}\""
    " > \"$out/manifest.json\"\n"
    "  printf '{\"ok\":true,\"text\":\"%s\"}\\n' \"$text\"\n"
    "done\n";

static const char *folder;

void fake_bundler_install(void)
{
    folder = test_dir();
    tree_write(folder, "bundler", program);
    CHECK(chmod(tree_path(folder, "bundler"), 0755) == 0);
    CHECK(setenv("CAIRN_BUNDLER", tree_path(folder, "bundler"), 1) == 0);
    fake_bundler_mode("build");
}

void fake_bundler_mode(const char *mode)
{
    char *line = cn_sprintf("%s\n", mode);
    tree_write(folder, "mode", line);
    cn_free(line);
}

static unsigned lines_of(const char *name)
{
    char *text = tree_read(folder, name);
    unsigned count = 0;
    for (const char *at = text; at && (at = strchr(at, '\n')); at++)
        count++;
    cn_free(text);
    return count;
}

unsigned fake_bundler_jobs(void)
{
    return lines_of("jobs");
}

unsigned fake_bundler_starts(void)
{
    return lines_of("starts");
}
