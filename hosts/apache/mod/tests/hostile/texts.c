/* Strings and other memory that is not there, where the core, APR or the C library reads. */
#include "hostile.h"
#include "apr_md5.h"
#include "apr_xlate.h"
#include "util_cookies.h"

/* Nothing is there, as below all that a process may have, and nothing can be there. */
static char *const wild[] = { (char *)0x4000, (char *)0x4141414141414141 };

static void forged_list(request_rec *r, char *text)
{
    struct {
        unsigned used, floats;
        void *stacked, *saved;
    } list = { 48, 176, text, text };

    apr_pvsprintf(r->pool, "%s", (void *)&list);
}

void texts(request_rec *r, const char *what)
{
    char *text, line[64];
    const char *rest;
    apr_size_t bytes = 4096;
    apr_file_t *file;
    apr_xlate_t *encoding;
    apr_table_t *table = apr_table_make(r->pool, 2);
    apr_hash_t *hash = apr_hash_make(r->pool);

    if (strncmp(what, "text-", 5))
        return;
    what += 5;
    text = wild[0];
    if (!strncmp(what, "beyond-", 7)) {
        text = wild[1];
        what += 7;
    }
    rest = text;
    if (!strcmp(what, "key"))
        apr_table_set(table, text, "a");
    if (!strcmp(what, "value"))
        apr_table_add(table, "a", text);
    if (!strcmp(what, "null"))
        apr_table_set(table, NULL, "a");
    if (!strcmp(what, "hash"))
        apr_hash_set(hash, text, APR_HASH_KEY_STRING, "a");
    if (!strcmp(what, "hash-bytes"))
        apr_hash_set(hash, text, 100, "a");
    if (!strcmp(what, "word"))
        ap_getword(r->pool, &rest, ' ');
    if (!strcmp(what, "header"))
        ap_set_content_type(r, text);
    if (!strcmp(what, "compare"))
        depth = ap_strcmp_match(text, "*a");
    if (!strcmp(what, "number"))
        depth = (int)apr_atoi64(text);
    if (!strcmp(what, "upper"))
        ap_str_toupper(text);
    if (!strcmp(what, "escape"))
        ap_escape_html(r->pool, text);
    if (!strcmp(what, "copy"))
        apr_pstrdup(r->pool, text);
    if (!strcmp(what, "copy-bytes"))
        apr_pmemdup(r->pool, text, 100);
    if (!strcmp(what, "join"))
        apr_pstrcat(r->pool, "a", text, NULL);
    if (!strcmp(what, "file"))
        apr_file_remove(text, r->pool);
    if (!strcmp(what, "request"))
        ap_sub_req_lookup_uri(text, r, NULL);
    if (!strcmp(what, "body"))
        ap_rwrite(text, 100, r);
    if (!strcmp(what, "sum"))
        apr_md5((unsigned char *)line, text, 100);
    if (!strcmp(what, "line"))
        ap_rputs(text, r);
    if (!strcmp(what, "format"))
        ap_rprintf(r, text, 1);
    if (!strcmp(what, "printed"))
        ap_rprintf(r, "%d %*d %.*s %s", 1, 2, 3, 0, text, text);
    if (!strcmp(what, "printed-short"))
        apr_snprintf(line, sizeof(line), "%.9s", text);
    if (!strcmp(what, "address"))
        apr_snprintf(line, sizeof(line), "%pI", text);
    if (!strcmp(what, "logged"))
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "%s", text);
    if (!strcmp(what, "logged-file"))
        ap_log_rerror_(text, 1, APLOG_MODULE_INDEX, APLOG_ERR, 0, r, "a");
    if (!strcmp(what, "logged-index"))
        ap_log_rerror_("a.c", 1, 0x40000000, APLOG_INFO, 0, r, "a");
    if (!strcmp(what, "cookie"))
        ap_cookie_write(r, text, "a", NULL, 0, r->headers_out, NULL);
    if (!strcmp(what, "cookie-value"))
        ap_cookie_write(r, "a", text, NULL, 0, r->headers_out, NULL);
    if (!strcmp(what, "cookie-attributes"))
        ap_cookie_remove(r, "a", text, r->headers_out, NULL);
    if (!strcmp(what, "methods"))
        ap_allow_methods(r, 0, text, NULL);
    if (!strcmp(what, "encoding"))
        apr_xlate_open(&encoding, "UTF-8", text, r->pool);
    if (!strcmp(what, "encoding-number"))
        apr_xlate_open(&encoding, (const char *)2, "UTF-8", r->pool);
    if (!strcmp(what, "more"))
        apr_snprintf(line, sizeof(line), "%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%s", 1);
    if (!strcmp(what, "list"))
        forged_list(r, text);
    if (!strcmp(what, "written")
        && apr_file_open(&file, "/dev/null", APR_WRITE, APR_OS_DEFAULT, r->pool) == APR_SUCCESS)
        apr_file_write(file, text, &bytes);
}
