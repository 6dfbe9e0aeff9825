/* What a module has out of a list, leaves in a word, holds or makes work later, and what goes meanwhile. */
#include "hostile.h"

static apr_status_t make_one(void **to, void *data, apr_pool_t *p)
{
    *to = apr_palloc(p, 16);
    return APR_SUCCESS;
}

static apr_status_t end_one(void *resource, void *data, apr_pool_t *p)
{
    void *again_out;

    /* Out again, while the list goes. */
    if (data)
        apr_reslist_acquire(data, &again_out);
    return APR_SUCCESS;
}

static apr_reslist_t *a_list(apr_pool_t *p)
{
    apr_reslist_t *list;

    apr_reslist_create(&list, 0, 1, 4, 0, make_one, end_one, NULL, p);
    return list;
}

static void with_lists(request_rec *r, const char *what)
{
    apr_pool_t *sub;
    apr_reslist_t *list;
    void *one, *other;

    if (strcmp(what, "left-out") && strcmp(what, "left-again") && strcmp(what, "left-twice") && strcmp(what, "left-foreign"))
        return;
    apr_pool_create(&sub, r->pool);
    list = a_list(sub);
    apr_reslist_acquire(list, &one);
    if (!strcmp(what, "left-out"))
        apr_pool_destroy(sub);
    if (!strcmp(what, "left-again")) {
        apr_reslist_create(&list, 0, 1, 4, 0, make_one, end_one, list, sub);
        apr_reslist_acquire(list, &one);
        apr_pool_destroy(sub);
    }
    if (!strcmp(what, "left-twice")) {
        apr_reslist_release(list, one);
        apr_reslist_release(list, one);
    }
    if (!strcmp(what, "left-foreign")) {
        other = apr_palloc(r->pool, 16);
        apr_reslist_invalidate(list, other);
    }
}

/* Filters of one direction in the place of those of the other. */
static apr_status_t comes_in(ap_filter_t *f, apr_bucket_brigade *bb, ap_input_mode_t mode, apr_read_type_e block, apr_off_t bytes)
{
    return ap_get_brigade(f->next, bb, mode, block, bytes);
}

static void across(request_rec *r, const char *what)
{
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);

    if (!strcmp(what, "left-passed-in"))
        ap_pass_brigade(r->input_filters, bb);
    if (!strcmp(what, "left-flushed-in"))
        ap_fflush(r->connection->input_filters, bb);
    if (!strcmp(what, "left-got-out"))
        ap_get_brigade(r->output_filters, bb, AP_MODE_READBYTES, APR_BLOCK_READ, 10);
    if (!strcmp(what, "left-called-in")) {
        ap_filter_t *f = ap_add_input_filter("HOSTILE-IN", NULL, r, r->connection);
        ap_get_output_filter_handle("CONTENT_LENGTH")->filter_func.out_func(f, bb);
    }
}

/* A filter ends a segment from which the core sends, and goes on. */
static apr_shm_t *volatile sent;

static apr_status_t end_sent(ap_filter_t *f, apr_bucket_brigade *bb)
{
    apr_shm_t *now = sent;

    sent = NULL;
    if (now)
        apr_shm_destroy(now);
    return ap_pass_brigade(f->next, bb);
}

enum { SENT = 1 << 16 };

static int send_segment(request_rec *r)
{
    apr_shm_t *segment;

    apr_shm_create(&segment, SENT, NULL, r->pool);
    memset(apr_shm_baseaddr_get(segment), 'a', SENT);
    sent = segment;
    ap_add_output_filter("HOSTILE-SENT", NULL, r, r->connection);
    ap_set_content_type(r, "text/plain");
    ap_rwrite(apr_shm_baseaddr_get(segment), SENT, r);
    return OK;
}

/* A string in memory of the module, which it could change while the core reads it. */
static char own_id[] = "own";

int leave_id(const conn_rec *c, const request_rec *r, const char **id)
{
    if (!r || !r->uri || !strstr(r->uri, "left-id"))
        return DECLINED;
    *id = own_id;
    return OK;
}

static int log_id(request_rec *r)
{
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "with a number");
    ap_set_content_type(r, "text/plain");
    ap_rputs(!r->log_id ? "none" : r->log_id == own_id ? "where it lies" : r->log_id, r);
    return OK;
}

/* A timer that has come before the handler is over. */
static volatile int rang;

static void ring_beside(void *data)
{
    rang = 1;
}

static int beside(request_rec *r)
{
    int n;

    rang = 0;
    ap_mpm_register_timed_callback(0, ring_beside, r);
    for (n = 0; n < 300 && !rang; n++)
        apr_sleep(1000);
    ap_set_content_type(r, "text/plain");
    ap_rprintf(r, "%d", rang);
    return OK;
}

/* A bucket of a type of its own, which a brigade of the connection has behind the request. */
static apr_bucket_brigade *volatile lasting_bb;
static request_rec *volatile first_of_two;

static apr_status_t read_later(apr_bucket *b, const char **text, apr_size_t *bytes, apr_read_type_e block)
{
    /* What the first request had is not there any more. */
    apr_table_set(first_of_two->headers_out, "late", "late");
    apr_bucket_heap_make(b, "abc", 3, NULL);
    return APR_SUCCESS;
}

