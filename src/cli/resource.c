/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/resource.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "cli/api.h"
#include "cli/print.h"
#include "cli/remote.h"
#include "cli/verb.h"

/* Where they are listed and made, and what their name and their id are called. */
static const struct kind {
    const char *kind, *target, *list, *name, *asked, *id, *created, *title;
} kinds[] = {
    {"kv", "storage/kv/namespaces", NULL, "title", "title", "id", "", "KV namespace"},
    {"d1", "d1/database", NULL, "name", "name", "uuid", "created_at", "D1 database"},
    {"r2", "r2/buckets", "buckets", "name", "name", "name", "creation_date", "R2 bucket"},
    {"queue", "queues", NULL, "queue_name", "queue_name", "queue_id", "created_on", "queue"},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < CN_ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].kind, name) == 0)
            return &kinds[i];
    }
    CN_ASSERT(false && "no such kind");
    return NULL;
}

/* The first of the list; NULL: it is empty, or an error. */
static const struct cn_json *list_all(struct cn_remote *remote, const struct kind *kind,
                                      struct cn_err *err)
{
    const struct cn_json *result = NULL;
    char *target = cn_sprintf("%s?per_page=1000", kind->target);
    int rc = cn_remote_ask(remote, "GET", target, &result, err);
    cn_free(target);
    const struct cn_json *list = kind->list ? cn_json_find(result, kind->list) : result;
    return rc == 0 && list ? list->first : NULL;
}

char *cn_resource_find(struct cn_remote *remote, const char *kind_name, const char *name,
                       struct cn_err *err)
{
    const struct kind *kind = kind_of(kind_name);
    for (const struct cn_json *item = list_all(remote, kind, err); item; item = item->next) {
        const char *own = cn_json_text(item, kind->name), *id = cn_json_text(item, kind->id);
        if (own && id && (strcmp(own, name) == 0 || strcmp(id, name) == 0))
            return cn_strdup(id);
    }
    return NULL;
}

int cn_resource_create(struct cn_remote *remote, const char *kind_name, const char *name,
                       const struct cn_json **result, struct cn_err *err)
{
    const struct kind *kind = kind_of(kind_name);
    struct cn_buf body = {0};
    cn_buf_printf(&body, "{\"%s\":", kind->asked);
    cn_buf_append_json(&body, name, strlen(name));
    cn_buf_append_byte(&body, '}');
    int rc = cn_remote_send(remote, "POST", kind->target, &body, result, err);
    cn_buf_fini(&body);
    if (rc == 0 && !cn_json_text(*result, kind->id))
        rc = cn_err_set(err, CN_EPROTOCOL, "the server does not say which %s it made", kind->title);
    return rc;
}

char *cn_resource_provide(struct cn_remote *remote, const char *kind_name, const char *name,
                          struct cn_err *err)
{
    const struct kind *kind = kind_of(kind_name);
    struct cn_err why = {0};
    const struct cn_json *result = NULL;
    char *id = cn_resource_find(remote, kind_name, name, &why);
    if (id)
        return id;
    if (why.code) {
        *err = why;
        return NULL;
    }
    if (cn_resource_create(remote, kind_name, name, &result, err) < 0)
        return NULL;
    printf("Created the %s %s\n", kind->title, name);
    return cn_strdup(cn_json_text(result, kind->id));
}

/* --- the command ----------------------------------------------------------------------------- */

static int run_list(struct cn_remote *remote, const struct kind *kind,
                    const struct cn_remote_options *options, struct cn_err *err)
{
    struct cn_table table;
    const struct cn_json *first = list_all(remote, kind, err);
    if (err->code)
        return err->code;
    cn_table_init(&table, 3);
    cn_verb_cell(&table, "NAME");
    cn_verb_cell(&table, "ID");
    cn_verb_cell(&table, "CREATED");
    for (const struct cn_json *item = first; item; item = item->next) {
        if (options->json)
            cn_print_line(item);
        cn_verb_cell(&table, cn_json_text(item, kind->name));
        cn_verb_cell(&table, cn_json_text(item, kind->id));
        cn_verb_cell(&table, cn_json_text(item, kind->created));
    }
    if (options->json)
        table.cell_count = 0;
    cn_table_print(&table);
    return 0;
}

static int run_create(struct cn_remote *remote, const struct kind *kind, const char *name,
                      const struct cn_remote_options *options, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    int rc = cn_resource_create(remote, kind->kind, name, &result, err);
    if (rc < 0)
        return rc;
    if (options->json) {
        cn_print_line(result);
        return 0;
    }
    struct cn_buf shown = {0};
    cn_print_escape(&shown, cn_json_text(result, kind->id), strlen(cn_json_text(result, kind->id)));
    const char *id = cn_buf_text(&shown);
    printf("Created the %s %s. In the configuration of a worker:\n\n", kind->title, name);
    if (strcmp(kind->kind, "d1") == 0)
        printf("[[d1_databases]]\nbinding = \"DB\"\ndatabase_id = \"%s\"\ndatabase_name = \"%s\"\n",
               id, name);
    else if (strcmp(kind->kind, "queue") == 0)
        printf("[[queues.producers]]\nbinding = \"QUEUE\"\nqueue = \"%s\"\n", name);
    cn_buf_fini(&shown);
    return 0;
}

static int run_delete(struct cn_remote *remote, const struct kind *kind, const char *name,
                      const struct cn_remote_options *options, struct cn_err *err)
{
    const struct cn_json *result = NULL;
    char *id = cn_resource_find(remote, kind->kind, name, err);
    if (!id)
        return err->code ? err->code
                         : cn_err_set(err, CN_ENOTFOUND, "there is no %s %s", kind->title, name);
    char *question = cn_sprintf("Delete the %s %s?", kind->title, name);
    struct cn_buf target = {0};
    cn_buf_printf(&target, "%s/", kind->target);
    cn_api_append_param(&target, NULL, id);
    int rc = cn_remote_confirm(options, question, err);
    if (rc == 0)
        rc = cn_remote_ask(remote, "DELETE", cn_buf_text(&target), &result, err);
    if (rc == 0)
        printf("The %s %s is deleted\n", kind->title, name);
    cn_buf_fini(&target);
    cn_free(question);
    cn_free(id);
    return rc;
}

int cn_resource_main(const struct cn_remote_options *options, const char *kind_name,
                     const char *verb, const char *name)
{
    const struct kind *kind = kind_of(kind_name);
    struct cn_err err = {0};
    struct cn_remote remote;
    int rc = cn_remote_open(&remote, options, &err);
    if (rc == 0) {
        rc = strcmp(verb, "list") == 0     ? run_list(&remote, kind, options, &err)
             : strcmp(verb, "create") == 0 ? run_create(&remote, kind, name, options, &err)
                                           : run_delete(&remote, kind, name, options, &err);
        cn_remote_close(&remote);
    }
    return cn_print_outcome(rc, &err);
}
