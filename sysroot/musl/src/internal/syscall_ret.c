/* In musl's place: a write to a pipe that nobody reads sends SIGPIPE, whichever function asked for it. */
#include <errno.h>
#include "syscall.h"
#include "../signal/mullion_signal.h"

static void none(void)
{
}

/* sigaction.c has the real one, which programs have, and libraries that handle signals. */
weak_alias(none, __mullion_broken_pipe);

long __syscall_ret(unsigned long r)
{
	if (r > -4096UL) {
		if (r == -(unsigned long)EPIPE)
			__mullion_broken_pipe();
		errno = -r;
		return -1;
	}
	return r;
}
