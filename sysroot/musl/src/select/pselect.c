#include <errno.h>
#include <signal.h>
#include <sys/select.h>

int pselect(int n, fd_set *restrict readable, fd_set *restrict writable, fd_set *restrict other,
	const struct timespec *restrict limit, const sigset_t *restrict mask)
{
	struct timeval rounded;
	sigset_t before;
	if (limit)
		rounded = (struct timeval){ limit->tv_sec, (limit->tv_nsec + 999) / 1000 };
	if (mask)
		sigprocmask(SIG_SETMASK, mask, &before);
	int found = select(n, readable, writable, other, limit ? &rounded : 0);
	if (mask) {
		int error = errno;
		sigprocmask(SIG_SETMASK, &before, 0);
		errno = error;
	}
	return found;
}
