/* What structures say of themselves and lead to, and numbers that are places in lists. */
#include "hostile.h"
#include "apr_base64.h"
#include "apr_md5.h"
#include "apr_poll.h"
#include "apr_sha1.h"
#include "apr_strmatch.h"
#include "apr_uri.h"
#include "util_fcgi.h"
#include "util_varbuf.h"
#include <sys/uio.h>

static char *const wild = (char *)0x4000;
static apr_uint64_t forged[512];

static void matches(request_rec *r, const char *what)
{
    ap_regmatch_t part = { 2147483000, 2147483100 };
    char *made;

    if (!strcmp(what, "match-elsewhere"))
        ap_pregsub(r->pool, "$0", "abc", 1, &part);
    if (!strcmp(what, "match-further"))
        ap_pregsub_ex(r->pool, &made, "$0", "abc", 1, &part, 0);
    if (!strcmp(what, "match-appended")) {
        struct ap_varbuf buffer;
        ap_varbuf_init(r->pool, &buffer, 16);
        ap_varbuf_regsub(&buffer, "$0", "abc", 1, &part, 0);
    }
    if (!strcmp(what, "match-backwards")) {
        part.rm_so = 3;
        part.rm_eo = 1;
        ap_pregsub(r->pool, "$0", "abc", 1, &part);
    }
    if (!strcmp(what, "match-behind")) {
        part.rm_so = 1;
        part.rm_eo = 4;
        ap_pregsub(r->pool, "$0", "abc", 1, &part);
    }
    if (!strcmp(what, "match-error")) {
        char text[100];
        ap_regerror(-(1 << 28), NULL, text, sizeof(text));
    }
}

static void places(request_rec *r, const char *what)
{
    struct iovec places[2] = { { "one", 3 }, { wild, 100 } };
    apr_size_t bytes;
    apr_file_t *file;
    char text[200];

    if (!strcmp(what, "places-joined"))
        apr_pstrcatv(r->pool, places, 2, &bytes);
    if (!strcmp(what, "places-sent"))
        apr_socket_sendv(ap_get_conn_socket(r->connection), places, 2, &bytes);
    if (!strcmp(what, "places-written")
        && !apr_file_open(&file, "/dev/null", APR_WRITE | APR_BUFFERED, APR_OS_DEFAULT, r->pool))
        apr_file_writev_full(file, places, 2, &bytes);
    if (!strcmp(what, "places-encoded"))
        apr_base64_encode(text, wild, 30);
    if (!strcmp(what, "places-bucket"))
        apr_bucket_heap_create(wild, 100, NULL, r->connection->bucket_alloc);
    if (!strcmp(what, "places-compared"))
        apr_strmatch(apr_strmatch_precompile(r->pool, "abc", 1), wild, 100);
    if (!strcmp(what, "places-added")) {
        apr_pollset_t *set;
        apr_pollset_create(&set, 2, r->pool, 0);
        apr_pollset_add(set, (apr_pollfd_t *)wild);
    }
    if (!strcmp(what, "places-null"))
        apr_rfc822_date(NULL, 0);
}

static void statements(request_rec *r, const char *what)
{
    const apr_dbd_driver_t *driver;
    apr_dbd_t *handle;
    apr_dbd_prepared_t *text = NULL, *large = NULL;
    apr_dbd_results_t *found = NULL;
    const char *values[4] = { wild, "100000000", NULL, NULL };
    apr_size_t bytes = (apr_size_t)1 << 40;
    int rows;

    apr_dbd_init(r->pool);
    if (apr_dbd_get_driver(r->pool, "sqlite3", &driver) || apr_dbd_open_ex(driver, r->pool, ":memory:", &handle, NULL)
        || apr_dbd_prepare(driver, r->pool, handle, "SELECT %s, %s", NULL, &text)
        || apr_dbd_prepare(driver, r->pool, handle, "SELECT %pDb", NULL, &large))
        return;
    if (!strcmp(what, "statement-text"))
        apr_dbd_pvselect(driver, r->pool, handle, &found, text, 0, "a", wild);
    if (!strcmp(what, "statement-query"))
        apr_dbd_pvquery(driver, r->pool, handle, &rows, text, "a", wild);
    if (!strcmp(what, "statement-binary"))
        apr_dbd_pvbselect(driver, r->pool, handle, &found, large, 0, "a", &bytes, NULL, NULL);
    if (!strcmp(what, "statement-list"))
        apr_dbd_pselect(driver, r->pool, handle, &found, text, 0, 2, values);
    if (!strcmp(what, "statement-nowhere"))
        apr_dbd_pquery(driver, r->pool, handle, &rows, text, 2, (const char **)wild);
    if (!strcmp(what, "statement-large")) {
        values[0] = "a";
        apr_dbd_pselect(driver, r->pool, handle, &found, large, 0, 4, values);
    }
}

void structures(request_rec *r, const char *what)
{
    memset(forged, 'A', sizeof(forged));
    if (!strncmp(what, "match-", 6))
        matches(r, what);
    if (!strncmp(what, "places-", 7))
        places(r, what);
    if (!strncmp(what, "statement-", 10) && strcmp(what, "statement-as-pool"))
        statements(r, what);
    if (!strcmp(what, "structure-uri")) {
        apr_uri_t uri;
        memset(&uri, 0, sizeof(uri));
        uri.scheme = "http";
        uri.hostname = wild;
        apr_uri_unparse(r->pool, &uri, 0);
    }
    if (!strcmp(what, "structure-entry")) {
        apr_finfo_t entry;
        memset(&entry, 0, sizeof(entry));
        entry.name = wild;
        ap_sub_req_lookup_dirent(&entry, r, AP_SUBREQ_NO_ARGS, NULL);
    }
    if (!strcmp(what, "structure-address"))
        depth = apr_sockaddr_equal((apr_sockaddr_t *)wild, r->useragent_addr);
    if (!strcmp(what, "structure-family"))
        depth = apr_sockaddr_is_wildcard((apr_sockaddr_t *)forged);
    if (!strcmp(what, "structure-digest")) {
        apr_sha1_ctx_t digest;
        apr_sha1_init(&digest);
        /* Behind all that is mapped near stacks: nearer ones are hit by chance. */
        digest.local = 0x7fffff00;
        apr_sha1_update_binary(&digest, (const unsigned char *)"abc", 3);
    }
    if (!strcmp(what, "structure-environment")) {
        int first = -(1 << 26);
        ap_fcgi_encoded_env_len(r->headers_in, 1000, &first);
    }
    if (!strcmp(what, "structure-score")) {
        static worker_score line;
        ap_copy_scoreboard_worker(&line, 1 << 20, 1 << 20);
    }
    if (!strcmp(what, "structure-host"))
        ap_get_remote_host(r->connection, forged, REMOTE_NAME, NULL);
}

/* What would lead elsewhere is not followed, and the answer is as without it. */
int followed(request_rec *r, const char *what)
{
    ap_set_content_type(r, "text/plain");
    if (!strcmp(what, "address-followed")) {
        apr_sockaddr_t *address, copy;
        char text[64] = "";
        apr_sockaddr_info_get(&address, "127.0.0.3", APR_INET, 9, 0, r->pool);
        copy = *address;
        copy.ipaddr_ptr = wild;
        copy.pool = (apr_pool_t *)wild;
        apr_sockaddr_ip_getbuf(text, sizeof(text), &copy);
        ap_rputs(text, r);
    } else if (!strcmp(what, "match-followed")) {
        char *text = apr_pstrdup(r->pool, "....ab");
        ap_rxplus_t *expression = ap_rxplus_compile(r->pool, "m/ab/");
        ap_rxplus_exec(r->pool, expression, text, NULL);
        text[3] = '\0';
        ap_rputs(ap_rxplus_pmatch(r->pool, expression, 0), r);
    } else {
        unsigned char sum[APR_MD5_DIGESTSIZE];
        apr_md5_ctx_t digest;
        apr_md5_init(&digest);
        digest.xlate = (apr_xlate_t *)forged;
        apr_md5_update(&digest, "abc", 3);
        apr_md5_final(sum, &digest);
        ap_rprintf(r, "%02x%02x", sum[0], sum[15]);
    }
    return OK;
}
