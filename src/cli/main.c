/* SPDX-License-Identifier: Apache-2.0 */
/* cli/main.c - builds every component and hands it its dependencies. */
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "version") == 0) {
        puts("cairn " CN_VERSION);
        return 0;
    }
    fprintf(stderr, "usage: cairn version\n");
    return 2;
}
