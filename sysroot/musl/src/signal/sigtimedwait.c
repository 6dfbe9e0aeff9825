/* As sigsuspend: what nobody has sent does not come, but for an alarm. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include "syscall.h"
#include "mullion_signal.h"

static int take(unsigned long wanted, siginfo_t *information)
{
	unsigned long ready = __mullion_signals()->pending & wanted;
	if (!ready)
		return 0;
	int signal = __builtin_ctzl(ready) + 1;
	__mullion_signals()->pending &= ~BIT(signal);
	if (information) {
		memset(information, 0, sizeof *information);
		information->si_signo = signal;
		information->si_pid = 1;
	}
	return signal;
}

int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict information, const struct timespec *restrict limit)
{
	for (int signal;;) {
		if ((signal = take(set->__bits[0], information)))
			return signal;
		if (!__mullion_armed || !(set->__bits[0] & BIT(SIGALRM)))
			break;
		struct timespec left = __mullion_alarm_left();
		int longer = limit && (left.tv_sec > limit->tv_sec
			|| (left.tv_sec == limit->tv_sec && left.tv_nsec > limit->tv_nsec));
		long wrong = __syscall(SYS_nanosleep, longer ? limit : &left, 0);
		if (wrong)
			return __syscall_ret(wrong);
		if (longer)
			return __syscall_ret(-EAGAIN);
		/* Whoever waits for a signal has blocked it. */
		__mullion_signals()->blocked |= BIT(SIGALRM);
		__mullion_alarm();
	}
	if (limit)
		__syscall(SYS_nanosleep, limit, 0);
	return __syscall_ret(limit ? -EAGAIN : -EDEADLK);
}
