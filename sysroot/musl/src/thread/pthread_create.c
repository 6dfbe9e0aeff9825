/* musl's own, whose threads leave as threads of a domain do. */
#define _GNU_SOURCE
#include "pthread_impl.h"
#include "__mullion_leave.h"

#undef SYS_exit
#define SYS_exit (__mullion_leave(0, 0), 0)

/* Not this file: this tree has no folder `process`. */
#include <../process/../thread/pthread_create.c>
