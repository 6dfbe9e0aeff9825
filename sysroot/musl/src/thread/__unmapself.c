/* Called by a detached thread that ends. A domain has none. */
#include "pthread_impl.h"
#include "atomic.h"

void __unmapself(void *base, size_t size)
{
	(void)base;
	(void)size;
	a_crash();
}
