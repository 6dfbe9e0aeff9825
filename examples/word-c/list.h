/* What the host and its module share. */
#ifndef LIST_H
#define LIST_H

#include <stddef.h>

struct item {
    long price;
    long number;
};

struct summary {
    long total;
    long calls;
};

/* What the host reads of the module. */
struct record {
    const char *name;
    long (*pooled)(void);
};

/* Of the host. */
struct item *pool_item(void);
long say(const char *text);

#endif
