/* Calls that may wait. Where the program has set an alarm, what is due is sent in front of a call and behind it, and
 * ends a sleep. */
#include <errno.h>
#include <time.h>
#include "pthread_impl.h"
#include "syscall.h"
#include "../signal/mullion_signal.h"

hidden long __syscall_cp_c();

static long call(syscall_arg_t nr, syscall_arg_t u, syscall_arg_t v, syscall_arg_t w, syscall_arg_t x,
	syscall_arg_t y, syscall_arg_t z)
{
	return __syscall(nr, u, v, w, x, y, z);
}

weak_alias(call, __syscall_cp_c);

/* Of programs that set no alarm and have no handlers. */
static int none;
weak_alias(none, __mullion_armed);

static int nothing(void)
{
	return 0;
}

weak_alias(nothing, __mullion_alarm);

static void unheard(void)
{
}

weak_alias(unheard, __mullion_broken_pipe);

static struct timespec nothing_left(void)
{
	return (struct timespec){ 0 };
}

weak_alias(nothing_left, __mullion_alarm_left);

static int before(const struct timespec *one, const struct timespec *other)
{
	return one->tv_sec < other->tv_sec || (one->tv_sec == other->tv_sec && one->tv_nsec < other->tv_nsec);
}

static struct timespec less(struct timespec time, const struct timespec *by)
{
	time.tv_sec -= by->tv_sec;
	time.tv_nsec -= by->tv_nsec;
	if (time.tv_nsec < 0) {
		time.tv_sec--;
		time.tv_nsec += 1000000000;
	}
	return time;
}

/* A sleep that an alarm may end. */
static long sleep_until(clockid_t clock, int absolute, const struct timespec *wanted, struct timespec *rest)
{
	struct timespec end, now, left, alarm;
	if (wanted->tv_sec < 0 || wanted->tv_nsec < 0 || wanted->tv_nsec >= 1000000000)
		return -EINVAL;
	if (clock_gettime(clock, &now))
		return -errno;
	left = absolute ? less(*wanted, &now) : *wanted;
	if (clock_gettime(CLOCK_MONOTONIC, &now))
		return -errno;
	/* The end, if there is a time that far away. */
	end = left;
	if (__builtin_add_overflow(now.tv_sec, left.tv_sec, &end.tv_sec))
		end.tv_sec = (1ul << 63) - 2;
	end.tv_nsec += now.tv_nsec;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	while (before(&now, &end)) {
		left = less(end, &now);
		alarm = __mullion_alarm_left();
		const struct timespec *sooner = __mullion_armed && before(&alarm, &left) ? &alarm : &left;
		long wrong = __syscall(SYS_nanosleep, sooner, 0);
		if (wrong)
			return wrong;
		int ran = __mullion_armed ? __mullion_alarm() : 0;
		if (clock_gettime(CLOCK_MONOTONIC, &now))
			return -errno;
		if (ran && before(&now, &end)) {
			if (rest && !absolute)
				*rest = less(end, &now);
			return -EINTR;
		}
	}
	return 0;
}

long (__syscall_cp)(syscall_arg_t nr, syscall_arg_t u, syscall_arg_t v, syscall_arg_t w, syscall_arg_t x,
	syscall_arg_t y, syscall_arg_t z)
{
	if (__mullion_armed) {
		__mullion_alarm();
		if (__mullion_armed && nr == SYS_nanosleep)
			return sleep_until(CLOCK_REALTIME, 0, (void *)u, (void *)v);
		if (__mullion_armed && nr == SYS_clock_nanosleep)
			return sleep_until(u, v & TIMER_ABSTIME, (void *)w, (void *)x);
	}
	long result = __syscall_cp_c(nr, u, v, w, x, y, z);
	if (__mullion_armed)
		__mullion_alarm();
	return result;
}
