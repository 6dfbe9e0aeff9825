/* A module that attacks: what it does is the path of the request behind /hostile/. */
#include "hostile.h"

extern module AP_MODULE_DECLARE_DATA hostile_module;

char *volatile kept;
volatile int depth;
static volatile int at_next;

static int recurse(int n)
{
    volatile char room[256];
    room[0] = (char)n;
    depth = recurse(n + 1) + room[0];
    return depth;
}

apr_reslist_t *resources;
apr_thread_mutex_t *lock_of_threads;
apr_global_mutex_t *lock_of_processes;

volatile int again;

static apr_status_t make_resource(void **to, void *data, apr_pool_t *p)
{
    if (again) {
        again = 0;
        return apr_reslist_acquire(resources, to);
    }
    *to = apr_palloc(p, 16);
    return APR_SUCCESS;
}

static apr_status_t end_resource(void *resource, void *data, apr_pool_t *p)
{
    return APR_SUCCESS;
}

static void begin(apr_pool_t *p, server_rec *s)
{
    apr_thread_mutex_create(&lock_of_threads, APR_THREAD_MUTEX_DEFAULT, p);
    apr_global_mutex_child_init(&lock_of_processes, apr_global_mutex_lockfile(lock_of_processes), p);
    apr_reslist_create(&resources, 0, 1, 4, 0, make_resource, end_resource, NULL, p);
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
    /* What is written lies over the rest of the format: a %n that was not there when the format was looked at. */
    if (!strcmp(what, "format-over") || !strcmp(what, "scan-over")) {
        static char line[64];
        int before = ap_scoreboard_image->global->running_generation;
        strcpy(line, "%s........");
        if (!strcmp(what, "format-over"))
            apr_snprintf(line, sizeof(line), line, ".....%n", &ap_scoreboard_image->global->running_generation);
        else
            sscanf("..%n", line, line, &ap_scoreboard_image->global->running_generation);
        ap_set_content_type(r, "text/plain");
        ap_rputs(before == ap_scoreboard_image->global->running_generation ? "as before" : "changed", r);
        return OK;
    }
    if (!strncmp(what, "put-", 4))
        return put(r, what);
    if (!strncmp(what, "fill-", 5))
        return fill(r, what);
    if (!strncmp(what, "heap-", 5))
        return heap(r, what);
    if (!strcmp(what, "raced-first") || !strcmp(what, "raced-second"))
        return raced(r, !strcmp(what, "raced-second"));
    if (!strcmp(what, "table-grown") || !strcmp(what, "hash-grown"))
        return grown(r, what);
    if (!strncmp(what, "lock-", 5) || !strcmp(what, "wait-for-good"))
        return locked(r, what);
    if (strstr(what, "kept") || !strncmp(what, "keep-", 5) || !strcmp(what, "go-on"))
        return waits(r, what);
    if (!strncmp(what, "two-", 4))
        return of_two(r, what);
    if (strstr(what, "-followed"))
        return followed(r, what);
    if (!strcmp(what, "slots-forged"))
        return slots(r, what);
    if (!strncmp(what, "lasting-", 8))
        return lasting(r, what);
    if (!strncmp(what, "left-", 5))
        return left(r, what);
    if (!strcmp(what, "next")) {
        at_next = 1;
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
    /* Its own word in the request's list stays granted, and no other one is. */
    if (!strcmp(what, "words")) {
        ap_set_module_config(r->request_config, &hostile_module, r);
        ((void **)r->request_config)[hostile_module.module_index - 1] = r;
    }
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
    if (!strcmp(what, "receive")) {
        apr_size_t bytes = 64;
        apr_socket_recv(ap_get_conn_socket(r->connection), (char *)r->connection, &bytes);
    }
    if (!strcmp(what, "unopened")) {
        static char forged[512];
        apr_file_t *file = (apr_file_t *)forged;
        memset(forged, 'A', sizeof(forged));
        apr_file_open(&file, "/no/such/file", APR_READ, 0, r->pool);
        apr_file_close(file);
    }
    if (!strcmp(what, "resource")) {
        void *resource;
        apr_reslist_acquire(resources, &resource);
        *(volatile int *)16 = 1;
    }
    if (!strcmp(what, "swap-later")) {
        *(ap_filter_t *volatile *)&r->output_filters = r->output_filters;
        ap_mpm_register_timed_callback(0, swap_later, r);
        return SUSPENDED;
    }
    if (!strcmp(what, "filter") || !strcmp(what, "late")) {
        ap_add_output_filter("HOSTILE", (void *)what, r, r->connection);
        ap_set_content_type(r, "text/plain");
        ap_rputs("first", r);
        ap_rflush(r);
        /* As many handlers do, this one does not look at what filters return. */
        ap_rputs("second", r);
        ap_rflush(r);
        return OK;
    }
    if (!strcmp(what, "characters"))
        r->filename[0] = 'X';
    if (!strncmp(what, "ending-", 7) || !strncmp(what, "opened-", 7)) {
        if (endings(r, what))
            return OK;
    }
    if (!strncmp(what, "over-", 5))
        return overlooked(r, what);
    if (!strncmp(what, "written-", 8) && written(r, what))
        return OK;
    passed(r, what);
    crossed(r, what);
    reads(r, what);
    texts(r, what);
    structures(r, what);
    tables(r, what);
    forgeries(r, what);
    if (!strncmp(what, "context-", 8))
        contexts(r, what);
    ends(r, what);
    objects(r, what);
    rings(r, what);
    ap_set_content_type(r, "text/plain");
    ap_rputs("done", r);
    return OK;
}

/* It attacks at once, or when something was sent already. */
static apr_status_t filter(ap_filter_t *f, apr_bucket_brigade *bb)
{
    if (f->ctx == NULL || !strcmp(f->ctx, "filter"))
        ap_scoreboard_image->global->running_generation = 77;
    f->ctx = NULL;
    return ap_pass_brigade(f->next, bb);
}

static void error_filter(request_rec *r)
{
    if (strstr(r->uri, "hostile/filter"))
        ap_add_output_filter("HOSTILE", NULL, r, r->connection);
}

static void insert(request_rec *r)
{
    if (strstr(r->uri, "hostile/insert"))
        ap_scoreboard_image->global->running_generation = 77;
}

/* Attacks when the next request is made: nothing of it is known yet. */
static int create(request_rec *r)
{
    if (at_next)
        *(volatile int *)16 = 1;
    return OK;
}

static int log_it(request_rec *r)
{
    if (strstr(r->uri, "hostile/log"))
        *(volatile int *)16 = 1;
    return OK;
}

static int before(apr_pool_t *p, apr_pool_t *log, apr_pool_t *temporary)
{
    return ap_mutex_register(p, "hostile", NULL, APR_LOCK_DEFAULT, 0);
}

static int configured(apr_pool_t *p, apr_pool_t *log, apr_pool_t *temporary, server_rec *s)
{
    ap_global_mutex_create(&lock_of_processes, NULL, "hostile", NULL, s, p, 0);
    names(p, s);
    written_first(temporary);
    /* When the configuration is read for good. */
    if (ap_exists_config_define("HOSTILE") && ap_state_query(AP_SQ_MAIN_STATE) != AP_SQ_MS_CREATE_PRE_CONFIG)
        *(volatile int *)16 = 1;
    return OK;
}

static void hooks(apr_pool_t *p)
{
    records();
    ending_filters();
    left_hooks();
    overlooked_hooks(p);
    ap_hook_create_request(create, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_http_scheme(take_scheme, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_log_transaction(log_it, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_child_init(begin, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_config(before, NULL, NULL, APR_HOOK_MIDDLE);
    taken_first(p);
    ap_hook_pre_config(taken, NULL, NULL, APR_HOOK_REALLY_LAST);
    ap_hook_post_config(configured, NULL, NULL, APR_HOOK_MIDDLE);
    ap_register_output_filter("HOSTILE", filter, NULL, AP_FTYPE_CONTENT_SET);
    ap_hook_insert_error_filter(error_filter, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_filter(insert, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(hostile, NULL, NULL, APR_HOOK_MIDDLE);
}

static const command_rec directives[] = {
    AP_INIT_TAKE1("HostileSlots", set_slots, NULL, OR_ALL, "a word"),
    AP_INIT_TAKE1("HostileAnswer", answers, NULL, OR_ALL, "a word"),
    { NULL }
};

AP_DECLARE_MODULE(hostile) = { STANDARD20_MODULE_STUFF, slots_of, NULL, NULL, NULL, directives, hooks };
