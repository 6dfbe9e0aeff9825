/* Calls whose rows had overlooked something: no room, no string, a flag, a width, a second table. */
#include "hostile.h"
#include "apr_optional.h"
#include "apr_md5.h"
#include "apr_rmm.h"
#include "ap_provider.h"
#include "ap_slotmem.h"
#include "ap_socache.h"
#include "mod_auth.h"
#include <stdio.h>

enum { LONG = 7000, STARS = 300000 };

/* The core's string, which the module may not write. */
static char *of_the_core(request_rec *r)
{
    apr_table_t *t = apr_table_make(r->pool, 1);

    apr_table_set(t, "key", "   of the core");
    return (char *)apr_table_get(t, "key");
}

static void no_room(request_rec *r, const char *what)
{
    ap_configfile_t *lines;

    /* White space at both ends of the string is taken away in its place. */
    if (!strcmp(what, "over-room")) {
        ap_pcfg_openfile(&lines, r->pool, "/etc/passwd");
        ap_cfg_getline(of_the_core(r), 0, lines);
    }
    if (!strcmp(what, "over-digest"))
        apr_md5_encode("password", "$apr1$salt", of_the_core(r), 0);
    if (!strcmp(what, "over-blocks")) {
        apr_rmm_t *blocks;
        apr_rmm_init(&blocks, NULL, r, 0, r->pool);
    }
}

static const char *volatile no_word;

static void formats(request_rec *r, const char *what)
{
    ap_filter_t *f = ap_add_output_filter("HOSTILE-OVER", NULL, r, r->connection);

    /* The word is the module's, and the next one is the core's. */
    if (!strcmp(what, "over-scanned"))
        sscanf("AABBBBBB", "%0s", (char *)&f->ctx + 7);
    if (!strcmp(what, "over-scanned-long"))
        sscanf("1.5", "%llf", (long double *)&f->ctx);
    if (!strcmp(what, "over-scanned-quad"))
        sscanf("1.5", "%qf", (long double *)&f->ctx);
    if (!strcmp(what, "over-printed")) {
        char text[64];
        snprintf(text, sizeof(text), "%llf", (long double)1);
    }
    /* Numbers of floating point that are left in no register are among the words. */
    if (!strcmp(what, "over-list") || !strcmp(what, "over-list-odd")) {
        static struct { unsigned integers, floats; void *words, *saved; } list;
        static void *words[8];
        static char saved[176], text[64];
        typedef int print(char *, apr_size_t, const char *, void *);
        print *volatile of_list = (print *)apr_vsnprintf;

        words[0] = "text";
        words[1] = (void *)0x4242424200ul;
        list.integers = 48;
        list.floats = strcmp(what, "over-list") ? 168 : 176;
        list.words = words;
        list.saved = saved;
        of_list(text, sizeof(text), "%f%s", &list);
    }
}

/* A watchdog is in a list of the process, with the pool and the name that it was made with. */
static void watchdogs(request_rec *r, const char *what)
{
    typedef apr_status_t get_watchdog(void **, const char *, int, int, apr_pool_t *);
    get_watchdog *get = (get_watchdog *)apr_dynamic_fn_retrieve("ap_watchdog_get_instance");
    apr_pool_t *sub;
    void *made;

    apr_pool_create(&sub, r->pool);
    get(&made, strcmp(what, "over-dog") ? (char *)0x4000 : "of the hostile one", 0, 0, sub);
}


/* Three tables of one that goes, and another one where that was. */
static int of_tables(request_rec *r)
{
    apr_pool_t *sub;
    apr_table_t *first, *laid_over, *copy, *own = apr_table_make(r->pool, 1), *fresh;
    char *text = apr_palloc(r->pool, LONG + 1);

    memset(text, 'v', LONG);
    text[LONG] = 0;
    apr_pool_create(&sub, r->pool);
    first = apr_table_make(sub, 1);
    apr_table_set(first, "X-Own", text);
    apr_table_overlap(own, first, APR_OVERLAP_TABLES_SET);
    laid_over = apr_table_overlay(r->pool, first, own);
    copy = apr_table_copy(r->pool, first);
    apr_pool_destroy(sub);
    memset(text, 'w', LONG);
    apr_pool_create(&sub, r->pool);
    fresh = apr_table_make(sub, 1);
    apr_table_set(fresh, "X-Two", text);
    ap_rprintf(r, "%s %s %s", apr_table_get(own, "X-Own") ? "own" : "none", apr_table_get(laid_over, "X-Own") ? "own" : "none",
               apr_table_get(copy, "X-Own") ? "own" : "none");
    return OK;
}

/* A key that lies in a segment, which goes. */
static int of_hashes(request_rec *r)
{
    apr_hash_t *hash = apr_hash_make(r->pool);
    apr_shm_t *segment;
    char *key, *same = apr_palloc(r->pool, 32);

    apr_shm_create(&segment, 4096, NULL, r->pool);
    key = apr_shm_baseaddr_get(segment);
    memset(key, 'k', 32);
    memset(same, 'k', 32);
    apr_hash_set(hash, key, 32, "first");
    apr_shm_destroy(segment);
    apr_hash_set(hash, same, 32, "second");
    ap_rprintf(r, "%d %s", (int)apr_hash_count(hash), (char *)apr_hash_get(hash, same, 32));
    return OK;
}

/* More than the module may have of pools, and a bucket of what goes. */
static void segments(request_rec *r, const char *what)
{
    apr_shm_t *segment;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    char text[64];
    apr_size_t bytes = sizeof(text);

    if (!strcmp(what, "over-segments")) {
        apr_shm_create(&segment, (apr_size_t)1 << 36, NULL, r->pool);
        return;
    }
    apr_shm_create(&segment, 4096, NULL, r->pool);
    APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_pool_create(apr_shm_baseaddr_get(segment), sizeof(text), r->pool, bb->bucket_alloc));
    apr_shm_destroy(segment);
    apr_brigade_flatten(bb, text, &bytes);
}

/* A provider of the module's own makes what another one's functions would follow. */
static void *forged[16];

static const char *make_forged(ap_socache_instance_t **instance, const char *words, apr_pool_t *temporary, apr_pool_t *p)
{
    *instance = (ap_socache_instance_t *)forged;
    return NULL;
}

static const ap_socache_provider_t own_store = { "hostile-own", 0, make_forged };

/* Modules without a wall follow what they are given. */
static void providers(request_rec *r, const char *what)
{
    static struct { unsigned long size; unsigned slots, kind; } description = { 8, 1, 0 };
    static char used = 1;
    static void *slots[16], *function[3], *node[3], *expression[4];

    /* The fifth word says where. */
    if (!strcmp(what, "over-slots")) {
        const ap_slotmem_provider_t *provider = ap_lookup_provider("slotmem", "shm", "0");
        slots[4] = of_the_core(r);
        slots[6] = &used;
        slots[9] = &description;
        provider->put((ap_slotmem_instance_t *)slots, 0, (unsigned char *)"written", 7);
    }
    if (!strcmp(what, "over-cache")) {
        const ap_socache_provider_t *provider = ap_lookup_provider("socache", "shmcb", "0");
        provider->store((ap_socache_instance_t *)slots, r->server, (unsigned char *)"key", 3, apr_time_now(), (unsigned char *)"data", 4, r->pool);
    }
    if (!strcmp(what, "over-made")) {
        const ap_socache_provider_t *own = ap_lookup_provider("socache", "hostile-own", "0");
        const ap_socache_provider_t *provider = ap_lookup_provider("socache", "shmcb", "0");
        ap_socache_instance_t *instance;
        own->create(&instance, NULL, r->pool, r->pool);
        provider->store(instance, r->server, (unsigned char *)"key", 3, apr_time_now(), (unsigned char *)"data", 4, r->pool);
    }
    /* The numbers of each backend of a group become 0. */
    if (!strcmp(what, "over-group")) {
        typedef struct { const char *name; void *find, *data; apr_status_t (*reset)(void *, server_rec *); } of_groups;
        const of_groups *provider = ap_lookup_provider("proxylbmethod", "byrequests", "0");
        provider->reset(slots, r->server);
    }
    if (!strcmp(what, "over-stored"))
        ap_lookup_provider("cache", "disk", "0");
    /* A tree whose one node is a call. */
    if (!strcmp(what, "over-tree")) {
        const authz_provider *provider = ap_lookup_provider("authz", "expr", "0");
        function[0] = (void *)30;
        function[1] = (void *)0x424242424242ul;
        node[0] = (void *)29;
        node[1] = node[2] = function;
        expression[3] = node;
        provider->check_authorization(r, "words", expression);
    }
}

