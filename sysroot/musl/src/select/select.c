/* By poll, which is what the system answers. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/select.h>

static int is_in(int number, fd_set *set)
{
	return set && FD_ISSET(number, set);
}

int select(int n, fd_set *restrict readable, fd_set *restrict writable, fd_set *restrict other,
	struct timeval *restrict limit)
{
	struct pollfd asked[FD_SETSIZE];
	nfds_t count = 0;
	int milliseconds = -1, found = 0;
	if (n < 0 || n > FD_SETSIZE || (limit && (limit->tv_sec < 0 || limit->tv_usec < 0))) {
		errno = EINVAL;
		return -1;
	}
	if (limit) {
		/* Rounded up: a time that is not over yet is waited for. */
		long more = (limit->tv_usec + 999) / 1000, most = INT_MAX / 1000 - 1;
		milliseconds = limit->tv_sec + more / 1000 > most ? INT_MAX : limit->tv_sec * 1000 + more;
	}
	for (int i = 0; i < n; i++) {
		short events = (is_in(i, readable) ? POLLIN : 0) | (is_in(i, writable) ? POLLOUT : 0);
		if (events || is_in(i, other))
			asked[count++] = (struct pollfd){ .fd = i, .events = events };
	}
	if (poll(asked, count, milliseconds) < 0)
		return -1;
	for (nfds_t i = 0; i < count; i++) {
		if (asked[i].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
	}
	fd_set *sets[] = { readable, writable, other };
	short events[] = { POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI };
	for (int set = 0; set < 3; set++) {
		if (!sets[set])
			continue;
		fd_set wanted = *sets[set];
		FD_ZERO(sets[set]);
		for (nfds_t i = 0; i < count; i++) {
			if (FD_ISSET(asked[i].fd, &wanted) && asked[i].revents & events[set]) {
				FD_SET(asked[i].fd, sets[set]);
				found++;
			}
		}
	}
	return found;
}
