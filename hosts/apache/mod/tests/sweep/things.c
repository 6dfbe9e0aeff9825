/* A module that calls each function of `httpd.txt` with one argument that is not what it should be. The calls are in a file that the
 * test makes of the headers (`tests/server/sweep.rs`); what the other arguments are is here. */
#include "httpd.h"
#include "http_config.h"
#include "http_core.h"
#include "http_protocol.h"
#include "http_request.h"
#include "ap_regex.h"
#include "apr_buckets.h"
#include "apr_crypto.h"
#include "apr_dbd.h"
#include "apr_dbm.h"
#include "apr_file_io.h"
#include "apr_global_mutex.h"
#include "apr_hash.h"
#include "apr_memcache.h"
#include "apr_network_io.h"
#include "apr_poll.h"
#include "apr_redis.h"
#include "apr_reslist.h"
#include "apr_shm.h"
#include "apr_strings.h"
#include "apr_thread_mutex.h"
#include "apr_xlate.h"
#include "util_filter.h"
#include "util_varbuf.h"

unsigned long sweep(int call, int value);

static request_rec *now;
static apr_reslist_t *list;
static const char *folder;
static apr_bucket_brigade *of_bucket;

/* What is passed for structures that are no objects: it has a number, and nothing else. */
unsigned long room[4096];
/* A structure whose words all lead nowhere. */
unsigned long forged[4096];
/* Two words that lead to strings. */
char *strings[2];
static char text[64];

int nothing(void)
{
    return 0;
}

static apr_status_t make(void **to, void *data, apr_pool_t *p)
{
    *to = room;
    return APR_SUCCESS;
}

static apr_status_t end(void *resource, void *data, apr_pool_t *p)
{
    return APR_SUCCESS;
}

static void *database(const char *type)
{
    static const apr_dbd_driver_t *driver;
    apr_dbd_t *handle = NULL;
    apr_dbd_prepared_t *statement = NULL;
    apr_dbd_results_t *results = NULL;
    apr_dbd_row_t *row = NULL;
    int rows;

    apr_dbd_init(now->pool);
    if (apr_dbd_get_driver(now->pool, "sqlite3", &driver))
        return NULL;
    if (!strcmp(type, "apr_dbd_driver_t"))
        return (void *)driver;
    if (apr_dbd_open_ex(driver, now->pool, ":memory:", &handle, NULL))
        return NULL;
    if (!strcmp(type, "apr_dbd_t"))
        return handle;
    apr_dbd_query(driver, handle, &rows, "CREATE TABLE t (a TEXT, b INTEGER)");
    apr_dbd_prepare(driver, now->pool, handle, "SELECT a FROM t WHERE a = %s AND b = %d", NULL, &statement);
    if (!strcmp(type, "apr_dbd_prepared_t"))
        return statement;
    apr_dbd_query(driver, handle, &rows, "INSERT INTO t VALUES ('a', 1)");
    apr_dbd_select(driver, now->pool, handle, &results, "SELECT a FROM t", 1);
    if (!strcmp(type, "apr_dbd_results_t"))
        return results;
    apr_dbd_get_row(driver, now->pool, results, &row, -1);
    return row;
}

static void *cryptography(const char *type)
{
    const apr_crypto_driver_t *driver = NULL;
    apr_crypto_t *all = NULL;
    apr_crypto_key_t *key = NULL;
    apr_crypto_block_t *block = NULL;
    const apu_err_t *error;
    apr_size_t bytes = 0;

    apr_crypto_init(now->pool);
    if (apr_crypto_get_driver(&driver, "openssl", NULL, &error, now->pool))
        return NULL;
    if (!strcmp(type, "apr_crypto_driver_t"))
        return (void *)driver;
    apr_crypto_make(&all, driver, NULL, now->pool);
    if (!strcmp(type, "apr_crypto_t"))
        return all;
    apr_crypto_passphrase(&key, &bytes, "secret", 6, (const unsigned char *)"saltsalt", 8, APR_KEY_AES_256, APR_MODE_CBC, 1, 10,
        all, now->pool);
    if (!strcmp(type, "apr_crypto_key_t"))
        return key;
    apr_crypto_block_decrypt_init(&block, &bytes, (const unsigned char *)"sixteen bytes so", key, now->pool);
    return block;
}

