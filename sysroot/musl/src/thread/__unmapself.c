/* Called by a detached thread that ends. */
#include "pthread_impl.h"
#include "__mullion_leave.h"

void __unmapself(void *base, size_t size)
{
	__mullion_leave(base, size);
}
