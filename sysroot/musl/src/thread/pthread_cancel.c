/* No signal is delivered in a domain, so no thread can be cancelled by another one. */
#include <errno.h>
#include "pthread_impl.h"

hidden long __cancel(void);

long __cancel(void)
{
	return -ECANCELED;
}

int pthread_cancel(pthread_t thread)
{
	(void)thread;
	return ENOSYS;
}
