/* SPDX-License-Identifier: Apache-2.0 */
/* config/config.h - a wrangler project as plain C structs.
 *
 * cn_config_load() finds the project's configuration (wrangler.json, .jsonc or
 * .toml), applies [env.NAME] by wrangler's rules of inheritance, adds secrets
 * from .dev.vars or .env, and checks every key. A key is supported, hosted
 * (accepted, named once in the log), unbuilt (refused, it is known but what it
 * asks for does not exist yet) or unknown (refused with a suggestion). Which
 * is which stands in the tables of config_keys.c: when a service is built, its
 * key loses the word UNBUILT there and finds its struct here already filled.
 *
 * Ownership: struct cn_config owns everything; texts are borrowed from the
 * node tree inside it and live as long as it does. An unset text is NULL. */
#ifndef CN_CONFIG_CONFIG_H
#define CN_CONFIG_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/schema.h"
#include "service/def.h"

struct cn_confnode;
struct cn_err;

#define CN_CONFIG_LIST(type) \
    struct {                 \
        struct type *items;  \
        size_t count;        \
    }

struct cn_config_rule {
    const char *type; /* ESModule, CommonJS, CompiledWasm, Text, Data, JSON */
    struct cn_strings globs;
    bool fallthrough, fallthrough_set;
};

struct cn_config_limits {
    int64_t cpu_ms;      /* 0: the default */
    int64_t subrequests; /* of an event; 0: the default */
};

struct cn_config_build {
    const char *command;
    const char *cwd;
    struct cn_strings watch_dir;
};

struct cn_config_dev {
    const char *ip;
    int64_t port;
    bool port_set;
    const char *local_protocol;
};

struct cn_config_object { /* durable_objects.bindings */
    const char *name;
    const char *class_name;
    const char *script_name; /* NULL: this worker */
    const char *environment;
};

struct cn_config_renamed {
    const char *from, *to;
};
struct cn_config_transferred {
    const char *from, *from_script, *to;
};
struct cn_config_migration {
    const char *tag;
    struct cn_strings new_classes, new_sqlite_classes, deleted_classes;
    CN_CONFIG_LIST(cn_config_renamed) renamed_classes;
    CN_CONFIG_LIST(cn_config_transferred) transferred_classes;
};

struct cn_config_export {
    const char *name;    /* the exported class; filled from the key */
    const char *type;    /* durable-object, worker, workflow */
    const char *state;   /* created (NULL too), deleted, renamed, transferred, expecting-transfer */
    const char *storage; /* sqlite, legacy-kv */
    const char *renamed_to, *transferred_to, *transfer_from, *container;
};

struct cn_config_workflow {
    const char *binding, *name, *class_name, *script_name;
    const struct cn_confnode *limits, *schedules;
};

struct cn_config_assets {
    const char *directory;
    const char *binding;
    const char *base_path;
    const char *html_handling;
    const char *not_found_handling;
    const struct cn_confnode *run_worker_first; /* a bool or an array of strings */
};

struct cn_config_site { /* Workers Sites, which came before assets */
    const char *bucket; /* NULL: none */
    struct cn_strings include, exclude;
    const char *entry_point; /* a folder with index.js, where there is no `main` */
};

struct cn_config_service {
    const char *binding;
    const char *service;
    const char *environment;
    const char *entrypoint;
    const struct cn_confnode *props; /* of any kind */
};

struct cn_config_tail {
    const char *service;
    const char *environment;
};

struct cn_config_dispatch {
    const char *binding, *namespace;
    const struct cn_confnode *outbound;
};

/* A binding that needs nothing but its name. */
struct cn_config_binding {
    const char *binding;
};