/* A bucket of bytes in the place of one of a file: APR writes a word behind its data. */
static int of_buckets(request_rec *r)
{
    char *text = apr_palloc(r->pool, 64), *core = of_the_core(r);
    apr_bucket *e = apr_bucket_immortal_create(core - 24, 30, r->connection->bucket_alloc);

    apr_bucket_file_enable_mmap(e, 0);
    apr_bucket_delete(e);
    apr_cpystrn(text, core, 64);
    ap_rprintf(r, "%s", *text ? text : "nothing");
    return OK;
}

static int of_stars(request_rec *r)
{
    char *text = apr_palloc(r->pool, STARS + 1), *pattern = apr_palloc(r->pool, 2 * STARS + 1);
    int n;

    memset(text, 'a', STARS);
    text[STARS] = 0;
    for (n = 0; n < STARS; n++)
        memcpy(pattern + 2 * n, "*a", 2);
    pattern[2 * STARS] = 0;
    ap_rprintf(r, "%d %d", ap_strcmp_match(text, pattern), ap_strcasecmp_match(text, pattern));
    return OK;
}

static int of_files(request_rec *r, const char *what)
{
    ap_configfile_t *lines;
    apr_file_t *file;
    apr_status_t status;

    if (!strcmp(what, "over-lines")) {
        ap_rprintf(r, "%d", ap_pcfg_openfile(&lines, r->pool, "/proc/self/maps"));
        return OK;
    }
    /* It is read, and removed when it is closed. */
    status = apr_file_open(&file, r->args, APR_READ | APR_FOPEN_DELONCLOSE, 0, r->pool);
    if (status == APR_SUCCESS)
        apr_file_close(file);
    ap_rprintf(r, "%d", status);
    return OK;
}

static int of_users(request_rec *r)
{
    const char *password;
    int status;

    apr_table_set(r->headers_in, "Authorization", "Basic YWRtaW46eA==");
    status = ap_get_basic_auth_pw(r, &password);
    ap_rprintf(r, "%d %s %s", status, password, r->user ? r->user : "nobody");
    return OK;
}

static apr_status_t pass(ap_filter_t *f, apr_bucket_brigade *bb)
{
    return ap_pass_brigade(f->next, bb);
}

void overlooked_hooks(apr_pool_t *p)
{
    ap_register_provider(p, "socache", "hostile-own", "0", &own_store);
    ap_register_output_filter("HOSTILE-OVER", pass, NULL, AP_FTYPE_RESOURCE);
}

int overlooked(request_rec *r, const char *what)
{
    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "over-table"))
        return of_tables(r);
    if (!strcmp(what, "over-mapped"))
        return of_buckets(r);
    if (!strcmp(what, "over-key"))
        return of_hashes(r);
    if (!strcmp(what, "over-stars"))
        return of_stars(r);
    providers(r, what);
    if (!strncmp(what, "over-segment", 12))
        segments(r, what);
    if (!strcmp(what, "over-user"))
        return of_users(r);
    if (!strcmp(what, "over-lines") || !strcmp(what, "over-removed"))
        return of_files(r, what);
    if (!strcmp(what, "over-word")) {
        const char *word = no_word;
        ap_getword(r->pool, &word, ' ');
    }
    if (!strncmp(what, "over-dog", 8))
        watchdogs(r, what);
    no_room(r, what);
    formats(r, what);
    ap_rputs("done", r);
    return OK;
}
