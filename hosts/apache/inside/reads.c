/* Functions of APR and of httpd that only read what they are given, and that make strings of it in the module's own memory. As part of
 * a module they take no gate, and what they follow is followed with the module's own rights: a table that another thread changes
 * meanwhile, or an address that leads nowhere, ends the module's call and nothing else. What they write is checked as all that the
 * module writes. Only what the headers show of a table is used. */
#include "httpd.h"
#include "apr_buckets.h"
#include "apr_hash.h"
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

INSIDE int ap_is_initial_req(request_rec *r)
{
    return r->main == NULL && r->prev == NULL;
}

/* A module's buckets are copies in its own memory. One without a length is read by its type's function, as anywhere. */
INSIDE apr_status_t apr_brigade_length(apr_bucket_brigade *brigade, int read_all, apr_off_t *length)
{
    apr_off_t total = 0;
    apr_status_t status = APR_SUCCESS;
    apr_bucket *bucket;
    const char *text;
    apr_size_t bytes;

    for (bucket = APR_BRIGADE_FIRST(brigade); bucket != APR_BRIGADE_SENTINEL(brigade); bucket = APR_BUCKET_NEXT(bucket)) {
        if (bucket->length == (apr_size_t)-1) {
            if (!read_all) {
                total = -1;
                break;
            }
            status = apr_bucket_read(bucket, &text, &bytes, APR_BLOCK_READ);
            if (status != APR_SUCCESS)
                break;
        }
        total += bucket->length;
    }
    *length = total;
    return status;
}

/* APR keeps to itself how hashes lie. This is how they lie in APR 1.7. When it loads a module, mod_mullion looks whether they still do,
 * and sets the word if so. Otherwise the host goes through the hash. */
__attribute__((visibility("default"))) int mullion_reads_hashes = 0;

struct entry {
    struct entry *next;
    unsigned int hash;
    const void *key;
    apr_ssize_t bytes;
    void *value;
};

struct hash {
    apr_pool_t *pool;
    struct entry **array;
    void *iterator[4];
    unsigned int count, max, seed;
    apr_hashfunc_t function;
};

INSIDE void *apr_hash_get(apr_hash_t *of, const void *key, apr_ssize_t bytes)
{
    const struct hash *all = (const struct hash *)of;
    const unsigned char *at = key;
    const struct entry *entry;
    apr_hash_index_t *place;

    if (mullion_reads_hashes && all->function == NULL) {
        unsigned int hash = all->seed;

        if (bytes == APR_HASH_KEY_STRING) {
            for (; *at; at++)
                hash = hash * 33 + *at;
            bytes = at - (const unsigned char *)key;
        } else {
            const unsigned char *end = at + bytes;
            for (; at != end; at++)
                hash = hash * 33 + *at;
        }
        for (entry = all->array[hash & all->max]; entry != NULL; entry = entry->next)
            if (entry->hash == hash && entry->bytes == bytes && !memcmp(entry->key, key, bytes))
                return entry->value;
        return NULL;
    }
    if (bytes == APR_HASH_KEY_STRING)
        bytes = strlen(key);
    for (place = apr_hash_first(NULL, of); place != NULL; place = apr_hash_next(place)) {
        const void *known;
        apr_ssize_t length;
        void *value;

        apr_hash_this(place, &known, &length, &value);
        if (length == bytes && !memcmp(known, key, bytes))
            return value;
    }
    return NULL;
}

/* A string of some strings and numbers. The host makes what has other conversions. */
INSIDE char *apr_psprintf(apr_pool_t *pool, const char *format, ...)
{
    va_list list;
    const char *at, *text;
    char *made, *to;
    apr_size_t bytes = 1;

    va_start(list, format);
    for (at = format; *at; at++) {
        if (*at != '%') {
            bytes++;
            continue;
        }
        at++;
        if (*at == 's') {
            text = va_arg(list, const char *);
            bytes += text != NULL ? strlen(text) : 6;
        } else if (*at == 'd') {
            va_arg(list, int);
            bytes += 11;
        } else {
            va_end(list);
            va_start(list, format);
            made = apr_pvsprintf(pool, format, list);
            va_end(list);
            return made;
        }
    }
    va_end(list);
    to = made = apr_palloc(pool, bytes);
    va_start(list, format);
    for (at = format; *at; at++) {
        if (*at != '%') {
            *to++ = *at;
            continue;
        }
        at++;
        if (*at == 's') {
            text = va_arg(list, const char *);
            if (text == NULL)
                text = "(null)";
            bytes = strlen(text);
            memcpy(to, text, bytes);
            to += bytes;
        } else {
            int number = va_arg(list, int);
            unsigned int left = number < 0 ? 0u - (unsigned int)number : (unsigned int)number;
            unsigned int more = left;

            if (number < 0)
                *to++ = '-';
            for (; more >= 10; more /= 10)
                to++;
            text = ++to;
            for (; left >= 10; left /= 10)
                *--to = '0' + left % 10;
            *--to = '0' + left;
            to = (char *)text;
        }
    }
    *to = 0;
    return made;
}

INSIDE char *apr_pstrcat(apr_pool_t *pool, ...)
{
    va_list list;
    const char *text;
    char *made, *to;
    apr_size_t bytes = 1;

    va_start(list, pool);
    while ((text = va_arg(list, const char *)) != NULL)
        bytes += strlen(text);
    va_end(list);
    to = made = apr_palloc(pool, bytes);
    va_start(list, pool);
    while ((text = va_arg(list, const char *)) != NULL) {
        bytes = strlen(text);
        memcpy(to, text, bytes);
        to += bytes;
    }
    va_end(list);
    *to = 0;
    return made;
}
