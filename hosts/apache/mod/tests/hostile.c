/* A module that attacks: what it does is the path of the request behind /hostile/. */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "http_request.h"
#include "http_core.h"
#include "apr_network_io.h"
#include "apr_file_io.h"
#include "http_log.h"
#include "scoreboard.h"
#include "apr_strings.h"
#include "apr_buckets.h"
#include "util_filter.h"
#include "apr_reslist.h"
#include "apr_hash.h"
#include "apr_shm.h"
#include "apr_thread_mutex.h"
#include "apr_global_mutex.h"
#include "util_mutex.h"
#include "apr_dbd.h"
#include "apr_dbm.h"
#include "ap_mpm.h"
#include <sys/socket.h>

extern module AP_MODULE_DECLARE_DATA hostile_module;

static char *volatile kept;
static volatile int depth;
static volatile int at_next;

static int recurse(int n)
{
    volatile char room[256];
    room[0] = (char)n;
    depth = recurse(n + 1) + room[0];
    return depth;
}

static apr_reslist_t *resources;
static apr_thread_mutex_t *lock_of_threads;
static apr_global_mutex_t *lock_of_processes;

static volatile int again;

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

/* The core would take bytes of its own for the bucket's. */
static apr_status_t read_foreign(apr_bucket *b, const char **text, apr_size_t *bytes, apr_read_type_e block)
{
    apr_bucket_heap_make(b, b->data, 64, NULL);
    return APR_SUCCESS;
}

/* Rings of buckets that the core would follow. */
static void rings(request_rec *r, const char *what)
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

/* The core works on a request, or ends a pool, while the module ends it. */
static apr_pool_t *volatile ending;
static request_rec *volatile part;

static apr_status_t end_again(void *data)
{
    apr_pool_destroy(ending);
    return APR_SUCCESS;
}

static void ends(request_rec *r, const char *what)
{
    if (!strcmp(what, "end-whole"))
        ap_destroy_sub_req(r);
    if (!strcmp(what, "end-twice")) {
        part = ap_sub_req_lookup_uri("/page.html", r, NULL);
        ap_destroy_sub_req(part);
        ap_destroy_sub_req(part);
    }
    if (!strcmp(what, "end-pool")) {
        part = ap_sub_req_lookup_uri("/page.html", r, NULL);
        apr_pool_destroy(part->pool);
    }
    if (!strcmp(what, "end-running")) {
        part = ap_sub_req_lookup_uri("/hostile/running", r, r->output_filters);
        ap_run_sub_req(part);
        ap_rputs("behind", r);
    }
    if (!strcmp(what, "running"))
        ap_destroy_sub_req(part);
    /* The last two leave it to the core to end the pool. */
    if (!strcmp(what, "end-ending") || !strcmp(what, "end-first") || !strcmp(what, "later") || !strcmp(what, "later-first")) {
        apr_pool_t *p;
        apr_pool_create(&p, r->pool);
        ending = p;
        if (strstr(what, "first"))
            apr_pool_pre_cleanup_register(p, NULL, end_again);
        else
            apr_pool_cleanup_register(p, NULL, end_again, apr_pool_cleanup_null);
        if (!strncmp(what, "end", 3))
            apr_pool_destroy(p);
    }
    if (!strcmp(what, "end-redirected")) {
        part = ap_sub_req_lookup_uri("/page.html", r, NULL);
        ap_internal_fast_redirect(part, r);
        ap_destroy_sub_req(part);
    }
}

/* Objects of libraries, as mod_ldap, mod_proxy_html and mod_proxy_fdpass have them. */
#ifdef WITHOUT_WALL
/* A stock server has not all of these libraries. */
#define LIBRARY __attribute__((weak))
#else
#define LIBRARY
#endif
LIBRARY int ldap_set_option(void *, int, const void *);
LIBRARY int ldap_get_option(void *, int, void *);
LIBRARY int ldap_unbind_s(void *);
LIBRARY int ldap_msgfree(void *);
LIBRARY int ldap_set_rebind_proc(void *, void *, void *);
LIBRARY int ldap_search_ext_s(void *, const char *, int, const char *, char **, int, void **, void **, void *, int, void **);
LIBRARY void *htmlCreatePushParserCtxt(void *, void *, const char *, int, const char *, int);
LIBRARY int htmlParseChunk(void *, const char *, int, int);
LIBRARY int xmlCtxtUseOptions(void *, int);

static void *volatile parser;

static void parse_again(void *data, const char *text, int bytes)
{
    htmlParseChunk(parser, "again", 5, 0);
}

