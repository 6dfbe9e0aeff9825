/* Rings of buckets. */
#include "hostile.h"

/* The core would take bytes of its own for the bucket's. */
static apr_status_t read_foreign(apr_bucket *b, const char **text, apr_size_t *bytes, apr_read_type_e block)
{
    apr_bucket_heap_make(b, b->data, 64, NULL);
    return APR_SUCCESS;
}

/* Rings of buckets that the core would follow. */
void rings(request_rec *r, const char *what)
{
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    apr_bucket *e = apr_bucket_immortal_create("text", 4, bb->bucket_alloc);
    static apr_bucket forged;

    APR_BRIGADE_INSERT_TAIL(bb, e);
    if (!strcmp(what, "ring"))
        e->link.next = (apr_bucket *)((char *)r->connection + 8);
    if (!strcmp(what, "twice"))
        e->link.next = e;
    if (!strcmp(what, "type")) {
        static apr_bucket_type_t type;
        type = *e->type;
        type.destroy = (void (*)(void *))0x1234;
        e->type = &type;
    }
    if (!strcmp(what, "longer"))
        e->length = 1 << 20;
    if (!strcmp(what, "elsewhere"))
        e->data = r->connection;
    if (!strcmp(what, "forged")) {
        const char *text;
        apr_size_t bytes;
        forged = *e;
        apr_bucket_read(&forged, &text, &bytes, APR_BLOCK_READ);
    }
    if (!strcmp(what, "kind") || !strcmp(what, "bytes")) {
        static apr_bucket_type_t type;
        apr_bucket *own = apr_bucket_alloc(sizeof(*own), bb->bucket_alloc);
        *own = *e;
        type = *e->type;
        type.read = strcmp(what, "kind") ? read_foreign : (void *)0x1234;
        own->type = &type;
        own->data = r->connection;
        APR_BRIGADE_INSERT_TAIL(bb, own);
    }
    if (!strcmp(what, "freed-bucket")) {
        apr_bucket_delete(e);
        apr_bucket_destroy(e);
    }
    ap_pass_brigade(r->output_filters, bb);
}
