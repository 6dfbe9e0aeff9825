/* A storage for mod_dav that attacks it: how is the last part of the path. It has mod_dav_fs's name. */
#include "httpd.h"
#include "http_config.h"
#include "http_core.h"
#include "http_protocol.h"
#include "http_log.h"
#include "util_xml.h"
#include "mod_dav.h"

module AP_MODULE_DECLARE_DATA dav_fs_module;

struct dav_resource_private {
    request_rec *r;
    const char *how;
};

/* Of a call that is over. */
static dav_resource *kept_resource;
static const dav_hooks_repository forged, nowhere, hooks;

static int is(const char *how, const char *name)
{
    return !strcmp(how, name);
}

static dav_error *get(request_rec *r, const char *root, const char *label, int use, dav_resource **to)
{
    dav_resource *made = apr_pcalloc(r->pool, sizeof(*made));
    const char *how = strrchr(r->uri, '/') + 1;

    made->type = DAV_RESOURCE_TYPE_REGULAR;
    made->exists = 1;
    made->uri = r->uri;
    made->pool = r->pool;
    made->hooks = &hooks;
    made->info = apr_pcalloc(r->pool, sizeof(*made->info));
    made->info->r = r;
    made->info->how = how;
    if (is(how, "forged"))
        made->hooks = &forged;
    if (is(how, "nowhere"))
        made->hooks = &nowhere;
    if (is(how, "structure"))
        made->hooks = (const dav_hooks_repository *)0x4000;
    if (is(how, "beside"))
        to[1] = made;
    if (is(how, "pool"))
        *(apr_pool_t *volatile *)&r->pool = NULL;
    if (is(how, "config"))
        ((void **)r->request_config)[0] = NULL;
    if (is(how, "tree"))
        ap_xml_parse_input(r, (apr_xml_doc **)0x4000);
    if (is(how, "tree-of-another"))
        ap_xml_parse_input((request_rec *)made, (apr_xml_doc **)to);
    if (is(how, "error"))
        return (dav_error *)0x4000;
    if (is(how, "written-error"))
        *(volatile int *)16 = 1;
    if (is(how, "buffer"))
        dav_buffer_init(r->pool, (dav_buffer *)&r->pool, "text");
    if (is(how, "buffer-pool"))
        dav_buffer_init((apr_pool_t *)made, apr_palloc(r->pool, sizeof(dav_buffer)), "text");
    if (is(how, "namespaces"))
        dav_xmlns_add((dav_xmlns_info *)&made, "a", "b");
    if (is(how, "late")) {
        /* The header is the core's. */
        dav_register_provider(r->pool, "late", NULL);
    }
    *to = made;
    return NULL;
}

static const char *tag(const dav_resource *resource)
{
    etag_rec record = { NULL };
    apr_finfo_t info = { NULL };

    record.finfo = &info;
    info.filetype = APR_REG;
    if (is(resource->info->how, "etag-info"))
        record.finfo = (apr_finfo_t *)0x4000;
    if (is(resource->info->how, "etag-path"))
        record.pathname = (const char *)0x4000;
    if (is(resource->info->how, "etag-file"))
        record.fd = (apr_file_t *)resource;
    if (is(resource->info->how, "etag-file-of")) {
        record.pathname = resource->info->r->args;
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, resource->info->r, "it is <%s>", ap_make_etag_ex(resource->info->r, &record));
    }
    return ap_make_etag_ex(resource->info->r, &record);
}

static dav_error *nothing(void)
{
    return NULL;
}

static dav_error *walk(const dav_walk_params *params, int depth, dav_response **response)
{
    dav_walk_resource all = { params->walk_ctx, params->pool, params->root, NULL };
    const char *how = params->root->info->how;

    if (is(how, "walker"))
        ((dav_error * (*)(dav_walk_resource *, int))0x4000)(&all, 1);
    if (is(how, "walker-nowhere"))
        params->func((dav_walk_resource *)0x4000, 1);
    if (is(how, "walker-of-theirs"))
        params->func((dav_walk_resource *)params->root->info->r, 1);
    if (is(how, "walker-changed"))
        ((dav_walk_params *)params)->func = (void *)nothing;
    return params->func(&all, DAV_CALLTYPE_MEMBER);
}

/* The functions of `forged` are no functions of this module. */
static const dav_hooks_repository forged = { 0, .getetag = (void *)apr_palloc, .walk = (void *)apr_palloc };
static const dav_hooks_repository nowhere = { 0, .getetag = (void *)0x4000, .walk = (void *)0x4000 };
static const dav_hooks_repository hooks = {
    0, get, (void *)nothing, (void *)nothing, (void *)nothing, (void *)nothing, (void *)nothing,
    (void *)nothing, (void *)nothing, NULL, NULL, (void *)nothing, (void *)nothing, (void *)nothing,
    (void *)nothing, walk, tag, NULL, (void *)nothing, (void *)nothing,
};

static const dav_hooks_liveprop forged_properties = { (void *)apr_palloc, (void *)apr_palloc };

/* mod_dav asks it who has a property. */
static int find(const dav_resource *resource, const char *space, const char *name, const dav_hooks_liveprop **to)
{
    const char *how = resource->info->how;

    if (is(how, "property-nowhere"))
        *to = (const dav_hooks_liveprop *)0x4000;
    if (is(how, "property-forged"))
        *to = &forged_properties;
    return is(how, "property-nowhere") || is(how, "property-forged") ? 30000 : 0;
}

static dav_error *open_properties(apr_pool_t *p, const dav_resource *resource, int only_read, dav_db **to)
{
    *to = is(resource->info->how, "database") ? (dav_db *)0x4000 : NULL;
    return NULL;
}

static const dav_hooks_propdb properties = { open_properties, (void *)nothing };
static const dav_provider provider = { &hooks, &properties };
static const dav_provider cut = { (const dav_hooks_repository *)0x4000 };
static const dav_provider more = { &hooks, NULL, NULL, (const dav_hooks_vsn *)&hooks };
static const dav_hooks_repository theirs = { 0, .getetag = (void *)0x4000 };
static const dav_provider foreign = { &theirs };

static void register_hooks(apr_pool_t *p)
{
    const dav_provider *which = &provider;

    if (ap_exists_config_define("STORAGE_CUT"))
        which = &cut;
    if (ap_exists_config_define("STORAGE_MORE"))
        which = &more;
    if (ap_exists_config_define("STORAGE_FOREIGN"))
        which = &foreign;
    dav_hook_find_liveprop(find, NULL, NULL, APR_HOOK_MIDDLE);
    dav_register_provider(p, "filesystem", which);
}

AP_DECLARE_MODULE(dav_fs) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, register_hooks };
