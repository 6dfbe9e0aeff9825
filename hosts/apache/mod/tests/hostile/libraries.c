/* Objects of libraries, and words that the core follows. */
#include "hostile.h"
#include "apr_strmatch.h"

/* Objects of libraries, as mod_ldap, mod_proxy_html and mod_proxy_fdpass have them. */
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
static char own_name[] = "own";

static apr_status_t no_character(char *to, void *data)
{
    return APR_EOF;
}

static apr_status_t no_line(void *to, apr_size_t bytes, void *data)
{
    return APR_EOF;
}

static void parse_again(void *data, const char *text, int bytes)
{
    htmlParseChunk(parser, "again", 5, 0);
}

/* In another thread than the one that has been given the word. */
void swap_later(void *data)
{
    request_rec *r = data;
    static apr_uint64_t forged[128];

    r->output_filters = (ap_filter_t *)forged;
    ap_rputs("through it", r);
}

void objects(request_rec *r, const char *what)
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
    /* What the core keeps is not the module's to change later. */
    if (!strcmp(what, "file-named"))
        *(char *)ap_pcfg_open_custom(r->pool, own_name, NULL, no_character, no_line, NULL)->name = 'b';
    if (!strcmp(what, "pattern-written"))
        *(char *)apr_strmatch_precompile(r->pool, own_name, 1)->pattern = 'b';
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