/* In another thread than the one that has been given the word. */
static void swap_later(void *data)
{
    request_rec *r = data;
    static apr_uint64_t forged[128];

    r->output_filters = (ap_filter_t *)forged;
    ap_rputs("through it", r);
}

static void objects(request_rec *r, const char *what)
{
    static apr_uint64_t forged[128];
    static void *functions[32];
    void *found;

    memset(forged, 'A', sizeof(forged));
    if (!strcmp(what, "ldap-forged"))
        ldap_unbind_s(forged);
    if (!strcmp(what, "ldap-answer"))
        ldap_msgfree(r->connection);
    /* Functions of its own that the library would call: for all connections. */
    if (!strcmp(what, "ldap-option"))
        ldap_set_option(NULL, 0x7005, forged);
    if (!strcmp(what, "ldap-read"))
        ldap_get_option(NULL, 0x31, &r->pool);
    if (!strcmp(what, "ldap-rebind"))
        ldap_set_rebind_proc(forged, parse_again, NULL);
    if (!strcmp(what, "ldap-search"))
        ldap_search_ext_s(forged, "", 0, "", NULL, 0, NULL, NULL, NULL, 0, &found);
    if (!strcmp(what, "ldap-control"))
        ldap_search_ext_s(forged, "", 0, "", NULL, 0, (void **)forged, NULL, NULL, 0, &found);
    if (!strcmp(what, "page-forged"))
        htmlParseChunk(forged, "a", 1, 0);
    if (!strcmp(what, "page-options"))
        xmlCtxtUseOptions(r->connection, 1);
    if (!strcmp(what, "page-function")) {
        functions[14] = (void *)0x1234;
        htmlCreatePushParserCtxt(functions, r, "<p>", 3, NULL, 0);
    }
    if (!strcmp(what, "page-place")) {
        memset(functions, 0, sizeof(functions));
        functions[0] = parse_again;
        htmlCreatePushParserCtxt(functions, r, "<p>", 3, NULL, 0);
    }
    if (!strcmp(what, "page-again")) {
        memset(functions, 0, sizeof(functions));
        functions[17] = parse_again;
        parser = htmlCreatePushParserCtxt(functions, r, "", 0, NULL, 0);
        htmlParseChunk(parser, "<p>some text</p><p>and more of it</p>", 37, 1);
    }
    if (!strcmp(what, "page-length")) {
        memset(functions, 0, sizeof(functions));
        parser = htmlCreatePushParserCtxt(functions, r, "", 0, NULL, 0);
        htmlParseChunk(parser, "<p>", -3, 0);
    }
    if (!strcmp(what, "descriptor") || !strcmp(what, "descriptor-beside")) {
        struct msghdr message;
        memset(&message, 0, sizeof(message));
        message.msg_control = forged;
        message.msg_controllen = strcmp(what, "descriptor") ? 24 : 0;
        sendmsg(2, &message, 0);
    }
    if (!strcmp(what, "file-of-lines"))
        ap_pcfg_open_custom(r->pool, "forged", forged, (void *)0x1234, (void *)0x1234, NULL);
    /* Words that the core follows: something of another kind, of the module's own, and on the way back. */
    if (!strcmp(what, "swap-filter")) {
        r->output_filters = (ap_filter_t *)r->pool;
        ap_rputs("through it", r);
    }
    if (!strcmp(what, "swap-forged")) {
        r->proto_output_filters = (ap_filter_t *)forged;
        ap_rputs("through it", r);
    }
    if (!strcmp(what, "swap-crossed"))
        r->output_filters = r->connection->input_filters;
    if (!strcmp(what, "swap-socket")) {
        ((void **)r->connection->conn_config)[0] = forged;
        ap_rputs("over it", r);
        ap_rflush(r);
    }
}

static int end_table(void *pool, const char *key, const char *value)
{
    apr_pool_destroy(pool);
    return 1;
}

static int end_part(void *part, const char *key, const char *value)
{
    ap_destroy_sub_req(part);
    return 1;
}

static void *end_hash(apr_pool_t *p, const void *key, apr_ssize_t length, const void *one, const void *other, const void *pool)
{
    apr_pool_destroy((apr_pool_t *)pool);
    return NULL;
}

/* Changes what APR goes through: the answer is how often it was called, or how much there is in the end. */
static int grow_table(void *table, const char *key, const char *value)
{
    int n;

    for (n = 0; n < 100; n++)
        apr_table_addn(table, "more", "of it");
    return ++depth < 1000;
}

static void *grow_hash(apr_pool_t *p, const void *key, apr_ssize_t length, const void *one, const void *other, const void *hash)
{
    int n;

    for (n = 0; n < 1000; n++)
        apr_hash_set((apr_hash_t *)hash, apr_psprintf(p, "%d", n), APR_HASH_KEY_STRING, "more");
    return NULL;
}

static int grown(request_rec *r, const char *what)
{
    apr_table_t *table = apr_table_make(r->pool, 2);
    apr_hash_t *hash = apr_hash_make(r->pool), *base = apr_hash_make(r->pool);

    depth = 0;
    apr_table_setn(table, "one", "1");
    apr_table_setn(table, "two", "2");
    apr_hash_set(hash, "one", APR_HASH_KEY_STRING, "1");
    apr_hash_set(base, "one", APR_HASH_KEY_STRING, "1");
    if (!strcmp(what, "table-grown"))
        apr_table_do(grow_table, table, table, NULL);
    else
        depth = apr_hash_count(apr_hash_merge(r->pool, hash, base, grow_hash, hash));
    ap_set_content_type(r, "text/plain");
    ap_rprintf(r, "%d", depth);
    return OK;
}

/* Two threads change what belongs to no request, without a lock of their own. */
#define MANY 40000

static apr_pool_t *volatile shared_pool;
static apr_table_t *volatile shared_table;
static apr_hash_t *volatile shared_hash;
static volatile int has_begun[2];
static volatile int is_over[2];
static volatile int run;
static int keys[2 * MANY];

static apr_status_t count_run(void *data)
{
    run++;
    return APR_SUCCESS;
}

static int raced(request_rec *r, int me)
{
    int n;
    apr_pool_t *below, *p = NULL;

    if (me == 0) {
        apr_pool_create(&p, NULL);
        shared_table = apr_table_make(p, 2);
        shared_hash = apr_hash_make(p);
        shared_pool = p;
    }
    has_begun[me] = 1;
    while (!has_begun[!me] || !shared_pool)
        apr_sleep(1000);
    for (n = me; n < 2 * MANY; n += 2) {
        keys[n] = n;
        apr_table_addn(shared_table, "one", "more");
        apr_hash_set(shared_hash, &keys[n], sizeof(keys[n]), &keys[n]);
        apr_pool_cleanup_register(shared_pool, &keys[n], count_run, apr_pool_cleanup_null);
        if (n % 1000 == me)
            apr_pool_create(&below, shared_pool);
    }
    is_over[me] = 1;
    ap_set_content_type(r, "text/plain");
    if (me == 0) {
        int entries, found;

        while (!is_over[1])
            apr_sleep(1000);
        entries = apr_table_elts(shared_table)->nelts;
        for (found = n = 0; n < 2 * MANY; n++)
            found += apr_hash_get(shared_hash, &keys[n], sizeof(keys[n])) == &keys[n];
        run = 0;
        apr_pool_destroy(p);
        ap_rprintf(r, "%d %d %d", entries, found, run);
    }
    return OK;
}

/* What a request has that waits, for those of other threads. */
static apr_table_t *volatile kept_table;
static apr_pool_t *volatile kept_pool;
static volatile int goes_on;

static int wait_in(void *data, const char *key, const char *value)
{
    /* A thread that is stopped ends where it writes. */
    for (; !goes_on; depth++)
        apr_sleep(1000);
    return 1;
}

static void *wait_merging(apr_pool_t *p, const void *key, apr_ssize_t length, const void *one, const void *other, const void *data)
{
    wait_in(NULL, NULL, NULL);
    return NULL;
}

static int waits(request_rec *r, const char *what)
{
    apr_pool_t *p = r->pool;

    if (!strcmp(what, "is-kept")) {
        ap_set_content_type(r, "text/plain");
        ap_rputs(kept_pool ? "yes" : "no", r);
        return OK;
    }
    goes_on = !strcmp(what, "go-on");
    if (!strcmp(what, "keep-lasting"))
        apr_pool_create(&p, NULL);
    if (!strcmp(what, "keep-lasting") || !strcmp(what, "keep-own")) {
        kept_table = apr_table_make(p, 4);
        apr_table_set(kept_table, "one", "1");
        kept_pool = p;
        apr_table_do(wait_in, NULL, kept_table, NULL);
        kept_pool = NULL;
    }
    if (!strcmp(what, "keep-merging")) {
        apr_hash_t *hash;

        apr_pool_create(&p, NULL);
        hash = apr_hash_make(p);
        apr_hash_set(hash, "one", APR_HASH_KEY_STRING, "1");
        kept_pool = p;
        apr_hash_merge(p, hash, hash, wait_merging, NULL);
        kept_pool = NULL;
    }
    if (!strcmp(what, "end-kept"))
        apr_pool_destroy(kept_pool);
    if (!strcmp(what, "change-kept"))
        apr_table_set(kept_table, "two", "2");
    if (!strcmp(what, "use-kept"))
        apr_table_make(kept_pool, 4);
    ap_set_content_type(r, "text/plain");
    ap_rputs("done", r);
    return OK;
}

