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

/* Of the host. */
long say(const char *text);

#endif
