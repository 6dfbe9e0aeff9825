/* A domain has one thread, which nobody can cancel: pthread_create answers
 * EAGAIN, so there is no other thread to name. */
#include <errno.h>
#include "pthread_impl.h"

hidden long __cancel(void);

long __cancel(void)
{
	return -ECANCELED;
}

int pthread_cancel(pthread_t thread)
{
	return thread == __pthread_self() ? ENOSYS : ESRCH;
}
