#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include "syscall.h"

int ppoll(struct pollfd *asked, nfds_t count, const struct timespec *limit, const sigset_t *mask)
{
	sigset_t before;
	if (mask)
		sigprocmask(SIG_SETMASK, mask, &before);
	int found = syscall_cp(SYS_ppoll, asked, count, limit, 0, _NSIG / 8);
	if (mask) {
		int error = errno;
		sigprocmask(SIG_SETMASK, &before, 0);
		errno = error;
	}
	return found;
}
