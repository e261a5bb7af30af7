/* SPDX-License-Identifier: Apache-2.0 */
#include "store/template.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "base/mem.h"
#include "store/database_private.h"

/* T5 */
enum { TEMPLATES_MAX = 4, TEXTS_MAX = 16, PAGES_MAX = 16, MISSES_MAX = 8 };

struct text {
    char *sql; /* owned */
    size_t size;
    bool guest;
    uint64_t rows_read, rows_written; /* T4 */
};

struct cn_template {
    struct cn_list link; /* of the pool, the last used last; empty: no longer there */
    unsigned use_count;  /* databases for which it stands in now */
    unsigned hits, misses;
    uint32_t namespace_id;
    struct cn_database_limits limits;
    struct text texts[TEXTS_MAX];
    unsigned text_count;
    unsigned page_count;
    uint8_t *pages; /* owned */
};

/* While a database records or is stood for. */
struct cn_template_use {
    struct cn_template *of;         /* counted; NULL: it records */
    unsigned next;                  /* how many texts have run */
    struct cn_statement *candidate; /* prepared, has not run */
    struct text recorded[TEXTS_MAX];
};

/* ---- Texts ---- */

/* Takes `word` from the front of a text, and the space behind it. */
static bool take_word(const char **at, size_t *left, const char *word)
{
    size_t size = strlen(word);
    if (*left <= size || strncasecmp(*at, word, size) != 0 || isalnum((unsigned char)(*at)[size]) ||
        (*at)[size] == '_')
        return false;
    *at += size;
    *left -= size;
    size_t space = cn_sql_skip_space(*at, *left);
    *at += space;
    *left -= space;
    return true;
}

/* T1. A text that has the word in a name or a comment is run in the usual way, and so is one that
 * is longer than a page: its schema would not move (P2 of pool.h). */
static bool is_definition(const char *sql, size_t size)
{
    if (size > CN_PAGE_SIZE)
        return false;
    size_t left = size, space = cn_sql_skip_space(sql, size);
    const char *at = sql + space;
    left -= space;
    if (!take_word(&at, &left, "CREATE"))
        return false;
    if (take_word(&at, &left, "UNIQUE")
            ? !take_word(&at, &left, "INDEX")
            : !take_word(&at, &left, "TABLE") && !take_word(&at, &left, "INDEX"))
        return false;
    if (!take_word(&at, &left, "IF") || !take_word(&at, &left, "NOT") ||
        !take_word(&at, &left, "EXISTS"))
        return false;
    for (; left >= 6; at++, left--)
        if (strncasecmp(at, "SELECT", 6) == 0)
            return false;
    return true;
}

static bool is_text(const struct text *text, const char *sql, size_t size, bool guest)
{
    return text->size == size && text->guest == guest && memcmp(text->sql, sql, size) == 0;
}

static void texts_free(struct text *texts, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        cn_free(texts[i].sql);
}

/* ---- Templates ---- */

static void template_free(struct cn_template *template)
{
    texts_free(template->texts, template->text_count);
    cn_free(template->pages);
    cn_free(template);
}

static void template_remove(struct cn_template *template)
{
    cn_list_remove(&template->link);
    cn_list_init(&template->link);
    if (template->use_count == 0)
        template_free(template);
}

static void template_unuse(struct cn_template *template)
{
    if (--template->use_count == 0 && cn_list_empty(&template->link))
        template_free(template);
}

void cn_templates_clear(struct cn_list *templates)
{
    while (!cn_list_empty(templates))
        template_remove(CN_CONTAINER_OF(templates->next, struct cn_template, link));
}

static struct cn_template *find(struct cn_database *db, const char *sql, size_t size, bool guest)
{
    uint32_t namespace_id = cn_image_key(db->image)->namespace_id;
    CN_LIST_FOREACH(cn_pool_templates(db->pool), link)
    {
        struct cn_template *template = CN_CONTAINER_OF(link, struct cn_template, link);
        if (template->namespace_id == namespace_id &&
            memcmp(&template->limits, &db->limits, sizeof(db->limits)) == 0 &&
            is_text(&template->texts[0], sql, size, guest))
            return template;
    }
    return NULL;
}

/* The texts that `use` has recorded, and the pages as they are now. */
static void learn(struct cn_database *db, struct cn_template_use *use)
{
    unsigned page_count = cn_sqlite_page_count(db->connection);
    if (use->next == 0 || !db->in_transaction || page_count == 0 || page_count > PAGES_MAX)
        return;
    uint8_t *pages = cn_alloc((size_t)page_count * CN_PAGE_SIZE);
    if (cn_sqlite_pages_get(db->connection, pages, page_count) != SQLITE_OK ||
        !cn_pool_is_whole_schema(pages)) {
        cn_free(pages);
        return;
    }
    struct cn_list *templates = cn_pool_templates(db->pool);
    unsigned count = 0;
    CN_LIST_FOREACH(templates, link)
    count++;
    if (count >= TEMPLATES_MAX)
        template_remove(CN_CONTAINER_OF(templates->next, struct cn_template, link));
    struct cn_template *template = CN_NEW(struct cn_template);
    template->namespace_id = cn_image_key(db->image)->namespace_id;
    template->limits = db->limits;
    template->page_count = page_count;
    template->pages = pages;
    template->text_count = use->next;
    memcpy(template->texts, use->recorded, use->next * sizeof(*use->recorded));
    memset(use->recorded, 0, use->next * sizeof(*use->recorded)); /* they are the template's */
    cn_list_push_back(templates, &template->link);
}

/* ---- A database ---- */

