/* Nothing comes from outside, so what is waited for is pending, or an alarm. Without either, the wait would not end. */
#include <errno.h>
#include <time.h>
#include "syscall.h"
#include "mullion_signal.h"

int sigsuspend(const sigset_t *mask)
{
	unsigned long before = __mullion_signals()->blocked;
	__mullion_signals()->blocked = mask->__bits[0] & ~(BIT(SIGKILL) | BIT(SIGSTOP));
	int ran = __mullion_flush();
	while (!ran && __mullion_armed) {
		struct timespec left = __mullion_alarm_left();
		long wrong = __syscall(SYS_nanosleep, &left, 0);
		if (wrong)
			break;
		ran = __mullion_alarm();
	}
	__mullion_signals()->blocked = before;
	__mullion_flush();
	return __syscall_ret(ran ? -EINTR : -EDEADLK);
}
