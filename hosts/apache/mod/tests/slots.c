/* Asks a provider of slots in memory for all that it can, for a test of mod_slotmem_plain. */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"
#include "ap_provider.h"
#include "ap_slotmem.h"

static const ap_slotmem_provider_t *storage;
static ap_slotmem_instance_t *slots;

static apr_status_t add(void *slot, void *data, apr_pool_t *p)
{
    *(int *)data += *(int *)slot;
    return APR_SUCCESS;
}

static int configured(apr_pool_t *p, apr_pool_t *log, apr_pool_t *temporary, server_rec *s)
{
    storage = ap_lookup_provider(AP_SLOTMEM_PROVIDER_GROUP, "plain", AP_SLOTMEM_PROVIDER_VERSION);
    return storage->create(&slots, "slots", sizeof(int), 4, AP_SLOTMEM_TYPE_PREGRAB, p) == APR_SUCCESS ? OK : DONE;
}

static int show(request_rec *r)
{
    int *slot, value = 7, sum = 0, status[4];
    unsigned int taken = 9;

    if (!r->handler || strcmp(r->handler, "slots"))
        return DECLINED;
    status[0] = storage->dptr(slots, 1, (void **)&slot);
    *slot = 35;
    status[1] = storage->put(slots, 2, (unsigned char *)&value, sizeof(value));
    value = 0;
    status[2] = storage->get(slots, 2, (unsigned char *)&value, sizeof(value));
    status[3] = storage->dptr(slots, 9, (void **)&slot);
    storage->doall(slots, add, &sum, r->pool);
    ap_set_content_type(r, "text/plain");
    ap_rprintf(r, "%d %d %d %d, %d, %d, %u of %d bytes\n", status[0], status[1], status[2], status[3], value, sum,
               storage->num_slots(slots), (int)storage->slot_size(slots));
    storage->grab(slots, &taken);
    ap_rprintf(r, "%u, %d, %u free\n", taken, storage->release(slots, taken), storage->num_free_slots(slots));
    return OK;
}

static void hooks(apr_pool_t *p)
{
    ap_hook_post_config(configured, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(show, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(slots) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks };
