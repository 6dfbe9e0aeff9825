/* A module that follows its host's pointers: it keeps statistics in a structure of the host's.
 *
 *     mullion cc --wall=word -g -O1 module.c -o module.so
 */
#include "list.h"

#include <stdlib.h>

static long calls;

/* What the host passes, the module may read for the length of the call. */
long total(const struct item *items, size_t count, struct summary *summary)
{
    long sum = 0;
    calls++;
    for (size_t at = 0; at < count; at++)
        sum += items[at].price * items[at].number;
    summary->total = sum;
    summary->calls = calls;
    return sum;
}

/* It writes where it may only read. */
long discount(struct item *items, size_t count)
{
    for (size_t at = 0; at < count; at++)
        items[at].price = 0;
    return (long)count;
}

/* Memory of its own, by its own heap; and a function of the host's. */
long told(long number)
{
    char *text = malloc(32);
    long length;
    if (!text)
        return -1;
    text[0] = (char)('0' + number % 10);
    text[1] = 0;
    length = say(text);
    free(text);
    return length;
}

/* It remembers a pointer, and uses it later. */
static const struct item *remembered;

long remember(const struct item *item)
{
    remembered = item;
    return item->price;
}

long recall(void)
{
    return remembered->price;
}

/* The host's pool gives it an item, which is the module's as long as the pool lives. */
static struct item *pooled_item;

long pooled(void)
{
    if (!pooled_item)
        pooled_item = pool_item();
    return ++pooled_item->number;
}

/* The host reads this in place, and calls by the pointer in it. */
struct record record = { "example", pooled };

long spoil(long (*other)(void))
{
    record.pooled = other;
    return 1;
}

double mean(double a, double b)
{
    return (a + b) / 2;
}