/* [cairn]: settings of the server. Flags and CAIRN_* variables come first. */
struct cn_config_server {
    const char *admin;
    const char *health;
    const char *listen;
    const char *data;
    const char *log;
    int64_t lanes;
    bool sandbox;
    struct cn_strings sandbox_write;
    struct cn_strings hosts;           /* host names that this project answers for */
    struct cn_strings trusted_proxies; /* ranges (net/egress.h) whose X-Forwarded-For is believed */
    bool websocket_compression, websocket_compression_set; /* not set: on */
    struct {
        const char *cert, *key;
    } tls;
    struct {
        const char *host; /* NULL: no S3 endpoint */
    } s3;
    struct {
        struct cn_strings deny, allow;
    } egress; /* net/egress.h */
    struct {
        int64_t days, bytes;
    } history; /* 0: the default */
    struct {
        int64_t days;
    } analytics; /* 0: the default */
    struct {
        const char *url, *node, *peer; /* NULL: not given */
        const char *reads;             /* NULL: by lease */
        int64_t shards, replicas;      /* of a cluster that is made; 0: the default */
        int64_t call_wait_ms;          /* 0: the default */
        bool allow_async;
    } cluster; /* fleet/cluster.h; url NULL: none */
    struct {
        const char *endpoint;
        const struct cn_confnode *headers; /* a table of strings, or NULL */
        int64_t interval, timeout;         /* seconds; 0: the default */
        struct cn_strings signals;         /* none: all */
    } otlp;                                /* config/otlpconf.h */
    struct {
        const char *url;                  /* NULL: none */
        const char *key;                  /* a variable of the project that holds it, or NULL */
        const struct cn_confnode *models; /* a table of strings, or NULL */
    } ai;                                 /* each project's own */
    struct {
        const char *url;               /* NULL: none */
        const char *user;              /* NULL: nobody signs in */
        const char *password;          /* a variable of the project that holds it, or NULL */
        const char *starttls;          /* "required", "offered", "never"; NULL: by itself */
        int64_t timeout_ms;            /* 0: the default */
    } email;                           /* each project's own */
    const struct cn_confnode *modules; /* a table of strings, or NULL: each project's own */
    const char
        *worker; /* "module:Class", whose events those of the worker are; NULL: none; the same */
    struct {
        int64_t url_bytes, header_bytes, body_bytes, header_timeout_ms, idle_timeout_ms,
            connections, heap_bytes, object_idle_ms, object_block_ms, new_objects_per_minute,
            websocket_message_bytes, websocket_output_bytes, websocket_ping_ms, memory_bytes,
            stuck_ms, start_cpu_ms;
    } limits; /* 0: the default */
};

struct cn_config_route {
    const char *pattern; /* "host/path*" as written */
    bool custom_domain;  /* the pattern is a host name: all its paths */
};

enum cn_config_var_kind { CN_VAR_TEXT, CN_VAR_JSON, CN_VAR_SECRET };

struct cn_config_var {
    const char *name;
    enum cn_config_var_kind kind;
    const char *text; /* NUL-terminated; for CN_VAR_JSON, JSON text */
    size_t length;
};

/* A key that is not there and need not be (--allow-missing), and a binding of it. */
struct cn_config_missing {
    char *key, *binding; /* owned; a key without bindings has none (NULL) */
};

struct cn_config {
    char *path;               /* of the configuration file */
    char *dir;                /* the folder that holds it: the project's root */
    char *home;               /* where its data and secrets are: config/findconf.h, F4 */
    char *note;               /* what named it, a build tool's note, or NULL: worth watching */
    bool generated;           /* a build tool has written it */
    bool uploaded;            /* it came with a token: H6 of deploy/hosted.h */
    const char *env;          /* chosen environment, or NULL */
    struct cn_confnode *root; /* owned; everything below borrows from it */

    const char *name; /* with "-ENV" appended as wrangler does */
    const char *main; /* relative to `dir` */
    const char *compatibility_date;
    struct cn_strings compatibility_flags;
    bool no_bundle, minify, keep_names, keep_names_set;
    bool find_additional_modules;
    const char *tsconfig, *jsx_factory, *jsx_fragment;
    CN_CONFIG_LIST(cn_config_rule) rules;
    const struct cn_confnode *define; /* table of strings, or NULL */
    const struct cn_confnode *alias;  /* the same */
    const struct cn_confnode *vars_node;
    struct cn_config_limits limits;
    struct cn_config_build build;
    struct cn_config_dev dev;
    struct cn_config_server server;
    struct {
        struct cn_strings required;
    } secrets;

    CN_CONFIG_LIST(cn_config_route) routes;
    const struct cn_confnode *route_node, *routes_node;
    CN_CONFIG_LIST(cn_config_var) vars; /* vars, then secrets, then --var; later ones win */

    struct {
        CN_CONFIG_LIST(cn_config_object) bindings;
    } durable_objects;
    CN_CONFIG_LIST(cn_config_migration) migrations;
    CN_CONFIG_LIST(cn_config_export) exports;
    CN_CONFIG_LIST(cn_config_workflow) workflows;
    struct cn_config_assets assets;
    bool assets_set;
    struct cn_config_site site;         /* config_pages.c makes `assets` of it */
    const char *pages_build_output_dir; /* the same: `main` and `assets` */
    const char *functions;              /* absolute: a Pages project's routes, or NULL */
    CN_CONFIG_LIST(cn_config_service) services;
    CN_CONFIG_LIST(cn_config_tail) tail_consumers;
    const struct cn_confnode *observability; /* a table (deploy_tail.c), or NULL */
    CN_CONFIG_LIST(cn_config_tail) streaming_tail_consumers;
    CN_CONFIG_LIST(cn_config_dispatch) dispatch_namespaces;
    CN_CONFIG_LIST(cn_config_binding) worker_loaders;
    const struct cn_confnode *unsafe_node; /* what services take of it is among their entries */
    void *entries[CN_SERVICE_MAX];         /* owned: cn_config_entries() */
    struct {
        struct {
            const char *aud; /* NULL: nothing is simulated */
            const struct cn_confnode *identity;
        } dev;
    } access;
    struct cn_config_binding version_metadata; /* .binding NULL: not bound */
    const struct cn_confnode *unread;          /* slot of keys that nothing reads yet */

    /* What the operator should know; the caller prints them. Owned. */
    struct {
        char **items;
        size_t count;
    } warnings;
    CN_CONFIG_LIST(cn_config_missing) missing;
    char *hosted;     /* "account_id, workers_dev": keys that mean nothing here, or NULL */
    char *name_owned; /* backs `name` when it was composed */
    struct cn_confnode *pages_node;   /* owned: which requests the worker gets first */
    struct cn_confnode *secrets_node; /* owned: .dev.vars as a table */
    char **var_texts;                 /* owned: JSON and --var texts */
    size_t var_text_count;
    char *secrets_path; /* the file that secrets came from, or NULL: worth watching */
};

struct cn_config_options {
    const char *env;         /* --env, or NULL */
    const char *const *vars; /* --var: "K=V" (wrangler's "K:V" too) */
    size_t var_count;
    const char *allow_missing; /* "browser,vectorize": keys that need not be there, or NULL */
    /* cn_config_load() sets these: */
    const char *main; /* in the place of the file's, absolute; or NULL */
    const char *own;  /* the file that this one was generated from, or NULL */
};

/* `project` is what config/findconf.h takes: a folder, a configuration or a source file. On success
 * the caller owns *config and frees it with cn_config_free(). */
int cn_config_load(const char *project, const struct cn_config_options *options,
                   struct cn_config **config, struct cn_err *err);
/* The same from text, for tests and fuzzing: no files are read, but a Pages project is looked at.
 * `is_toml` says which language. */
int cn_config_load_text(const char *path, bool is_toml, const char *text, size_t length,
                        const struct cn_config_options *options, struct cn_config **config,
                        struct cn_err *err);
void cn_config_free(struct cn_config *config);

/* The value of a key of the file as it counts for the chosen environment (or NULL), hosted ones
 * too; borrowed. */
const struct cn_confnode *cn_config_key(const struct cn_config *config, const char *key);
/* The list (or table) at "a", or at "a.b": b in the table a. A "!" ends the name. NULL: none. */
const struct cn_confnode *cn_config_at(const struct cn_config *config, const char *path);

/* A variable of the process, whose name the configuration chose: NULL if it is not set, or if the
 * configuration was uploaded (H6 of deploy/hosted.h). */
const char *cn_config_process_variable(const struct cn_config *config, const char *name);

/* A worker's name made from its folder's: lower case letters, digits, '-' and '_'. Owned. */
char *cn_config_name_from(const char *folder);

/* The keys of the file (config_keys.c). */
extern const struct cn_schema cn_config_schema;

/* Adds to its warnings. */
void __attribute__((format(printf, 2, 3)))
cn_config_warn(struct cn_config *config, const char *format, ...);
/* Parses .dev.vars / .env into a table of strings; NULL on error. */
struct cn_confnode *cn_dotenv_parse(const char *name, const char *text, size_t length,
                                    struct cn_err *err);

#endif