static int buckets(request_rec *r, const char *what)
{
    static apr_bucket_type_t type;
    const char *text;
    apr_size_t bytes;

    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "left-bucket")) {
        apr_bucket_brigade *bb = apr_brigade_create(r->connection->pool, r->connection->bucket_alloc);
        apr_bucket *e = apr_bucket_immortal_create("text", 4, bb->bucket_alloc);
        apr_bucket *own = apr_bucket_alloc(sizeof(*own), bb->bucket_alloc);

        *own = *e;
        type = *e->type;
        type.read = read_later;
        own->type = &type;
        first_of_two = r;
        APR_BRIGADE_INSERT_TAIL(bb, own);
        apr_brigade_puts(bb, NULL, NULL, "x");
        lasting_bb = bb;
        ap_rputs("left", r);
        return OK;
    }
    ap_rprintf(r, "read %d", apr_bucket_read(APR_BRIGADE_FIRST(lasting_bb), &text, &bytes, APR_BLOCK_READ));
    return OK;
}

/* What one object leads to goes before it does. */
static void keeps(request_rec *r, const char *what)
{
    apr_pool_t *sub;
    apr_socket_t *socket;
    apr_sockaddr_t *address;

    apr_pool_create(&sub, r->pool);
    if (!strcmp(what, "left-address")) {
        apr_socket_create(&socket, APR_INET, SOCK_STREAM, APR_PROTO_TCP, r->pool);
        apr_sockaddr_info_get(&address, "127.0.0.1", APR_INET, 0, 0, sub);
        apr_socket_bind(socket, address);
    }
    if (!strcmp(what, "left-statement")) {
        const apr_dbd_driver_t *driver;
        apr_dbd_t *handle;
        apr_dbd_prepared_t *statement = NULL;
        int rows;

        apr_dbd_init(r->pool);
        apr_dbd_get_driver(r->pool, "sqlite3", &driver);
        apr_dbd_open_ex(driver, r->pool, ":memory:", &handle, NULL);
        apr_dbd_prepare(driver, r->pool, handle, "SELECT 1", NULL, &statement);
        apr_dbd_close(driver, handle);
        apr_dbd_open_ex(driver, r->pool, ":memory:", &handle, NULL);
        apr_dbd_pvquery(driver, r->pool, handle, &rows, statement, NULL);
    }
}

/* The brigade that is under way lies in this pool. A filter of the connection ends it, when the core has it. */
static apr_pool_t *volatile under_way;

static apr_status_t end_pool(ap_filter_t *f, apr_bucket_brigade *bb)
{
    apr_pool_t *now = under_way;

    under_way = NULL;
    if (now)
        apr_pool_destroy(now);
    return ap_pass_brigade(f->next, bb);
}

static void pass_of_pool(request_rec *r)
{
    apr_pool_t *sub;
    apr_bucket_brigade *bb;

    apr_pool_create(&sub, r->pool);
    under_way = sub;
    bb = apr_brigade_create(sub, r->connection->bucket_alloc);
    apr_brigade_puts(bb, NULL, NULL, "some");
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_flush_create(bb->bucket_alloc));
    apr_brigade_puts(bb, NULL, NULL, "more");
    ap_add_output_filter("HOSTILE-POOL", NULL, r, r->connection);
    ap_set_content_type(r, "text/plain");
    ap_pass_brigade(r->output_filters, bb);
}

LIBRARY int ldap_set_option(void *, int, const void *);

int left(request_rec *r, const char *what)
{
    static const int never = 0;

    if (!strcmp(what, "left-segment"))
        return send_segment(r);
    if (!strcmp(what, "left-id"))
        return log_id(r);
    if (!strcmp(what, "left-beside"))
        return beside(r);
    if (!strncmp(what, "left-bucket", 11))
        return buckets(r, what);
    if (!strcmp(what, "left-pool"))
        pass_of_pool(r);
    /* For all of the process: certificates are not looked at; the library tells all. */
    if (!strcmp(what, "left-option"))
        ldap_set_option(NULL, 0x6006, &never);
    if (!strcmp(what, "left-option-later"))
        ldap_set_option(NULL, 0x5001, &never);
    with_lists(r, what);
    across(r, what);
    keeps(r, what);
    ap_set_content_type(r, "text/plain");
    ap_rputs("done", r);
    return OK;
}

void left_hooks(void)
{
    ap_hook_generate_log_id(leave_id, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_register_output_filter("HOSTILE-SENT", end_sent, NULL, AP_FTYPE_RESOURCE);
    ap_register_output_filter("HOSTILE-POOL", end_pool, NULL, AP_FTYPE_PROTOCOL);
    ap_register_input_filter("HOSTILE-IN", comes_in, NULL, AP_FTYPE_RESOURCE);
    if (ap_exists_config_define("NAME_OF_ABSENT_FILTER"))
        ap_register_output_filter("Substitute", end_sent, NULL, AP_FTYPE_RESOURCE);
}
