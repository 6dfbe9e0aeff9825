/* The answer of glibc where the system has no fallocate(2): each block of the range gets its bytes by being written. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

int posix_fallocate(int file, off_t base, off_t length)
{
	if (base < 0 || length <= 0)
		return EINVAL;
	if (base > LONG_MAX - length)
		return EFBIG;
	/* What is appended cannot be written where it belongs. */
	int flags = fcntl(file, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || flags & O_APPEND)
		return EBADF;
	struct stat status;
	if (fstat(file, &status))
		return EBADF;
	if (S_ISFIFO(status.st_mode))
		return ESPIPE;
	if (!S_ISREG(status.st_mode))
		return ENODEV;

	const off_t block = 4096, end = base + length;
	/* The last byte of each block that the range has a part in, and of the range. A byte that is there stays as it is. */
	for (off_t at = base; at < end; at = (at / block + 1) * block) {
		off_t next = (at / block + 1) * block;
		off_t last = (next < end ? next : end) - 1;
		char byte = 0;
		if (last < status.st_size) {
			ssize_t got = pread(file, &byte, 1, last);
			/* A file for writing alone cannot be asked. It keeps its holes. */
			if (got < 0 && errno == EBADF)
				continue;
			if (got < 0)
				return errno;
			if (byte)
				continue;
		}
		if (pwrite(file, &byte, 1, last) < 0)
			return errno;
	}
	return 0;
}

weak_alias(posix_fallocate, posix_fallocate64);
