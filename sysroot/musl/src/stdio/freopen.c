/* musl's, which without a name changes no more than whether the stream appends. glibc opens the file anew by its name
 * below /proc: it is empty if the mode says so, and the stream is at its beginning. That is done here to what is open. */
#include "stdio_impl.h"
#include <fcntl.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The basic idea of this implementation is to open a new FILE,
 * hack the necessary parts of the new FILE into the old one, then
 * close the new FILE. */

/* Locking IS necessary because another thread may provably hold the
 * lock, via flockfile or otherwise, when freopen is called, and in that
 * case, freopen cannot act until the lock is released. */

static int open_anew(FILE *f, const char *mode, int wanted)
{
	int has = __syscall_ret(__syscall(SYS_fcntl, f->fd, F_GETFL));
	if (has < 0)
		return -1;
	if ((has & O_ACCMODE) != O_RDWR && (has & O_ACCMODE) != (wanted & O_ACCMODE)) {
		errno = EBADF;
		return -1;
	}
	if (wanted & O_CLOEXEC)
		__syscall(SYS_fcntl, f->fd, F_SETFD, FD_CLOEXEC);
	if (syscall(SYS_fcntl, f->fd, F_SETFL, wanted & ~(O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC)) < 0)
		return -1;
	/* What has no length is not made shorter, and what has no places is not gone through. */
	if (wanted & O_TRUNC && ftruncate(f->fd, 0) && errno != EINVAL)
		return -1;
	(void)__lseek(f->fd, 0, SEEK_SET);
	f->flags &= F_PERM;
	if (!strchr(mode, '+'))
		f->flags |= *mode == 'r' ? F_NOWR : F_NORD;
	if (wanted & O_APPEND)
		f->flags |= F_APP;
	f->rpos = f->rend = f->wpos = f->wbase = f->wend = 0;
	return 0;
}

FILE *freopen(const char *restrict filename, const char *restrict mode, FILE *restrict f)
{
	int fl = __fmodeflags(mode);
	FILE *f2;

	FLOCK(f);

	fflush(f);

	if (!filename) {
		if (open_anew(f, mode, fl))
			goto fail;
	} else {
		f2 = fopen(filename, mode);
		if (!f2) goto fail;
		if (f2->fd == f->fd) f2->fd = -1; /* avoid closing in fclose */
		else if (__dup3(f2->fd, f->fd, fl&O_CLOEXEC)<0) goto fail2;

		f->flags = (f->flags & F_PERM) | f2->flags;
		f->read = f2->read;
		f->write = f2->write;
		f->seek = f2->seek;
		f->close = f2->close;

		fclose(f2);
	}

	FUNLOCK(f);
	return f;

fail2:
	fclose(f2);
fail:
	fclose(f);
	return NULL;
}

weak_alias(freopen, freopen64);
