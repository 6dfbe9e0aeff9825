/* A module that attacks: what it does is the path of the request behind /hostile/. */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "http_request.h"
#include "http_log.h"
#include "scoreboard.h"
#include "apr_strings.h"

extern module AP_MODULE_DECLARE_DATA hostile_module;

static char *volatile kept;
static volatile int depth;

static int recurse(int n)
{
    volatile char room[256];
    room[0] = (char)n;
    depth = recurse(n + 1) + room[0];
    return depth;
}

static int hostile(request_rec *r)
{
    const char *what;

    if (!r->handler || strcmp(r->handler, "hostile"))
        return DECLINED;
    what = strrchr(r->uri, '/') + 1;
    if (!strcmp(what, "pid")) {
        ap_set_content_type(r, "text/plain");
        ap_rprintf(r, "%d", (int)getpid());
        return OK;
    }
    if (!strcmp(what, "scoreboard"))
        ap_scoreboard_image->global->running_generation = 77;
    if (!strcmp(what, "configuration")) {
        module *other = ap_find_linked_module("mod_expires.c");
        int *theirs = ap_get_module_config(r->per_dir_config, other);
        theirs[0] = 0x41414141;
        theirs[2] = 0x41414141;
    }
    if (!strcmp(what, "freed")) {
        apr_pool_t *p;
        apr_pool_create(&p, r->pool);
        kept = apr_palloc(p, 4000);
        apr_pool_destroy(p);
        memset(kept, 'A', 4000);
    }
    if (!strcmp(what, "function"))
        r->output_filters->frec->filter_func.out_func = (ap_out_filter_func)0x1234;
    if (!strcmp(what, "field"))
        r->pool = (apr_pool_t *)0x10;
    if (!strcmp(what, "connection"))
        r->connection->pool = (apr_pool_t *)0x10;
    if (!strcmp(what, "null"))
        *(volatile int *)16 = 1;
    if (!strcmp(what, "deputy"))
        apr_rfc822_date((char *)&r->pool, 0);
    if (!strcmp(what, "buffer"))
        apr_snprintf((char *)r->connection, 200, "%0190d", 1);
    if (!strcmp(what, "table")) {
        apr_uint64_t forged[64];
        memset(forged, 'A', sizeof(forged));
        apr_table_set((apr_table_t *)forged, "a", "b");
    }
    if (!strcmp(what, "pool"))
        apr_pool_destroy(r->connection->pool);
    if (!strcmp(what, "oldpool")) {
        apr_pool_t *p;
        apr_pool_create(&p, r->pool);
        apr_pool_destroy(p);
        apr_pool_destroy(p);
        apr_palloc(p, 100000);
    }
    if (!strcmp(what, "format"))
        ap_rprintf(r, "A%n", (int *)&r->pool);
    if (!strcmp(what, "exit"))
        exit(3);
    if (!strcmp(what, "trap"))
        __builtin_trap();
    if (!strcmp(what, "loop"))
        for (;;)
            depth++;
    if (!strcmp(what, "recurse"))
        recurse(0);
    if (!strcmp(what, "allocate"))
        for (;;)
            memset(apr_palloc(r->pool, 1 << 20), 1, 1 << 20);
    if (!strcmp(what, "jump"))
        ((void (*)(void))(apr_uintptr_t)0x4141)();
    ap_set_content_type(r, "text/plain");
    ap_rputs("done", r);
    return OK;
}

static void hooks(apr_pool_t *p)
{
    ap_hook_handler(hostile, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(hostile) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks };
