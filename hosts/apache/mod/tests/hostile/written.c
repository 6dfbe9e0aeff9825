/* Files that are written where the policy names nothing. */
#include "hostile.h"

/* In every way that there is: a file that is there, one that is not, and a folder. */
static void everywhere(apr_pool_t *p, const char *own, const char *kept_file, const char *fresh, const char *folder)
{
    apr_file_t *file;
    apr_dbm_t *keys;
    FILE *stream;

    if (!apr_file_open(&file, kept_file, APR_WRITE | APR_TRUNCATE, APR_OS_DEFAULT, p))
        apr_file_puts("written", file);
    if (!apr_file_open(&file, kept_file, APR_WRITE | APR_APPEND, APR_OS_DEFAULT, p))
        apr_file_puts("written", file);
    apr_file_open(&file, fresh, APR_WRITE | APR_CREATE, APR_OS_DEFAULT, p);
    apr_file_open(&file, apr_pstrcat(p, fresh, "-new", NULL), APR_WRITE | APR_CREATE | APR_EXCL, APR_OS_DEFAULT, p);
    apr_file_mktemp(&file, apr_pstrcat(p, fresh, "-XXXXXX", NULL), APR_CREATE | APR_WRITE | APR_EXCL, p);
    apr_file_copy(own, kept_file, APR_FILE_SOURCE_PERMS, p);
    apr_file_copy(own, apr_pstrcat(p, fresh, "-copy", NULL), APR_FILE_SOURCE_PERMS, p);
    apr_file_rename(own, apr_pstrcat(p, fresh, "-moved", NULL), p);
    apr_dir_make(apr_pstrcat(p, fresh, "-folder", NULL), APR_OS_DEFAULT, p);
    apr_dir_make_recursive(apr_pstrcat(p, fresh, "-deep/folder", NULL), APR_OS_DEFAULT, p);
    apr_file_perms_set(kept_file, 0x0777);
    apr_file_mtime_set(kept_file, 1000000, p);
    if ((stream = fopen64(kept_file, "r+"))) {
        fwrite("by the library", 1, 14, stream);
        fclose(stream);
    }
    if ((stream = fopen64(apr_pstrcat(p, fresh, "-stream", NULL), "w")))
        fclose(stream);
    apr_dbm_open(&keys, apr_pstrcat(p, fresh, "-keys", NULL), APR_DBM_RWCREATE, APR_OS_DEFAULT, p);
    apr_file_rename(kept_file, apr_pstrcat(p, own, "-stolen", NULL), p);
    apr_file_remove(kept_file, p);
    apr_dir_remove(folder, p);
}

static void outside(apr_pool_t *p, const char *by)
{
    const char *folder = ap_server_root_relative(p, by);
    const char *own = ap_server_root_relative(p, "open/own");

    everywhere(p, own, apr_pstrcat(p, folder, "/kept", NULL), apr_pstrcat(p, folder, "/fresh", NULL),
               apr_pstrcat(p, folder, "/folder", NULL));
}

/* `open` is what the policy names. In it are links that the test has made. */
static void all(apr_pool_t *p)
{
    const char *own = ap_server_root_relative(p, "open/own");
    const char *below = apr_pstrcat(p, ap_server_root_relative(p, "open"), "/../outside", NULL);

    outside(p, "outside");
    outside(p, "open/link");
    everywhere(p, own, apr_pstrcat(p, below, "/kept", NULL), apr_pstrcat(p, below, "/fresh", NULL), below);
    everywhere(p, own, ap_server_root_relative(p, "open/linked"), ap_server_root_relative(p, "outside/fresh"),
               ap_server_root_relative(p, "outside/folder"));
    everywhere(p, own, ap_server_root_relative(p, "open/hard"), ap_server_root_relative(p, "open/nowhere"),
               ap_server_root_relative(p, "outside/folder"));
}

/* While the server starts, as root. */
void written_first(apr_pool_t *p)
{
    if (ap_exists_config_define("WRITE_OUTSIDE"))
        all(p);
}

/* Whether all goes well where it may. */
static int inside(request_rec *r)
{
    apr_pool_t *p = r->pool;
    const char *folder = ap_server_root_relative(p, "open"), *name;
    const char *deep = apr_pstrcat(p, folder, "/a/b", NULL);
    const char *one = apr_pstrcat(p, deep, "/one", NULL), *two = apr_pstrcat(p, deep, "/two", NULL);
    char *fresh = apr_pstrcat(p, deep, "/XXXXXX", NULL), line[64];
    apr_file_t *file;
    apr_dbm_t *keys;
    FILE *stream;
    int n = 0, status[16];

    status[n++] = apr_dir_make_recursive(deep, APR_OS_DEFAULT, p);
    status[n++] = apr_file_open(&file, one, APR_WRITE | APR_CREATE | APR_TRUNCATE, APR_OS_DEFAULT, p);
    status[n++] = apr_file_name_get(&name, file) || strcmp(name, one);
    status[n++] = apr_file_puts("in one", file) || apr_file_close(file);
    status[n++] = apr_file_open(&file, one, APR_WRITE | APR_CREATE | APR_EXCL, APR_OS_DEFAULT, p) != APR_EEXIST;
    status[n++] = apr_file_copy(one, two, APR_FILE_SOURCE_PERMS, p);
    status[n++] = apr_file_rename(two, one, p);
    status[n++] = apr_file_open(&file, one, APR_READ, 0, p) || apr_file_gets(line, sizeof(line), file) || strcmp(line, "in one");
    status[n++] = apr_file_mktemp(&file, fresh, APR_CREATE | APR_WRITE | APR_EXCL, p) || strstr(fresh, "XXXXXX") != NULL;
    status[n++] = apr_file_perms_set(fresh, 0x0600) || apr_file_remove(fresh, p);
    status[n++] = apr_dbm_open(&keys, apr_pstrcat(p, deep, "/keys", NULL), APR_DBM_RWCREATE, APR_OS_DEFAULT, p);
    status[n++] = !(stream = fopen64(two, "w")) || fclose(stream);
    ap_set_content_type(r, "text/plain");
    for (n = 0; n < 12; n++)
        ap_rprintf(r, "%d ", status[n]);
    return 1;
}

int written(request_rec *r, const char *what)
{
    if (!strcmp(what, "written-inside"))
        return inside(r);
    if (!strcmp(what, "written-piped"))
        ap_open_piped_log(r->pool, "/bin/true");
    if (!strcmp(what, "written-outside"))
        all(r->pool);
    return 0;
}
