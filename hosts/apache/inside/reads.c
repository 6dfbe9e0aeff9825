/* Functions of APR and of httpd that only read what they are given. As part of a module they take no gate, and what they follow is
 * followed with the module's own rights: a table that another thread changes meanwhile, or an address that leads nowhere, ends
 * the module's call and nothing else. Only what the headers show of a table is used. */
#include "httpd.h"
#include "apr_tables.h"
#include "apr_strings.h"

#define INSIDE __attribute__((visibility("hidden")))

INSIDE const char *apr_table_get(const apr_table_t *t, const char *key)
{
    const apr_array_header_t *all = (const apr_array_header_t *)t;
    const apr_table_entry_t *next, *end;

    if (key == NULL)
        return NULL;
    next = (const apr_table_entry_t *)all->elts;
    end = next + all->nelts;
    for (; next < end; next++)
        /* Letters differ in one bit from the other case. */
        if (!((next->key[0] ^ key[0]) & 0xdf) && !strcasecmp(next->key, key))
            return next->val;
    return NULL;
}

INSIDE const apr_array_header_t *apr_table_elts(const apr_table_t *t)
{
    return (const apr_array_header_t *)t;
}

INSIDE int apr_is_empty_array(const apr_array_header_t *a)
{
    return a == NULL || a->nelts == 0;
}

INSIDE int apr_is_empty_table(const apr_table_t *t)
{
    return apr_is_empty_array((const apr_array_header_t *)t);
}

INSIDE int ap_array_str_index(const apr_array_header_t *array, const char *text, int start)
{
    int at;

    if (start >= 0)
        for (at = start; at < array->nelts; at++)
            if (!strcmp(((const char **)array->elts)[at], text))
                return at;
    return -1;
}

INSIDE int ap_array_str_contains(const apr_array_header_t *array, const char *text)
{
    return ap_array_str_index(array, text, 0) >= 0;
}
