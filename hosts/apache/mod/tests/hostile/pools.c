/* Pools and parts of requests that end, and what APR goes through meanwhile. */
#include "hostile.h"

/* The core works on a request, or ends a pool, while the module ends it. */
static apr_pool_t *volatile ending;
static request_rec *volatile part;

static apr_status_t end_again(void *data)
{
    apr_pool_destroy(ending);
    return APR_SUCCESS;
}

void ends(request_rec *r, const char *what)
{
    if (!strcmp(what, "end-whole"))
        ap_destroy_sub_req(r);
    if (!strcmp(what, "end-twice")) {
        part = ap_sub_req_lookup_uri("/page.html", r, NULL);
        ap_destroy_sub_req(part);
        ap_destroy_sub_req(part);
    }
    if (!strcmp(what, "end-pool")) {
        part = ap_sub_req_lookup_uri("/page.html", r, NULL);
        apr_pool_destroy(part->pool);
    }
    if (!strcmp(what, "end-running")) {
        part = ap_sub_req_lookup_uri("/hostile/running", r, r->output_filters);
        ap_run_sub_req(part);
        ap_rputs("behind", r);
    }
    if (!strcmp(what, "running"))
        ap_destroy_sub_req(part);
    /* The last two leave it to the core to end the pool. */
    if (!strcmp(what, "end-ending") || !strcmp(what, "end-first") || !strcmp(what, "later") || !strcmp(what, "later-first")) {
        apr_pool_t *p;
        apr_pool_create(&p, r->pool);
        ending = p;
        if (strstr(what, "first"))
            apr_pool_pre_cleanup_register(p, NULL, end_again);
        else
            apr_pool_cleanup_register(p, NULL, end_again, apr_pool_cleanup_null);
        if (!strncmp(what, "end", 3))
            apr_pool_destroy(p);
    }
    if (!strcmp(what, "end-redirected")) {
        part = ap_sub_req_lookup_uri("/page.html", r, NULL);
        ap_internal_fast_redirect(part, r);
        ap_destroy_sub_req(part);
    }
}

static int end_table(void *pool, const char *key, const char *value)
{
    apr_pool_destroy(pool);
    return 1;
}

static int end_part(void *part, const char *key, const char *value)
{
    ap_destroy_sub_req(part);
    return 1;
}

static void *end_hash(apr_pool_t *p, const void *key, apr_ssize_t length, const void *one, const void *other, const void *pool)
{
    apr_pool_destroy((apr_pool_t *)pool);
    return NULL;
}

/* Changes what APR goes through: the answer is how often it was called, or how much there is in the end. */
static int grow_table(void *table, const char *key, const char *value)
{
    int n;

    for (n = 0; n < 100; n++)
        apr_table_addn(table, "more", "of it");
    return ++depth < 1000;
}

static void *grow_hash(apr_pool_t *p, const void *key, apr_ssize_t length, const void *one, const void *other, const void *hash)
{
    int n;

    for (n = 0; n < 1000; n++)
        apr_hash_set((apr_hash_t *)hash, apr_psprintf(p, "%d", n), APR_HASH_KEY_STRING, "more");
    return NULL;
}

int grown(request_rec *r, const char *what)
{
    apr_table_t *table = apr_table_make(r->pool, 2);
    apr_hash_t *hash = apr_hash_make(r->pool), *base = apr_hash_make(r->pool);

    depth = 0;
    apr_table_setn(table, "one", "1");
    apr_table_setn(table, "two", "2");
    apr_hash_set(hash, "one", APR_HASH_KEY_STRING, "1");
    apr_hash_set(base, "one", APR_HASH_KEY_STRING, "1");
    if (!strcmp(what, "table-grown"))
        apr_table_do(grow_table, table, table, NULL);
    else
        depth = apr_hash_count(apr_hash_merge(r->pool, hash, base, grow_hash, hash));
    ap_set_content_type(r, "text/plain");
    ap_rprintf(r, "%d", depth);
    return OK;
}

/* Ends what APR goes through. */
void tables(request_rec *r, const char *what)
{
    apr_pool_t *above, *p;
    apr_table_t *table;

    if (strcmp(what, "table-part") && strcmp(what, "table-pool") && strcmp(what, "table-above") && strcmp(what, "hash-pool"))
        return;
    if (!strcmp(what, "table-part")) {
        request_rec *part = ap_sub_req_lookup_uri("/page.html", r, NULL);
        table = apr_table_make(part->pool, 4);
        apr_table_set(table, "one", "1");
        apr_table_do(end_part, part, table, NULL);
        return;
    }
    apr_pool_create(&above, r->pool);
    apr_pool_create(&p, above);
    table = apr_table_make(p, 4);
    apr_table_set(table, "one", "1");
    apr_table_set(table, "two", "2");
    if (!strcmp(what, "hash-pool")) {
        apr_hash_t *hash = apr_hash_make(p);
        apr_hash_set(hash, "one", APR_HASH_KEY_STRING, "1");
        apr_hash_merge(r->pool, hash, hash, end_hash, p);
        return;
    }
    apr_table_do(end_table, strcmp(what, "table-above") ? p : above, table, NULL);
}
