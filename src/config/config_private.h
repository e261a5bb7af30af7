/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_private.h - what the parts of config.h tell each other: config.c has the whole,
 * from the file to the struct; config_env.c which keys count, by environment; config_worker.c the
 * name, compatibility, routes and exports of a worker; config_bindings.c what it finds on `env`;
 * config_vars.c variables and secrets; config_pages.c Pages projects and sites. */
#ifndef CN_CONFIG_CONFIG_PRIVATE_H
#define CN_CONFIG_CONFIG_PRIVATE_H
#include "base/buf.h"
#include "config/config.h"

/* A key that cannot be honoured. */
struct cn_config_refused {
    char *key; /* owned: "browser", "triggers.events" */
    const struct cn_confnode *node;
};

/* What is passed around while one configuration is read. */
struct cn_config_loader {
    struct cn_schema_reader reader; /* first: on_hosted() gets at the rest through it */
    struct cn_config *config;
    const struct cn_confnode *env;     /* the chosen [env.NAME], or NULL */
    struct cn_config_refused *refused; /* owned, as they stand there */
    size_t refused_count;
    struct cn_buf unknown; /* "foo" (line 3), "bar" (line 4): keys that nobody knows */
};

/* config_env.c */
void cn_config_loader_init(struct cn_config_loader *loader, struct cn_config *config);
void cn_config_loader_fini(struct cn_config_loader *loader);
/* Checks all keys of the file, and reads those of the chosen environment (or NULL). */
int cn_config_read_keys(struct cn_config_loader *loader, const char *chosen, struct cn_err *err);
/* A hook of the reader: a key that cannot be honoured. */
void cn_config_refuse(struct cn_schema_reader *reader, const char *key,
                      const struct cn_confnode *node);
/* All that is refused is told at once; what was allowed to be missing (--allow-missing) is not. */
int cn_config_check_refused(struct cn_config_loader *loader, const char *allowed,
                            struct cn_err *err);
/* Where a key stands, for complaints found after reading. The root: it was not given. */
const struct cn_confnode *cn_config_node_of(struct cn_config_loader *loader, const char *key);

/* config_worker.c */
int cn_config_check_name(struct cn_config_loader *loader, struct cn_err *err);
int cn_config_check_compatibility(struct cn_config_loader *loader, struct cn_err *err);
int cn_config_read_routes(struct cn_config_loader *loader, struct cn_err *err);
int cn_config_check_exports(struct cn_config_loader *loader, struct cn_err *err);

/* config_bindings.c: config->entries; what is read of `unsafe`; names on `env`. */
void cn_config_make_entries(struct cn_config *config);
void cn_config_free_entries(struct cn_config *config);
int cn_config_read_unsafe(struct cn_config_loader *loader, struct cn_err *err);
int cn_config_check_bindings(struct cn_config_loader *loader, struct cn_err *err);
int cn_config_check_binding_names(struct cn_config_loader *loader, struct cn_err *err);

/* config_vars.c */
char *cn_config_keep_text(struct cn_config *config, char *text); /* takes it over */
int cn_config_read_vars(struct cn_config_loader *loader, struct cn_err *err);
int cn_config_read_var_options(struct cn_config *config, const struct cn_config_options *options,
                               struct cn_err *err);
int cn_config_read_secrets(struct cn_config *config, const char *folder, struct cn_err *err);
void cn_config_apply_secrets(struct cn_config *config); /* they become variables */

/* config_pages.c */
int cn_config_read_pages(struct cn_config *config, struct cn_err *err);
int cn_config_read_site(struct cn_config_loader *loader, struct cn_err *err);

#endif
