/* Calls for which the host writes or follows a little more than it was asked to. */
#include "hostile.h"
#include "apr_base64.h"
#include "apr_escape.h"
#include <sys/socket.h>

static char *const wild = (char *)0x4000;

#ifdef WITHOUT_WALL
#define LIBRARY __attribute__((weak))
#else
#define LIBRARY
#endif
LIBRARY void *htmlCreatePushParserCtxt(void *, void *, const char *, int, const char *, int);
LIBRARY int htmlParseChunk(void *, const char *, int, int);

void passed(request_rec *r, const char *what)
{
    static void *functions[32];

    /* Three bytes are the module's, and the next one is the core's: the word behind that of its own filter. */
    if (!strcmp(what, "passed-decoded")) {
        ap_filter_t *f = ap_add_output_filter("HOSTILE", NULL, r, r->connection);
        f->ctx = f;
        apr_base64_decode((char *)&f->next - 3, "AAAA");
    }
    if (!strcmp(what, "passed-method"))
        ap_allow_methods(r, 0, wild, NULL);
    if (!strcmp(what, "passed-page"))
        htmlCreatePushParserCtxt(wild, r, "", 0, NULL, 0);
    if (!strcmp(what, "passed-page-begun"))
        htmlCreatePushParserCtxt(functions, r, wild, 4, NULL, 0);
    if (!strcmp(what, "passed-page-name"))
        htmlCreatePushParserCtxt(functions, r, "<p>", 3, wild, 0);
    if (!strcmp(what, "passed-page-more"))
        htmlParseChunk(htmlCreatePushParserCtxt(functions, r, "<p>", 3, NULL, 0), wild, 100, 0);
    if (!strcmp(what, "passed-beside")) {
        struct msghdr message;
        int descriptor = -1;
        memset(&message, 0, sizeof(message));
        message.msg_control = wild;
        message.msg_controllen = 24;
        apr_os_sock_get(&descriptor, ap_get_conn_socket(r->connection));
        sendmsg(descriptor, &message, 0);
    }
}

/* One thread has httpd set a field at the distance that a directive's row has, and another one changes that distance meanwhile. */
static void *volatile *volatile distance;
static volatile int step, seen, given_up;

const char *set_slots(cmd_parms *cmd, void *configuration, const char *text)
{
    int n = 0;

    given_up = seen = step = 0;
    distance = (void *volatile *)&cmd->info;
    while (!given_up) {
        cmd->info = NULL;
        step = ++n;
        ap_set_int_slot(cmd, configuration, "1094795585");
        while (seen != n && !given_up)
            ;
    }
    distance = NULL;
    return NULL;
}

void *slots_of(apr_pool_t *p, char *folder)
{
    return apr_pcalloc(p, 64);
}

int slots(request_rec *r, const char *what)
{
    int n, wait, i, turns = 0;

    for (n = 0; !distance && n < 1000000000; n++)
        depth = n;
    /* First so late that nothing happens, and then earlier and earlier. */
    for (n = 1, wait = 20000; distance && wait > 0 && turns < 200000000; n++, wait -= 2) {
        unsigned x = n;
        /* The other request's call may have been ended: then nobody takes the next step. */
        while (step != n && distance && turns < 200000000)
            turns++;
        for (i = 0; i < wait; i++)
            x = x * 3 + 1;
        depth = (int)x;
        if (distance)
            *distance = (void *)0x70000000;
        seen = n;
    }
    given_up = 1;
    ap_set_content_type(r, "text/plain");
    ap_rputs("done", r);
    return OK;
}

const char *answers(cmd_parms *cmd, void *configuration, const char *text)
{
    return wild;
}

static apr_status_t on(ap_filter_t *f, apr_bucket_brigade *bb)
{
    return ap_pass_brigade(f->next, bb);
}

static volatile int has_returned, order;

static apr_status_t gone(void *data)
{
    order = has_returned ? 2 : 1;
    return APR_SUCCESS;
}

/* The request ends, and the function that has ended it goes on. */
static void last(void *data)
{
    ap_process_request_after_handler(data);
    has_returned = 1;
}

/* Things that last longer than their request, or are used when that is gone. */
int lasting(request_rec *r, const char *what)
{
    if (!strcmp(what, "lasting-timer")) {
        apr_pool_cleanup_register(r->pool, NULL, gone, apr_pool_cleanup_null);
        /* Later than the call that suspends the request. */
        ap_mpm_register_timed_callback(apr_time_from_msec(300), last, r);
        return SUSPENDED;
    }
    if (!strcmp(what, "lasting-filter")) {
        static ap_filter_rec_t record;
        memset(&record, 0, sizeof(record));
        record.name = "of the connection";
        record.filter_func.out_func = on;
        record.ftype = AP_FTYPE_CONNECTION + 1;
        ap_add_output_filter_handle(&record, NULL, r, r->connection);
    }
    ap_set_content_type(r, "text/plain");
    ap_rprintf(r, "%d", order);
    return OK;
}
