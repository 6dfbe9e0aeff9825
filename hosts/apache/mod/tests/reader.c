/* A module that has functions which only read in itself, as all modules of `apache-modules` do (inside/reads.c). */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "apr_strings.h"
#include "apr_tables.h"
#include "apr_buckets.h"
#include "util_filter.h"
#include "apr_hash.h"

#ifdef WITHOUT_WALL
static int mullion_reads_hashes = 1;
#else
extern int mullion_reads_hashes;
#endif

/* Keys of three lengths, which a hash that grows has; those of even numbers go again. */
static void hashes(request_rec *r)
{
    apr_hash_t *hash = apr_hash_make(r->pool);
    int n, found = 0, wrong = 0;
    char *key;

    for (n = 0; n < 300; n++)
        apr_hash_set(hash, apr_psprintf(r->pool, "key %d", n), APR_HASH_KEY_STRING, apr_psprintf(r->pool, "%d", n));
    for (n = 0; n < 300; n += 2)
        apr_hash_set(hash, apr_psprintf(r->pool, "key %d", n), APR_HASH_KEY_STRING, NULL);
    apr_hash_set(hash, "key 1\0more", 10, "longer");
    apr_hash_set(hash, "", 0, "empty");
    for (n = -1; n < 301; n++) {
        const char *value;

        key = apr_psprintf(r->pool, "key %d!", n);
        value = apr_hash_get(hash, key, strlen(key) - 1);
        found += value != NULL;
        wrong += value != NULL && atoi(value) != n;
        wrong += apr_hash_get(hash, key, APR_HASH_KEY_STRING) != NULL;
    }
    ap_rprintf(r, "%d %d %d", mullion_reads_hashes, found, wrong);
    ap_rprintf(r, " %s %s %s", (char *)apr_hash_get(hash, "key 1\0more", 10), (char *)apr_hash_get(hash, "key 1", APR_HASH_KEY_STRING),
               (char *)apr_hash_get(hash, "", APR_HASH_KEY_STRING));
    ap_rprintf(r, " %s %s\n", apr_hash_get(hash, "key 1\0mire", 10) ? "!" : "-", apr_hash_get(hash, "key 2", 5) ? "!" : "-");
}

/* Strings that are made in the module, or by the host. */
static void strings(request_rec *r)
{
    apr_pool_t *p = r->pool;
    const char *long_one = apr_pstrcat(p, "a string of ", r->uri, " and of ", "more", "", NULL);

    ap_rputs(apr_psprintf(p, "%s%d|%d%s|%d|%d|%d|", "", 0, -1, "x", 2147483647, -2147483647 - 1, -10), r);
    ap_rputs(apr_psprintf(p, "%s|%s|", long_one, (char *)NULL), r);
    ap_rputs(apr_psprintf(p, "%s %d%% %5d|%-5s|%lx|%.2f|%.3s|%" APR_PID_T_FMT "|", "by the host:", 7, 7, "left", 255L, 1.5, "abcdef", 42), r);
    ap_rputs(apr_psprintf(p, "%d%d%d%d%d%d%d%d%s%c|", 1, 2, 3, 4, 5, 6, 7, 8, "nine", 'c'), r);
    ap_rputs(apr_psprintf(p, ""), r);
    ap_rputs(apr_pstrcat(p, NULL), r);
    ap_rputs(apr_pstrcat(p, "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", NULL), r);
    ap_rprintf(r, " %d\n", ap_is_initial_req(r));
}

static apr_status_t read_late(apr_bucket *e, const char **text, apr_size_t *bytes, apr_read_type_e block)
{
    e->length = *bytes = 5;
    *text = "later";
    return e->start ? APR_EGENERAL : APR_SUCCESS;
}

static const apr_bucket_type_t late = { "LATE",           5, APR_BUCKET_DATA, apr_bucket_destroy_noop, read_late, apr_bucket_setaside_noop,
                                        apr_bucket_split_notimpl, apr_bucket_copy_notimpl };