/* Ends what APR goes through. */
static void tables(request_rec *r, const char *what)
{
    apr_pool_t *above, *p;
    apr_table_t *table;

    if (strcmp(what, "table-part") && strcmp(what, "table-pool") && strcmp(what, "table-above") && strcmp(what, "hash-pool"))
        return;
    if (!strcmp(what, "table-part")) {
        request_rec *part = ap_sub_req_lookup_uri("/page.html", r, NULL);
        table = apr_table_make(part->pool, 4);
        apr_table_set(table, "one", "1");
        apr_table_do(end_part, part, table, NULL);
        return;
    }
    apr_pool_create(&above, r->pool);
    apr_pool_create(&p, above);
    table = apr_table_make(p, 4);
    apr_table_set(table, "one", "1");
    apr_table_set(table, "two", "2");
    if (!strcmp(what, "hash-pool")) {
        apr_hash_t *hash = apr_hash_make(p);
        apr_hash_set(hash, "one", APR_HASH_KEY_STRING, "1");
        apr_hash_merge(r->pool, hash, hash, end_hash, p);
        return;
    }
    apr_table_do(end_table, strcmp(what, "table-above") ? p : above, table, NULL);
}

/* Structures of its own that the core would follow. */
static request_rec forged_request;

static const char *take_scheme(const request_rec *r)
{
    if (r == &forged_request)
        apr_table_set(r->headers_in, "a", "b");
    return NULL;
}

static void forgeries(request_rec *r, const char *what)
{
    static apr_uint64_t forged[512];

    memset(forged, 'A', sizeof(forged));
    if (!strcmp(what, "hash-called")) {
        /* Where a hash has its function. */
        memset(forged, 0, sizeof(forged));
        forged[8] = 0x4141;
        apr_hash_get((apr_hash_t *)forged, "a", 1);
    }
    if (!strcmp(what, "hash-laid-over"))
        apr_hash_overlay(r->pool, (apr_hash_t *)forged, apr_hash_make(r->pool));
    if (!strcmp(what, "request-of-its-own")) {
        forged_request = *r;
        forged_request.headers_in = (apr_table_t *)forged;
        ap_run_http_scheme(&forged_request);
    }
    if (!strcmp(what, "piped-log"))
        apr_file_putc('a', ap_piped_log_write_fd((piped_log *)forged));
    if (!strcmp(what, "score-elsewhere"))
        ap_time_process_request((ap_sb_handle_t *)forged, START_PREQUEST);
    if (!strcmp(what, "copied-table")) {
        apr_array_header_t *head = (apr_array_header_t *)forged;
        head->nalloc = 1;
        head->nelts = 1 << 24;
        head->elts = (char *)forged;
        apr_table_copy(r->pool, (apr_table_t *)forged);
    }
    if (!strcmp(what, "directive"))
        ap_check_cmd_context((cmd_parms *)forged, GLOBAL_ONLY);
    if (!strcmp(what, "directive-walk"))
        ap_walk_config((ap_directive_t *)forged, (cmd_parms *)forged, (ap_conf_vector_t *)forged);
    if (!strcmp(what, "directive-pool"))
        ap_exists_directive((apr_pool_t *)forged, "Listen");
    if (!strcmp(what, "hook-later"))
        ap_hook_http_scheme(take_scheme, NULL, NULL, APR_HOOK_LAST);
    if (!strcmp(what, "list-again")) {
        void *resource;
        again = 1;
        apr_reslist_acquire(resources, &resource);
    }
    if (!strcmp(what, "segment-ended")) {
        apr_shm_t *segment;
        apr_shm_create(&segment, 1 << 16, NULL, r->pool);
        kept = apr_shm_baseaddr_get(segment);
        apr_shm_destroy(segment);
        kept[0] = 'A';
    }
    if (!strcmp(what, "name-of-others")) {
        apr_file_t *file;
        apr_file_mktemp(&file, r->uri, 0, r->pool);
    }
}

