/* A module that reads what is not its to read: how is the path of the request behind /spy/, and where the query says. */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "scoreboard.h"
#include "apr_strings.h"
#include <stdlib.h>

module AP_MODULE_DECLARE_DATA spy_module;

static int spy(request_rec *r)
{
    const char *what, *found = "nothing";
    const char *at;

    if (!r->handler || strcmp(r->handler, "spy"))
        return DECLINED;
    what = strrchr(r->uri, '/') + 1;
    at = r->args ? (const char *)strtoul(r->args, NULL, 16) : NULL;
    if (!strcmp(what, "scoreboard"))
        found = apr_itoa(r->pool, ap_scoreboard_image->global->server_limit);
    if (!strcmp(what, "configuration")) {
        /* Of the module that was loaded just before. */
        int *theirs = ((int **)r->per_dir_config)[spy_module.module_index - 1];
        found = apr_itoa(r->pool, theirs[0]);
    }
    if (!strcmp(what, "address"))
        found = apr_psprintf(r->pool, "%c%c", at[0], at[1]);
    if (!strcmp(what, "copied"))
        found = apr_pstrdup(r->pool, at);
    if (!strcmp(what, "printed"))
        found = apr_psprintf(r->pool, "%s", at);
    if (!strcmp(what, "listed"))
        found = ap_get_list_item(r->pool, &at);
    if (!strcmp(what, "folder")) {
        char *to = apr_palloc(r->pool, 256);
        ap_make_dirstr_prefix(to, at, 1);
        found = to;
    }
    if (!strcmp(what, "table")) {
        apr_table_setn(r->notes, "spy", at);
        found = apr_table_get(r->notes, "spy");
    }
    if (!strcmp(what, "planted")) {
        r->handler = at;
        found = apr_psprintf(r->pool, "%c%c", r->handler[0], r->handler[1]);
    }
    if (!strcmp(what, "filters")) {
        /* The record of a filter is its first word. */
        const char **filter = apr_pcalloc(r->pool, 64);
        ap_filter_t *before = r->output_filters;
        char first;
        filter[0] = at;
        r->output_filters = (ap_filter_t *)filter;
        first = ((volatile const char *)at)[0];
        r->output_filters = before;
        found = apr_psprintf(r->pool, "%c", first);
    }
    if (!strcmp(what, "deleted")) {
        apr_bucket_brigade *all = apr_brigade_create(r->pool, r->connection->bucket_alloc);
        apr_bucket *one = apr_bucket_heap_create("/of a bucket", 12, NULL, r->connection->bucket_alloc);
        apr_size_t bytes;
        APR_BRIGADE_INSERT_TAIL(all, one);
        if (apr_bucket_read(one, &at, &bytes, APR_BLOCK_READ) || at[0] != '/')
            return HTTP_NOT_FOUND;
        apr_bucket_delete(one);
        found = apr_itoa(r->pool, at[0]);
    }
    if (!strcmp(what, "field")) {
        r->handler = at;
        ap_internal_redirect("/page.html", r);
        found = r->handler;
    }
    ap_set_content_type(r, "text/plain");
    ap_rputs(found, r);
    return OK;
}

static void hooks(apr_pool_t *p)
{
    ap_hook_handler(spy, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA spy_module = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks
};