/* Nothing was ever asked of it, or has been committed to it. */
static bool is_untouched(const struct cn_database *db)
{
    return db->pool && !db->connection && !db->in_transaction && !db->reset && !db->broken &&
           cn_list_empty(&db->statements) && cn_image_page_count(db->image) == 0;
}

static void use_free(struct cn_database *db)
{
    struct cn_template_use *use = db->template;
    db->template = NULL;
    if (use->candidate)
        use->candidate->stands_in = false;
    if (use->of)
        template_unuse(use->of);
    texts_free(use->recorded, TEXTS_MAX);
    cn_free(use);
}

void cn_template_drop(struct cn_database *db)
{
    if (db->template)
        use_free(db);
}

/* T2. False: there is no connection for it, or it failed; the database is as it was. */
static bool stand_in(struct cn_database *db, struct cn_template *template)
{
    if (!cn_pool_give(db, template->pages))
        return false;
    cn_free(db->schema); /* of pages that are not committed: it is learnt again when they are */
    db->schema = NULL;
    if (cn_database_begin(db, NULL) < 0 ||
        cn_sqlite_pages_put(db->connection, template->pages, template->page_count) != SQLITE_OK) {
        cn_connection_close(db); /* what it knows of the schema is not so */
        db->in_transaction = false;
        return false;
    }
    cn_list_remove(&template->link);
    cn_list_push_back(cn_pool_templates(db->pool), &template->link);
    template->use_count++;
    db->template = CN_NEW(struct cn_template_use);
    db->template->of = template;
    return true;
}

/* T3: the texts that came, in the usual way. */
static int undo(struct cn_database *db, struct cn_err *err)
{
    struct cn_template_use *use = db->template;
    struct cn_template *template = use->of;
    unsigned count = use->next;
    db->template = NULL; /* so that they are not stood for */
    cn_database_undo(db);
    int rc = cn_database_connect(db, err); /* if it could not be undone, it is closed */
    for (unsigned i = 0; i < count && rc == 0; i++) {
        const struct text *text = &template->texts[i];
        struct cn_statement *statement;
        size_t used;
        rc = cn_database_prepare(db, text->sql, text->size, text->guest ? CN_SQL_GUEST : 0,
                                 &statement, &used, err);
        if (rc == 0) {
            rc = cn_statement_step(statement, err);
            cn_statement_release(statement);
        }
    }
    if (rc < 0)
        cn_database_break(db, "tables could not be made again");
    template->misses++;
    if (template->misses > MISSES_MAX && template->misses > template->hits &&
        !cn_list_empty(&template->link))
        template_remove(template);
    db->template = use;
    use_free(db);
    return rc;
}

int cn_template_end(struct cn_database *db, struct cn_err *err)
{
    struct cn_template_use *use = db->template;
    if (!use)
        return 0;
    if (use->of)
        return undo(db, err);
    if (db->connection)
        learn(db, use);
    use_free(db);
    return 0;
}

int cn_template_prepare(struct cn_database *db, const char *sql, size_t *size, bool guest,
                        bool *expected, struct cn_err *err)
{
    struct cn_template_use *use = db->template;
    *expected = false;
    if (!use && !is_untouched(db))
        return 0;
    size_t first = cn_sql_first(sql, *size);
    bool defines = is_definition(sql, first);
    if (!use) {
        if (!defines)
            return 0;
        struct cn_template *template = find(db, sql, first, guest);
        if (!template)
            db->template = CN_NEW(struct cn_template_use);
        else if (!stand_in(db, template))
            return 0;
        use = db->template;
    } else if (cn_sql_blank(sql, *size)) {
        return 0;
    }
    if (use->candidate) /* two at a time */
        return cn_template_end(db, err);
    if (!use->of)
        return defines && use->next < TEXTS_MAX ? 0 : cn_template_end(db, err);
    if (!is_text(&use->of->texts[use->next], sql, first, guest))
        return cn_template_end(db, err);
    *expected = true;
    *size = first;
    return 0;
}

void cn_template_prepared(struct cn_database *db, struct cn_statement *statement, const char *sql,
                          size_t size, bool expected)
{
    struct cn_template_use *use = db->template;
    use->candidate = statement;
    if (expected) {
        const struct text *text = &use->of->texts[use->next];
        statement->stands_in = true;
        statement->stood_read = text->rows_read;
        statement->stood_written = text->rows_written;
        statement->writes = true;
        return;
    }
    struct text *text = &use->recorded[use->next];
    *text = (struct text){.size = cn_sql_first(sql, size), .guest = statement->guest};
    text->sql = cn_memdup(sql, text->size);
}

void cn_template_released(struct cn_database *db, struct cn_statement *statement)
{
    struct cn_template_use *use = db->template;
    if (use->candidate != statement)
        return;
    use->candidate = NULL;
    if (use->of)
        return;
    cn_free(use->recorded[use->next].sql);
    use->recorded[use->next].sql = NULL;
}

void cn_template_ran(struct cn_database *db, struct cn_statement *statement, int rc)
{
    struct cn_template_use *use = db->template;
    if (use->candidate != statement)
        return;
    use->candidate = NULL;
    if (use->of) {
        if (rc == 0 && ++use->next == use->of->text_count) {
            use->of->hits++;
            cn_pool_templated(db->pool);
            use_free(db);
        }
        return;
    }
    struct text *text = &use->recorded[use->next];
    text->rows_read = cn_statement_rows_read(statement);
    text->rows_written = cn_statement_rows_written(statement);
    if (rc == 0)
        use->next++;
    else
        use_free(db);
}
