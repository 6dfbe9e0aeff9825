#include <stddef.h>
#include "features.h"

hidden size_t __mullion_heap_room(void *);
size_t __mullion_host_malloc_usable_size(void *);

size_t malloc_usable_size(void *p)
{
	if (!p)
		return 0;
	size_t room = __mullion_heap_room(p);
	return room ? room : __mullion_host_malloc_usable_size(p);
}