/* Tables, hashes and arrays that are only read: they lead nowhere, are another module's, or say of themselves what is not so. */
static void reads(request_rec *r, const char *what)
{
    void *volatile nowhere = (void *)0x12345678;
    static apr_uint64_t forged[64];

    if (!strcmp(what, "table-nowhere"))
        apr_table_get(nowhere, "a");
    if (!strcmp(what, "table-of-others")) {
        memset(forged, 'A', sizeof(forged));
        apr_table_get((apr_table_t *)forged, "a");
    }
    if (!strcmp(what, "table-empty"))
        apr_is_empty_table(nowhere);
    if (!strcmp(what, "hash-nowhere"))
        apr_hash_count(nowhere);
    if (!strcmp(what, "array-nowhere"))
        apr_is_empty_array(nowhere);
    if (!strcmp(what, "array-behind"))
        apr_array_cat(apr_array_make(r->pool, 1, 8), nowhere);
    if (!strcmp(what, "array-elements")) {
        apr_array_header_t *list = apr_array_make(r->pool, 1, sizeof(char *));
        list->elts = nowhere;
        list->nelts = 1;
        apr_array_pstrcat(r->pool, list, ',');
    }
}

/* Locks that a stopped call has, and a call that does not return. */
static int locked(request_rec *r, const char *what)
{
    if (!strcmp(what, "lock-kept")) {
        apr_thread_mutex_lock(lock_of_threads);
        apr_global_mutex_lock(lock_of_processes);
        *(volatile int *)16 = 1;
    }
    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "lock-taken")) {
        int first = apr_thread_mutex_trylock(lock_of_threads), second = apr_global_mutex_trylock(lock_of_processes);

        if (!first)
            apr_thread_mutex_unlock(lock_of_threads);
        if (!second)
            apr_global_mutex_unlock(lock_of_processes);
        ap_rprintf(r, "%d %d", first, second);
    }
    if (!strcmp(what, "sleep")) {
        kept_pool = r->pool;
        apr_sleep(apr_time_from_sec(100000));
    }
    return OK;
}

/* An object of one kind in the place of another. */
static void crossed(request_rec *r, const char *what)
{
    if (!strcmp(what, "statement-as-pool")) {
        const apr_dbd_driver_t *driver;
        apr_dbd_t *handle;
        apr_dbd_prepared_t *statement = NULL;

        apr_dbd_init(r->pool);
        if (apr_dbd_get_driver(r->pool, "sqlite3", &driver) || apr_dbd_open_ex(driver, r->pool, ":memory:", &handle, NULL)
            || apr_dbd_prepare(driver, r->pool, handle, "SELECT 1", NULL, &statement))
            return;
        apr_palloc((apr_pool_t *)statement, 100000);
    }
    if (!strcmp(what, "keys-as-filter")) {
        apr_dbm_t *file;

        if (!apr_dbm_open(&file, r->args, APR_DBM_RWCREATE, APR_FPROT_OS_DEFAULT, r->pool))
            ap_remove_output_filter((ap_filter_t *)file);
    }
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
    if (!strcmp(what, "raced-first") || !strcmp(what, "raced-second"))
        return raced(r, !strcmp(what, "raced-second"));
    if (!strcmp(what, "table-grown") || !strcmp(what, "hash-grown"))
        return grown(r, what);
    if (!strncmp(what, "lock-", 5) || !strcmp(what, "sleep"))
        return locked(r, what);
    if (strstr(what, "kept") || !strncmp(what, "keep-", 5) || !strcmp(what, "go-on"))
        return waits(r, what);
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
    crossed(r, what);
    reads(r, what);
    tables(r, what);
    forgeries(r, what);
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
    /* When the configuration is read for good. */
    if (ap_exists_config_define("HOSTILE") && ap_state_query(AP_SQ_MAIN_STATE) != AP_SQ_MS_CREATE_PRE_CONFIG)
        *(volatile int *)16 = 1;
    return OK;
}

static void hooks(apr_pool_t *p)
{
    ap_hook_create_request(create, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_http_scheme(take_scheme, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_log_transaction(log_it, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_child_init(begin, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_config(before, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(configured, NULL, NULL, APR_HOOK_MIDDLE);
    ap_register_output_filter("HOSTILE", filter, NULL, AP_FTYPE_CONTENT_SET);
    ap_hook_insert_error_filter(error_filter, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_filter(insert, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(hostile, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(hostile) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks };
