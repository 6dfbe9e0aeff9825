/* Structures that are not what they are passed as. */
#include "hostile.h"
#include "ap_provider.h"
#include "apr_optional.h"

/* Structures of its own that the core would follow. */
static request_rec forged_request;

const char *take_scheme(const request_rec *r)
{
    if (r == &forged_request)
        apr_table_set(r->headers_in, "a", "b");
    else if (strstr(r->uri, "hostile/scheme-nowhere"))
        return (const char *)0x4000;
    return NULL;
}

void forgeries(request_rec *r, const char *what)
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
    if (!strcmp(what, "merge-forged"))
        ap_merge_per_dir_configs(r->pool, r->per_dir_config, (ap_conf_vector_t *)forged);
    if (!strcmp(what, "merge-onto"))
        ap_merge_per_dir_configs(r->pool, (ap_conf_vector_t *)forged, r->per_dir_config);
    if (!strcmp(what, "swap-configuration"))
        r->per_dir_config = (ap_conf_vector_t *)forged;
    if (!strcmp(what, "names-of-nothing"))
        ap_regname((ap_regex_t *)forged, apr_array_make(r->pool, 1, sizeof(char *)), "", 0);
    if (!strcmp(what, "names-elsewhere"))
        ap_regname(ap_pregcomp(r->pool, "(?<name>a)", 0), (apr_array_header_t *)r->headers_in, "", 0);
    if (!strcmp(what, "writev-nowhere")) {
        apr_bucket_brigade *bb = apr_brigade_create(r->pool, r->connection->bucket_alloc);
        struct iovec places[2] = { { "one", 3 }, { (void *)0x12345678, 100 } };
        apr_brigade_writev(bb, NULL, NULL, places, 2);
    }
    if (!strcmp(what, "directive-walk"))
        ap_walk_config((ap_directive_t *)forged, (cmd_parms *)forged, (ap_conf_vector_t *)forged);
    if (!strcmp(what, "directive-pool"))
        ap_exists_directive((apr_pool_t *)forged, "Listen");
    if (!strcmp(what, "hook-later"))
        ap_hook_http_scheme(take_scheme, NULL, NULL, APR_HOOK_LAST);
    if (!strcmp(what, "provider-later"))
        ap_register_provider(r->pool, "socache", "later", "0", forged);
    if (!strcmp(what, "function-later"))
        apr_dynamic_fn_register("TestOptionalFn", (apr_opt_fn_t *)take_scheme);
    if (!strcmp(what, "scheme-nowhere"))
        ap_run_http_scheme(r);
    if (!strcmp(what, "method-later"))
        ap_method_register(r->pool, "LATER");
    if (!strcmp(what, "name-later"))
        ap_mutex_register(r->pool, "later", NULL, APR_LOCK_DEFAULT, 0);
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
void reads(request_rec *r, const char *what)
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

/* An object of one kind in the place of another. */
void crossed(request_rec *r, const char *what)
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
    /* Before anybody has prepared drivers: nobody else here does. */
    if (!strcmp(what, "drivers-early")) {
        const apr_dbd_driver_t *of_databases;
        const apr_crypto_driver_t *of_ciphers;
        const apu_err_t *error;
        const int first = apr_dbd_get_driver(r->pool, "none", &of_databases) != 0;

        ap_rprintf(r, "%d %d", first, apr_crypto_get_driver(&of_ciphers, "none", NULL, &error, r->pool) != 0);
    }
    if (!strcmp(what, "keys-as-filter")) {
        apr_dbm_t *file;

        if (!apr_dbm_open_ex(&file, "SDBM", r->args, APR_DBM_RWCREATE, APR_FPROT_OS_DEFAULT, r->pool))
            ap_remove_output_filter((ap_filter_t *)file);
    }
}