/* An object of a type. */
void *thing(const char *type)
{
    apr_pool_t *p = now->pool;
    void *made = NULL;

#define IS(name) (!strcmp(type, #name))
    if (IS(apr_pool_t))
        return p;
    if (IS(request_rec))
        return now;
    if (IS(conn_rec))
        return now->connection;
    if (IS(server_rec))
        return now->server;
    if (IS(apr_table_t))
        made = apr_table_make(p, 1);
    if (IS(apr_hash_t))
        made = apr_hash_make(p);
    if (IS(apr_hash_index_t)) {
        apr_hash_t *hash = apr_hash_make(p);
        apr_hash_set(hash, "a", 1, "b");
        made = apr_hash_first(p, hash);
    }
    if (IS(apr_array_header_t)) {
        apr_array_header_t *all = apr_array_make(p, 1, sizeof(char *));
        *(const char **)apr_array_push(all) = "a";
        made = all;
    }
    if (IS(apr_bucket_alloc_t))
        return now->connection->bucket_alloc;
    if (IS(apr_bucket_brigade) || IS(apr_bucket)) {
        /* A bucket is in the brigade that is asked for behind it: gcc works arguments out from the last one on. */
        apr_bucket_brigade *brigade = of_bucket;
        if (!brigade || IS(apr_bucket)) {
            brigade = apr_brigade_create(p, now->connection->bucket_alloc);
            APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_immortal_create("some text", 9, now->connection->bucket_alloc));
        }
        of_bucket = IS(apr_bucket) ? brigade : NULL;
        made = IS(apr_bucket) ? (void *)APR_BRIGADE_FIRST(brigade) : (void *)brigade;
    }
    if (IS(ap_filter_t))
        return now->output_filters;
    if (IS(ap_filter_rec_t))
        made = (void *)ap_get_input_filter_handle("http_in");
    if (IS(ap_regex_t))
        made = ap_pregcomp(p, "(a)b*", 0);
    if (IS(ap_rxplus_t)) {
        char *changed;
        ap_rxplus_t *expression = ap_rxplus_compile(p, "s/a/b/");
        ap_rxplus_exec(p, expression, "a", &changed);
        made = expression;
    }
    if (IS(apr_file_t))
        apr_file_open((apr_file_t **)&made, "/dev/null", APR_READ | APR_WRITE | APR_BUFFERED, APR_OS_DEFAULT, p);
    if (IS(apr_dir_t))
        apr_dir_open((apr_dir_t **)&made, "/", p);
    if (IS(apr_socket_t))
        apr_socket_create((apr_socket_t **)&made, APR_INET, SOCK_STREAM, APR_PROTO_TCP, p);
    if (IS(apr_sockaddr_t))
        apr_sockaddr_info_get((apr_sockaddr_t **)&made, "127.0.0.1", APR_INET, 9, 0, p);
    if (IS(apr_ipsubnet_t))
        apr_ipsubnet_create((apr_ipsubnet_t **)&made, "127.0.0.0", "8", p);
    if (IS(apr_thread_mutex_t))
        apr_thread_mutex_create((apr_thread_mutex_t **)&made, APR_THREAD_MUTEX_DEFAULT, p);
    if (IS(apr_xlate_t))
        apr_xlate_open((apr_xlate_t **)&made, "UTF-8", "ISO-8859-1", p);
    if (IS(apr_procattr_t))
        apr_procattr_create((apr_procattr_t **)&made, p);
    if (IS(apr_pollset_t))
        apr_pollset_create((apr_pollset_t **)&made, 4, p, 0);
    if (IS(apr_shm_t))
        apr_shm_create((apr_shm_t **)&made, 4096, NULL, p);
    if (IS(apr_reslist_t))
        return list;
    if (IS(apr_dbm_t))
        apr_dbm_open_ex((apr_dbm_t **)&made, "SDBM", apr_pstrcat(p, folder, "/keys", NULL), APR_DBM_RWCREATE, APR_FPROT_OS_DEFAULT, p);
    if (IS(apr_redis_t))
        apr_redis_create(p, 2, 0, (apr_redis_t **)&made);
    if (IS(apr_redis_server_t))
        apr_redis_server_create(p, "127.0.0.1", 9, 0, 1, 1, 60, 60, (apr_redis_server_t **)&made);
    if (IS(apr_memcache_t))
        apr_memcache_create(p, 2, 0, (apr_memcache_t **)&made);
    if (IS(apr_memcache_server_t))
        apr_memcache_server_create(p, "127.0.0.1", 9, 0, 1, 1, 60, (apr_memcache_server_t **)&made);
    if (IS(ap_configfile_t))
        ap_pcfg_openfile((ap_configfile_t **)&made, p, "/etc/passwd");
    if (IS(ap_sb_handle_t))
        return now->connection->sbh;
    if (IS(FILE) || IS(_IO_FILE))
        made = fopen("/dev/null", "r+");
    if (IS(ap_varbuf)) {
        struct ap_varbuf *buffer = apr_palloc(p, sizeof(*buffer));
        ap_varbuf_init(p, buffer, 8);
        made = buffer;
    }
    if (!strncmp(type, "apr_dbd_", 8))
        made = database(type);
    if (!strncmp(type, "apr_crypto_", 11))
        made = cryptography(type);
    return made ? made : room;
}

static int handle(request_rec *r)
{
    const char *what, *rest;

    if (!r->handler || strcmp(r->handler, "sweep"))
        return DECLINED;
    what = strrchr(r->uri, '/') + 1;
    now = r;
    of_bucket = NULL;
    folder = r->args;
    memset(room, 0, sizeof(room));
    room[0] = 1;
    memset(forged, 'A', sizeof(forged));
    strcpy(text, "a");
    strings[0] = text;
    rest = strchr(what, '-');
    if (rest)
        sweep(atoi(what), atoi(rest + 1));
    ap_set_content_type(r, "text/plain");
    ap_rputs("done", r);
    return OK;
}

static void begin(apr_pool_t *p, server_rec *s)
{
    apr_reslist_create(&list, 0, 1, 4, 0, make, end, NULL, p);
}

static void hooks(apr_pool_t *p)
{
    ap_hook_child_init(begin, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handle, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(sweep) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks };
