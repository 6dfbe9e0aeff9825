/* What is used behind its end: objects that a function ends, and what goes with a pool. And files that are none. */
#include "hostile.h"
#include "apr_mmap.h"

static apr_dir_t *volatile folder;
static apr_pool_t *volatile lower;

/* It runs behind APR's own cleanup, which has closed the folder. */
static apr_status_t read_closed(void *data)
{
    apr_finfo_t found;
    apr_dir_read(&found, APR_FINFO_NAME, folder);
    return APR_SUCCESS;
}

/* A pool that has such a cleanup never ends. */
static apr_status_t again_and_again(void *pool)
{
    apr_pool_cleanup_register(pool, pool, again_and_again, apr_pool_cleanup_null);
    return APR_SUCCESS;
}

/* The brigade that is under way lies in this pool. */
static apr_status_t end_under_way(ap_filter_t *f, apr_bucket_brigade *bb)
{
    apr_pool_destroy(lower);
    return ap_pass_brigade(f->next, bb);
}

void ending_filters(void)
{
    ap_register_output_filter("HOSTILE-ENDS", end_under_way, NULL, AP_FTYPE_RESOURCE);
}

static void objects_end(request_rec *r, apr_pool_t *sub, const char *what)
{
    apr_finfo_t found;
    ap_regmatch_t part;
    apr_file_t *file;
    apr_mmap_t *map;
    apr_dir_t *dir;

    if (!strcmp(what, "ending-pattern")) {
        ap_regex_t *pattern = ap_pregcomp(r->pool, "a", 0);
        ap_pregfree(r->pool, pattern);
        ap_regexec(pattern, "a", 1, &part, 0);
    }
    if (!strcmp(what, "ending-folder") && !apr_dir_open(&dir, "/", r->pool)) {
        apr_dir_close(dir);
        apr_dir_close(dir);
    }
    if (!strcmp(what, "ending-folder-read") && !apr_dir_open(&dir, "/", r->pool)) {
        apr_dir_close(dir);
        apr_dir_read(&found, APR_FINFO_NAME, dir);
    }
    if (!strcmp(what, "ending-mapping")
        && !apr_file_open(&file, "/etc/passwd", APR_READ, 0, r->pool)
        && !apr_mmap_create(&map, file, 0, 100, APR_MMAP_READ, r->pool)) {
        apr_mmap_delete(map);
        apr_mmap_delete(map);
    }
    if (!strcmp(what, "ending-cleanup")) {
        apr_pool_cleanup_register(sub, NULL, read_closed, apr_pool_cleanup_null);
        apr_dir_open(&dir, "/", sub);
        folder = dir;
        apr_pool_destroy(sub);
    }
    if (!strcmp(what, "ending-never")) {
        apr_pool_cleanup_register(sub, sub, again_and_again, apr_pool_cleanup_null);
        apr_pool_destroy(sub);
    }
    if (!strcmp(what, "ending-lock")) {
        apr_thread_mutex_t *lock;
        apr_thread_mutex_create(&lock, APR_THREAD_MUTEX_DEFAULT, r->pool);
        apr_thread_mutex_destroy(lock);
        apr_thread_mutex_lock(lock);
    }
    if (!strcmp(what, "ending-segment")) {
        apr_shm_t *segment;
        apr_shm_create(&segment, 1 << 16, NULL, r->pool);
        apr_bucket_immortal_create(apr_shm_baseaddr_get(segment), 1 << 16, r->connection->bucket_alloc);
    }
}

static void buckets_end(request_rec *r, apr_pool_t *sub, const char *what)
{
    apr_bucket_alloc_t *list = r->connection->bucket_alloc;
    apr_bucket_brigade *bb = apr_brigade_create(r->pool, list);
    apr_file_t *file;
    apr_bucket *one;

    if (!strcmp(what, "ending-allocator")) {
        one = apr_bucket_eos_create(apr_bucket_alloc_create(sub));
        apr_pool_destroy(sub);
        apr_bucket_delete(one);
    }
    if (!strcmp(what, "ending-allocator-passed")) {
        one = apr_bucket_eos_create(apr_bucket_alloc_create(sub));
        APR_BRIGADE_INSERT_TAIL(bb, one);
        ap_pass_brigade(r->output_filters, bb);
    }
    if (!strcmp(what, "ending-allocator-below"))
        apr_brigade_create(r->pool, apr_bucket_alloc_create(sub));
    if (!strcmp(what, "ending-split")) {
        apr_bucket_brigade *first = apr_brigade_create(sub, list);
        apr_brigade_puts(first, NULL, NULL, "some");
        APR_BRIGADE_INSERT_TAIL(first, apr_bucket_eos_create(list));
        bb = apr_brigade_split(first, APR_BRIGADE_LAST(first));
        apr_pool_destroy(sub);
        apr_brigade_cleanup(bb);
    }
    if (!strcmp(what, "ending-file") && !apr_file_open(&file, "/etc/passwd", APR_READ, 0, sub)) {
        APR_BRIGADE_INSERT_TAIL(bb, apr_bucket_file_create(file, 0, 10, r->pool, list));
        ap_pass_brigade(r->output_filters, bb);
    }
    if (!strcmp(what, "ending-under-way")) {
        lower = sub;
        bb = apr_brigade_create(sub, list);
        ap_add_output_filter("HOSTILE-ENDS", NULL, r, r->connection);
        apr_brigade_puts(bb, NULL, NULL, "some");
        ap_pass_brigade(r->output_filters, bb);
    }
}

/* Answers what APR says. */
static int files(request_rec *r, const char *what)
{
    apr_file_t *file;
    apr_status_t status = -1;
    apr_shm_t *segment;

    if (!strcmp(what, "opened-memory"))
        status = apr_file_open(&file, "/proc/self/mem", APR_READ | APR_WRITE, 0, r->pool);
    if (!strcmp(what, "opened-own"))
        status = apr_file_open(&file, "/proc/self/maps", APR_READ, 0, r->pool);
    if (!strcmp(what, "opened-by-library"))
        status = fopen64("/proc/self/mem", "r+") == NULL ? APR_EACCES : 0;
    if (!strcmp(what, "opened-device"))
        status = apr_file_open(&file, "/dev/tty", APR_READ, 0, r->pool);
    if (!strcmp(what, "opened-null"))
        status = apr_file_open(&file, "/dev/null", APR_WRITE, 0, r->pool);
    if (!strcmp(what, "opened-plain"))
        status = apr_file_open(&file, "/etc/passwd", APR_READ, 0, r->pool);
    if (!strcmp(what, "opened-segment"))
        status = apr_shm_attach(&segment, "/etc/passwd", r->pool);
    if (status == -1)
        return 0;
    ap_set_content_type(r, "text/plain");
    ap_rprintf(r, "%d", status);
    return 1;
}

int endings(request_rec *r, const char *what)
{
    apr_pool_t *sub;

    if (files(r, what))
        return 1;
    apr_pool_create(&sub, r->pool);
    objects_end(r, sub, what);
    buckets_end(r, sub, what);
    return 0;
}
