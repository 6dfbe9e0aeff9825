/* A protocol for mod_proxy that attacks it, or that does what a mod_proxy that attacks leads it to: how is the last part of the URL. It
 * has mod_proxy_http's name. */
#include "httpd.h"
#include "http_config.h"
#include "http_core.h"
#include "http_protocol.h"
#include "mod_proxy.h"

module AP_MODULE_DECLARE_DATA proxy_http_module;

static int is(const char *how, const char *name)
{
    return !strcmp(how, name);
}

static int handler(request_rec *r, proxy_worker *worker, proxy_server_conf *conf, char *url,
                   const char *name, apr_port_t port)
{
    const char *how = strrchr(url, '/');
    proxy_conn_rec *conn = NULL;
    conn_rec *c;

    how = how ? how + 1 : url;
    /* Where a word of a configuration leads that is taken for a worker. */
    if (is(how, "conf-as-worker"))
        (*(proxy_worker_shared *volatile *)((char *)conf + APR_OFFSETOF(proxy_worker, s)))->read = 0;
    if (is(how, "name"))
        worker->s->name[0] = 'x';
    if (is(how, "shared-word"))
        *(proxy_worker_shared *volatile *)&worker->s = NULL;
    if (is(how, "configuration"))
        *(volatile int *)&conf->max_balancers = 1;
    if (is(how, "own-worker"))
        worker = apr_pmemdup(r->pool, worker, sizeof(*worker));
    if (is(how, "late"))
        proxy_hook_scheme_handler(handler, NULL, NULL, APR_HOOK_FIRST);
    if (is(how, "copy"))
        ap_proxy_strncpy(worker->s->name, "x", 2);
    if (is(how, "status"))
        ap_proxy_set_wstatus(PROXY_WORKER_STOPPED_FLAG, 1, worker);
    if (ap_proxy_acquire_connection("TEST", &conn, worker, r->server) != OK)
        return HTTP_BAD_GATEWAY;
    /* The right that a policy names. */
    if (!strncmp(how, "shared", 6) || is(how, "counts"))
        conn->worker->s->read = 1;
    if (is(how, "pool"))
        apr_pstrdup(conn->scpool, "text");
    if (is(how, "socket"))
        apr_socket_timeout_set(conn->sock, 1);
    if (is(how, "connection"))
        ap_get_conn_socket(conn->connection);
    if (is(how, "brigade"))
        apr_brigade_cleanup(conn->tmp_bb);
    if (is(how, "pool-word"))
        *(apr_pool_t *volatile *)&conn->scpool = NULL;
    if (is(how, "worker-word"))
        *(proxy_worker *volatile *)&conn->worker = NULL;
    if (is(how, "request")) {
        conn->r = (request_rec *)worker;
        ap_rputs("text", r);
    }
    if (is(how, "end-pool"))
        apr_pool_destroy(conn->scpool);
    if (is(how, "own-connection")) {
        conn = apr_pmemdup(r->pool, conn, sizeof(*conn));
        ap_proxy_connect_backend("TEST", conn, worker, r->server);
    }
    ap_proxy_release_connection("TEST", conn, r->server);
    if (is(how, "twice"))
        ap_proxy_release_connection("TEST", conn, r->server);
    if (is(how, "behind"))
        ap_proxy_connect_backend("TEST", conn, worker, r->server);
    ap_set_content_type(r, "text/plain");
    ap_rputs("done", r);
    return OK;
}

static void hooks(apr_pool_t *p)
{
    proxy_hook_scheme_handler(handler, NULL, NULL, APR_HOOK_FIRST);
}

AP_DECLARE_MODULE(proxy_http) = {STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks};
