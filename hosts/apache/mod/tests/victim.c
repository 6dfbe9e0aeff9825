/* A module without a wall that tells where it has secrets, and stays in the request meanwhile. */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "apr_strings.h"
#include <stdlib.h>

static char *of_process, *of_configuration;

static int victim(request_rec *r)
{
    char *of_request;

    if (!r->handler || strcmp(r->handler, "victim"))
        return DECLINED;
    of_request = apr_pstrdup(r->pool, "/secret of the request");
    ap_set_content_type(r, "text/plain");
    ap_rprintf(r, "%lx %lx %lx \n", (long)of_request, (long)of_process, (long)of_configuration);
    ap_rflush(r);
    apr_sleep(apr_time_from_sec(20));
    return OK;
}

static int made(apr_pool_t *p, apr_pool_t *log, apr_pool_t *temp, server_rec *s)
{
    of_process = strdup("/secret of the process");
    of_configuration = apr_pstrdup(p, "/secret of the configuration");
    return OK;
}

static void hooks(apr_pool_t *p)
{
    ap_hook_post_config(made, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(victim, NULL, NULL, APR_HOOK_FIRST);
}

module AP_MODULE_DECLARE_DATA victim_module = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks
};
