#include <errno.h>
#include <signal.h>
#include <string.h>
#include "../signal/mullion_signal.h"

int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	unsigned long before = __mullion_signals()->blocked, given = set ? set->__bits[0] : 0;
	if (set) {
		if (how == SIG_BLOCK)
			given |= before;
		else if (how == SIG_UNBLOCK)
			given = before & ~given;
		else if (how != SIG_SETMASK)
			return EINVAL;
	}
	if (old) {
		memset(old, 0, sizeof *old);
		old->__bits[0] = before;
	}
	if (set) {
		__mullion_signals()->blocked = given & ~(BIT(SIGKILL) | BIT(SIGSTOP));
		__mullion_flush();
	}
	return 0;
}
