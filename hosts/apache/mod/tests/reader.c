/* A module that has functions which only read in itself, as all modules of `apache-modules` do (inside/reads.c). */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "apr_strings.h"
#include "apr_tables.h"
#include "apr_buckets.h"
#include "util_filter.h"

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