/* Lengths of brigades: of none, of some, and of one whose length its bucket knows when it is read, or never. */
static void lengths(request_rec *r)
{
    apr_bucket_alloc_t *all = r->connection->bucket_alloc;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, all);
    apr_bucket *own = apr_bucket_alloc(sizeof(*own), all);
    apr_off_t length = 7;
    int status = apr_brigade_length(bb, 1, &length);

    ap_rprintf(r, "%d %d", status, (int)length);
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_immortal_create("seven b", 7, all));
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_flush_create(all));
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_heap_create("and more", 8, NULL, all));
    status = apr_brigade_length(bb, 0, &length);
    ap_rprintf(r, " %d %d", status, (int)length);
    memset(own, 0, sizeof(*own));
    APR_BUCKET_INIT(own);
    own->type = &late;
    own->free = apr_bucket_free;
    own->list = all;
    own->length = (apr_size_t)-1;
    own->start = 1;
    APR_BRIGADE_INSERT_TAIL(bb, own);
    status = apr_brigade_length(bb, 0, &length);
    ap_rprintf(r, " %d %d", status, (int)length);
    status = apr_brigade_length(bb, 1, &length);
    ap_rprintf(r, " %d %d", status, (int)length);
    own->length = (apr_size_t)-1;
    own->start = 0;
    status = apr_brigade_length(bb, 1, &length);
    ap_rprintf(r, " %d %d\n", status, (int)length);
}

static int reader(request_rec *r)
{
    const char *what;
    apr_table_t *table;
    apr_array_header_t *list, *names;
    apr_bucket_brigade *bb;
    struct iovec places[2] = { { " of two", 7 }, { " places", 7 } };
    int n;

    if (!r->handler || strcmp(r->handler, "reader"))
        return DECLINED;
    what = strrchr(r->uri, '/') + 1;
    if (!strcmp(what, "wild"))
        apr_table_get((apr_table_t *)0x12345678, "host");
    if (!strcmp(what, "wild-array"))
        apr_is_empty_array((apr_array_header_t *)0x12345678);
    if (!strcmp(what, "wild-hash"))
        apr_hash_get((apr_hash_t *)0x12345678, "host", APR_HASH_KEY_STRING);
    if (!strcmp(what, "wild-brigade")) {
        apr_off_t length;
        apr_brigade_length((apr_bucket_brigade *)0x12345678, 0, &length);
    }
    if (!strcmp(what, "foreign-length"))
        apr_brigade_length(apr_brigade_create(r->pool, r->connection->bucket_alloc), 0, (apr_off_t *)r->server);
    if (!strcmp(what, "made") || !strcmp(what, "asked")) {
        ap_set_content_type(r, "text/plain");
        mullion_reads_hashes = mullion_reads_hashes && strcmp(what, "asked");
        hashes(r);
        strings(r);
        lengths(r);
        mullion_reads_hashes = 1;
        return OK;
    }
    table = apr_table_make(r->pool, 2);
    list = apr_array_make(r->pool, 2, sizeof(char *));
    ap_set_content_type(r, "text/plain");
    ap_rprintf(r, "%d%d ", apr_is_empty_table(table), apr_is_empty_array(list));
    apr_table_set(table, "one", "1");
    apr_table_add(table, "One", "2");
    apr_table_set(table, "two", "3");
    *(const char **)apr_array_push(list) = "first";
    *(const char **)apr_array_push(list) = "second";
    ap_rprintf(r, "%d%d ", apr_is_empty_table(table), apr_is_empty_array(list));
    ap_rprintf(r, "%s %s %s %s ", apr_table_get(table, "ONE"), apr_table_get(table, "tWo"), apr_table_get(table, "three") ? "!" : "-",
               apr_table_get(r->headers_in, "x-asked"));
    ap_rprintf(r, "%d%d %d %d %d", ap_array_str_contains(list, "second"), ap_array_str_contains(list, "Second"), ap_array_str_index(list, "first", 0),
               ap_array_str_index(list, "first", 1), ap_array_str_index(list, "first", -1));
    names = apr_array_make(r->pool, 1, sizeof(char *));
    *(const char **)apr_array_push(names) = "whole";
    n = ap_regname(ap_pregcomp(r->pool, "(?<first>a)(b)(?<third>c)", 0), names, "MATCH_", 1);
    ap_rprintf(r, " %d %d", n, names->nelts);
    for (n = 0; n < names->nelts; n++)
        ap_rprintf(r, " %s", ((char **)names->elts)[n] ? ((char **)names->elts)[n] : "-");
    bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    apr_brigade_writev(bb, NULL, NULL, places, 2);
    ap_pass_brigade(r->output_filters, bb);
    return OK;
}

static void hooks(apr_pool_t *p)
{
    ap_hook_handler(reader, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(reader) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks };
