/* SPDX-License-Identifier: Apache-2.0 */
/* test/lib/tree.h - files of a folder that a test makes, changes and looks at. */
#ifndef CN_TEST_TREE_H
#define CN_TEST_TREE_H
#include <stdbool.h>
#include <stddef.h>

/* "DIR/NAME"; valid until eight more calls. */
const char *tree_path(const char *dir, const char *name);
/* Writes the file, and makes the folders that its name has. Fails the test if it cannot. */
void tree_write(const char *dir, const char *name, const char *text);
void tree_write_bytes(const char *dir, const char *name, const void *bytes, size_t size);
/* `size` bytes, each other than its neighbours. */
void tree_write_long(const char *dir, const char *name, size_t size);
void tree_folder(const char *dir, const char *name);
void tree_link(const char *dir, const char *name, const char *to);
/* Its text; the caller's to free with cn_free(). NULL: there is none. */
char *tree_read(const char *dir, const char *name);
bool tree_has(const char *dir, const char *name);
/* How many descriptors this process has open. */
int tree_open_files(void);

#endif
