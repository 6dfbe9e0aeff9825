/* A mod_proxy that attacks the modules of protocols, and the server by them: how is the last part of the path. It has mod_proxy's name. */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "ap_provider.h"
#include "mod_proxy.h"

module AP_MODULE_DECLARE_DATA proxy_module;

static proxy_HOOK_scheme_handler_t *protocol;
static proxy_conn_rec *made;
static proxy_worker *worker;

static int is(const char *how, const char *name)
{
    return !strcmp(how, name);
}

void proxy_hook_scheme_handler(proxy_HOOK_scheme_handler_t *function, const char *const *before,
                               const char *const *behind, int order)
{
    protocol = function;
}

int ap_proxy_acquire_connection(const char *name, proxy_conn_rec **to, proxy_worker *of, server_rec *s)
{
    *to = made;
    return OK;
}

int ap_proxy_release_connection(const char *name, proxy_conn_rec *conn, server_rec *s)
{
    return OK;
}

static int handler(request_rec *r)
{
    const char *how = strrchr(r->uri, '/') + 1;
    proxy_server_conf *conf = apr_pcalloc(r->pool, sizeof(*conf));
    proxy_worker_shared *shared = apr_pcalloc(r->pool, sizeof(*shared));

    if (!protocol || strncmp(r->uri, "/proxy/", 7))
        return DECLINED;
    worker = apr_pcalloc(r->pool, sizeof(*worker));
    worker->s = shared;
    made = apr_pcalloc(r->pool, sizeof(*made));
    made->worker = worker;
    made->pool = made->scpool = r->pool;
    /* Where the core has a word that no policy names. */
    if (is(how, "shared"))
        worker->s = (proxy_worker_shared *)((char *)&r->per_dir_config - APR_OFFSETOF(proxy_worker_shared, read));
    if (is(how, "shared-nowhere"))
        worker->s = (proxy_worker_shared *)0x4000;
    if (is(how, "shared-beyond"))
        worker->s = (proxy_worker_shared *)((char *)shared + 4096);
    if (is(how, "core"))
        made = (proxy_conn_rec *)r;
    if (is(how, "nowhere"))
        made = (proxy_conn_rec *)0x4000;
    if (is(how, "pool"))
        made->scpool = (apr_pool_t *)worker;
    if (is(how, "socket"))
        made->sock = (apr_socket_t *)worker;
    if (is(how, "connection"))
        made->connection = (conn_rec *)worker;
    if (is(how, "brigade"))
        made->tmp_bb = (apr_bucket_brigade *)worker;
    if (is(how, "worker"))
        return protocol(r, (proxy_worker *)r, conf, apr_pstrdup(r->pool, how), NULL, 0);
    if (is(how, "conf"))
        return protocol(r, worker, (proxy_server_conf *)r->server, apr_pstrdup(r->pool, how), NULL, 0);
    return protocol(r, worker, conf, apr_pstrdup(r->pool, how), NULL, 0);
}

static void hooks(apr_pool_t *p)
{
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_FIRST);
}

/* Functions that another module calls are told by a module that offers some. */
int unused(void)
{
    return ap_register_provider(NULL, "", "", "", NULL);
}

AP_DECLARE_MODULE(proxy) = {STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks};
