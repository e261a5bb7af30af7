/* SPDX-License-Identifier: Apache-2.0 */
/* config/findconf.h - where a project's configuration is.
 *
 * A project is named by its folder, by a configuration file, or by a source
 * file (wrangler's `dev src/index.ts`). Build tools (the Vite plugin) write a
 * second configuration, of what they have built, and a note that names it.
 *
 * F1  A folder means the configuration that its note .wrangler/deploy/config.json
 *     names; without a note its wrangler.json, .jsonc or .toml, in this order.
 * F2  The current folder, and a source file's, mean that of a folder above when
 *     they have none themselves. A folder that was named means only itself.
 * F3  A source file is the `main` of the configuration that is found for it, or
 *     of none.
 * F4  `home`, the folder of the project's own configuration, is where its data
 *     and its secrets are: what a build tool writes is thrown away with the next
 *     build. */
#ifndef CN_CONFIG_FINDCONF_H
#define CN_CONFIG_FINDCONF_H
#include <stdbool.h>

struct cn_err;

struct cn_findconf {
    char *path;   /* absolute; NULL: there is no configuration, only `script` */
    char *home;   /* F4, absolute */
    char *own;    /* a generated one's origin in `home`, or NULL */
    char *script; /* F3, absolute, or NULL */
};

/* On success the caller owns the texts and frees them with cn_findconf_fini(). */
int cn_findconf(const char *project, struct cn_findconf *found, struct cn_err *err);
void cn_findconf_fini(struct cn_findconf *found);

/* F1 without notes: the configuration file in a folder, or NULL. Owned. */
char *cn_findconf_in(const char *folder);
/* The note of a folder. Owned. */
char *cn_findconf_note(const char *folder);

#endif
