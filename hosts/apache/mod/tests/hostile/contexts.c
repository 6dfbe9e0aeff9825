/* What the core keeps under a filter's or a name's address, and believes: the word `ctx` of a filter, and records by their names. */
#include "hostile.h"

/* As the core's and other modules' filters have it at the beginning of their own: it leads nowhere. */
static apr_uint64_t *forged(void)
{
    static apr_uint64_t words[64];
    memset(words, 'A', sizeof(words));
    return words;
}

static apr_status_t nothing(ap_filter_t *f, apr_bucket_brigade *bb)
{
    return ap_pass_brigade(f->next, bb);
}

/* Calls a function of the core's, is called by that one's next filter, goes back to the first through the chain, and has another function
   of the core's take what the first one has left. */
static ap_filter_rec_t *counting, *cutting;
static int inside;

static apr_status_t nested(ap_filter_t *f, apr_bucket_brigade *bb)
{
    switch (inside++) {
    case 0:
        return counting->filter_func.out_func(f, bb);
    case 1:
        return ap_pass_brigade(f->r->output_filters, bb);
    case 2:
        f->ctx = f->r->output_filters;
        return cutting->filter_func.out_func(f, bb);
    default:
        return ap_pass_brigade(f->next, bb);
    }
}

/* Filters that would follow a word that is null, or hang behind those of another request. */
static void added(request_rec *r, const char *what)
{
    if (!strcmp(what, "context-old-null")) {
        ap_add_output_filter("OLD_WRITE", NULL, r, r->connection);
        ap_rputs("through it", r);
        ap_rflush(r);
    }
    if (!strcmp(what, "context-core-null")) {
        ap_add_output_filter("CORE", NULL, NULL, r->connection);
        ap_rputs("through it", r);
        ap_rflush(r);
    }
    if (!strcmp(what, "context-core-input")) {
        ap_add_input_filter("CORE_IN", NULL, NULL, r->connection);
        ap_rflush(r);
    }
    if (!strcmp(what, "context-core-called")) {
        ap_filter_t *f = ap_add_output_filter("HOSTILE", NULL, r, r->connection);
        apr_bucket_brigade *bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);

        ap_get_output_filter_handle("CORE")->filter_func.out_func(f, bb);
    }
    if (!strcmp(what, "context-of-part")) {
        request_rec *part;

        ap_add_output_filter("HOSTILE", NULL, r, r->connection);
        part = ap_sub_req_lookup_uri("/page.html", r, r->output_filters);
        ap_add_output_filter("CONTENT_LENGTH", NULL, part, r->connection);
    }
    if (!strcmp(what, "context-nested")) {
        ap_add_output_filter("NESTED", NULL, r, r->connection);
        ap_add_output_filter("NESTED", NULL, r, r->connection);
        counting = ap_get_output_filter_handle("CONTENT_LENGTH");
        cutting = ap_get_output_filter_handle("BYTERANGE");
        inside = 0;
        ap_rputs("through them", r);
        ap_rflush(r);
    }
}

/* Filters of the core's, with a word that is the attacker's. */
void contexts(request_rec *r, const char *what)
{
    ap_filter_rec_t *record = ap_get_output_filter_handle("CONTENT_LENGTH");

    added(r, what);
    if (!strcmp(what, "context-passed"))
        ap_add_output_filter("CONTENT_LENGTH", forged(), r, r->connection);
    if (!strcmp(what, "context-of-old"))
        ap_add_output_filter("OLD_WRITE", forged(), r, r->connection);
    if (!strcmp(what, "context-by-record"))
        ap_add_output_filter_handle(record, forged(), r, r->connection);
    if (!strcmp(what, "context-of-input"))
        ap_add_input_filter("HTTP_IN", forged(), r, r->connection);
    if (!strcmp(what, "context-of-input-record"))
        ap_add_input_filter_handle(ap_get_input_filter_handle("HTTP_IN"), forged(), r, r->connection);
    if (!strcmp(what, "context-written")) {
        ap_filter_t *f = ap_add_output_filter("CONTENT_LENGTH", NULL, r, r->connection);
        f->ctx = forged();
    }
    if (!strcmp(what, "context-name")) {
        static ap_filter_rec_t own;
        own = *record;
        own.name = (const char *)0x4000;
        own.filter_func.out_func = nothing;
        ap_add_output_filter_handle(&own, NULL, r, r->connection);
    }
    if (!strcmp(what, "context-called") || !strcmp(what, "context-crossed")) {
        ap_filter_t *f = ap_add_output_filter("HOSTILE", NULL, r, r->connection);
        apr_bucket_brigade *bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);
        f->ctx = forged();
        if (!strcmp(what, "context-crossed")) {
            /* What one function has left there is not another one's. */
            f->ctx = NULL;
            record->filter_func.out_func(f, bb);
            record = ap_get_output_filter_handle("BYTERANGE");
            if (f->ctx == NULL)
                return;
        }
        record->filter_func.out_func(f, bb);
    }
}

/* Before the configuration is read for good: the core looks up what it has kept under this name, and follows it. */
void names(apr_pool_t *p, server_rec *s)
{
    if (ap_exists_config_define("NAME_OF_DATA"))
        apr_pool_userdata_set(forged(), "mpm_event_module", apr_pool_cleanup_null, s->process->pool);
    if (ap_exists_config_define("NAME_OF_LASTING_DATA"))
        apr_pool_userdata_setn(forged(), "mpm_event_module", apr_pool_cleanup_null, s->process->pool);
    if (ap_exists_config_define("NAME_OF_RETAINED"))
        memset(ap_retained_data_create("mpm_event_module", 256), 'A', 256);
}

static apr_status_t nothing_in(ap_filter_t *f, apr_bucket_brigade *bb, ap_input_mode_t mode, apr_read_type_e block, apr_off_t bytes)
{
    return ap_get_brigade(f->next, bb, mode, block, bytes);
}

/* The core takes a filter with this record for its own, whose function it is not any more. */
void records(void)
{
    ap_register_output_filter("NESTED", nested, NULL, AP_FTYPE_CONTENT_SET);
    if (ap_exists_config_define("NAME_OF_FILTER"))
        ap_register_output_filter("OLD_WRITE", nothing, NULL, AP_FTYPE_RESOURCE);
    if (ap_exists_config_define("NAME_OF_INPUT_FILTER"))
        ap_register_input_filter("HTTP_IN", nothing_in, NULL, AP_FTYPE_PROTOCOL);
}
