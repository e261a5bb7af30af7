/* SPDX-License-Identifier: Apache-2.0 */
/* test/fuzz/replay.c - feeds a fuzz target the files of its corpus, without a fuzzer.
 *
 * The corpus is test/fuzz/corpus/<name of the program>, relative to the
 * working directory. Prints the closing line tools/run-tests reads. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    (void)argc;
    const char *name = strrchr(argv[0], '/');
    char path[512];
    snprintf(path, sizeof(path), "test/fuzz/corpus/%s", name ? name + 1 : argv[0]);
    DIR *dir = opendir(path);
    int count = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        char file[1024];
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        FILE *in = fopen(file, "rb");
        if (!in)
            continue;
        static uint8_t bytes[1 << 20];
        size_t size = fread(bytes, 1, sizeof(bytes), in);
        fclose(in);
        uint8_t *exact = malloc(size ? size : 1); /* so that sanitizers see an overrun */
        memcpy(exact, bytes, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        count++;
    }
    if (dir)
        closedir(dir);
    printf("%d passed, %d failed, 0 skipped\n", count, count ? 0 : 1);
    return count ? 0 : 1; /* an empty corpus is a mistake */
}
