/* Names by which others find what they call: providers, optional functions, exported functions, types of locks. */
#include "hostile.h"
#include "ap_expr.h"
#include "ap_provider.h"
#include "apr_optional.h"
#include "apr_optional_hooks.h"
#include "mod_auth.h"

static authn_status anybody(request_rec *r, const char *user, const char *password)
{
    return AUTH_GRANTED;
}

static const authn_provider everybody = { anybody, NULL };

static int nobody(request_rec *r)
{
    return 0;
}

#ifndef WITHOUT_WALL
/* mod_session_cookie registers its hooks by this function of mod_session. */
void ap_hook_session_load(void *function, const char *const *before, const char *const *behind, int order)
{
    *(volatile int *)16 = 1;
}
#endif

/* Answers that it has found a function, and has not. */
static int lookup(ap_expr_lookup_parms *parms)
{
    return OK;
}

/* A file with this element of a list of hooks, which leads nowhere. */
static apr_array_header_t *list;
static struct element {
    void *function;
    const char *name;
    const char *const *before, *const *behind;
    int order;
} elements[2] = { { NULL, "a", (const char *const *)0x4000, NULL, 0 }, { NULL, "b", NULL, NULL, 0 } };

/* When modules say what they offer. */
void taken_first(apr_pool_t *p)
{
    if (ap_exists_config_define("TAKE_EXPRESSIONS"))
        ap_hook_expr_lookup(lookup, NULL, NULL, APR_HOOK_REALLY_FIRST);
    if (ap_exists_config_define("LIST_NOWHERE")) {
        list = apr_array_make(p, 2, sizeof(elements[0]));
        *(struct element *)apr_array_push(list) = elements[0];
        *(struct element *)apr_array_push(list) = elements[1];
        apr_hook_sort_register("list", &list);
    }
    if (ap_exists_config_define("TAKE_FIRST"))
        ap_register_auth_provider(p, AUTHN_PROVIDER_GROUP, "file", AUTHN_PROVIDER_VERSION, &everybody,
                                  AP_AUTH_INTERNAL_PER_CONF);
}

/* Behind all others, and before directives are read. */
int taken(apr_pool_t *p, apr_pool_t *log, apr_pool_t *temporary)
{
    if (ap_exists_config_define("TAKE_PROVIDER"))
        ap_register_auth_provider(p, AUTHN_PROVIDER_GROUP, "file", AUTHN_PROVIDER_VERSION, &everybody,
                                  AP_AUTH_INTERNAL_PER_CONF);
    if (ap_exists_config_define("TAKE_ABSENT"))
        ap_register_auth_provider(p, AUTHN_PROVIDER_GROUP, "dbm", AUTHN_PROVIDER_VERSION, &everybody,
                                  AP_AUTH_INTERNAL_PER_CONF);
    if (ap_exists_config_define("TAKE_AGAIN")) {
        ap_register_auth_provider(p, AUTHN_PROVIDER_GROUP, "own", AUTHN_PROVIDER_VERSION, &everybody,
                                  AP_AUTH_INTERNAL_PER_CONF);
        ap_register_auth_provider(p, AUTHN_PROVIDER_GROUP, "own", AUTHN_PROVIDER_VERSION, &everybody,
                                  AP_AUTH_INTERNAL_PER_CONF);
        apr_dynamic_fn_register("TestOptionalFn", (apr_opt_fn_t *)nobody);
        apr_dynamic_fn_register("TestOptionalFn", (apr_opt_fn_t *)nobody);
    }
    if (ap_exists_config_define("TAKE_FUNCTION"))
        apr_dynamic_fn_register("authz_some_auth_required", (apr_opt_fn_t *)nobody);
    if (ap_exists_config_define("TAKE_LOCK"))
        ap_mutex_register(p, "authdigest-client", NULL, APR_LOCK_DEFAULT,
                          AP_MUTEX_ALLOW_NONE | AP_MUTEX_DEFAULT_NONE);
    if (ap_exists_config_define("TAKE_ALL_LOCKS"))
        ap_mutex_register(p, "default", NULL, APR_LOCK_DEFAULT, AP_MUTEX_ALLOW_NONE | AP_MUTEX_DEFAULT_NONE);
    if (ap_exists_config_define("PROVIDER_NOWHERE"))
        ap_register_provider(p, "authn", "own", "0", (void *)0x4000);
    return OK;
}
