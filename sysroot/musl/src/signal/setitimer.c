/* ITIMER_REAL by the clock, where that is granted: what is due is sent at the next call that may wait. */
#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include "syscall.h"
#include "mullion_signal.h"

#define SECOND 1000000000l

hidden int __mullion_armed;
static struct timespec due, interval;

static int now(struct timespec *time)
{
	return clock_gettime(CLOCK_MONOTONIC, time);
}

static struct timespec sum(struct timespec time, struct timespec more)
{
	time.tv_sec += more.tv_sec;
	time.tv_nsec += more.tv_nsec;
	if (time.tv_nsec >= SECOND) {
		time.tv_sec++;
		time.tv_nsec -= SECOND;
	}
	return time;
}

hidden struct timespec __mullion_alarm_left(void)
{
	struct timespec time, left = { 0 };
	if (!__mullion_armed || now(&time))
		return left;
	left.tv_sec = due.tv_sec - time.tv_sec;
	left.tv_nsec = due.tv_nsec - time.tv_nsec;
	if (left.tv_nsec < 0) {
		left.tv_sec--;
		left.tv_nsec += SECOND;
	}
	if (left.tv_sec < 0)
		memset(&left, 0, sizeof left);
	return left;
}

hidden int __mullion_alarm(void)
{
	struct timespec left = __mullion_alarm_left();
	if (!__mullion_armed || left.tv_sec || left.tv_nsec)
		return 0;
	__mullion_armed = interval.tv_sec || interval.tv_nsec;
	/* Those that were missed meanwhile are one. */
	struct timespec time;
	if (__mullion_armed && !now(&time))
		due = sum(time, interval);
	return __mullion_signal(SIGALRM, SI_KERNEL) > 0;
}

int getitimer(int which, struct itimerval *old)
{
	if (which != ITIMER_REAL)
		return __syscall_ret(which == ITIMER_VIRTUAL || which == ITIMER_PROF ? -ENOSYS : -EINVAL);
	struct timespec left = __mullion_alarm_left();
	old->it_value.tv_sec = left.tv_sec;
	/* What is set has not come yet. */
	old->it_value.tv_usec = (left.tv_nsec + 999) / 1000 + (__mullion_armed && !left.tv_sec && !left.tv_nsec);
	if (old->it_value.tv_usec >= 1000000) {
		old->it_value.tv_sec++;
		old->it_value.tv_usec -= 1000000;
	}
	old->it_interval.tv_sec = interval.tv_sec;
	old->it_interval.tv_usec = interval.tv_nsec / 1000;
	return 0;
}

static int is_time(const struct timeval *time)
{
	return time->tv_sec >= 0 && time->tv_usec >= 0 && time->tv_usec < 1000000;
}

int setitimer(int which, const struct itimerval *restrict new, struct itimerval *restrict old)
{
	struct itimerval before;
	struct timespec time;
	if (getitimer(which, &before))
		return -1;
	if (!is_time(&new->it_value) || !is_time(&new->it_interval))
		return __syscall_ret(-EINVAL);
	int sets = new->it_value.tv_sec || new->it_value.tv_usec;
	if (sets && now(&time))
		return -1;
	if (old)
		*old = before;
	__mullion_armed = sets;
	interval = (struct timespec){ new->it_interval.tv_sec, new->it_interval.tv_usec * 1000 };
	struct timespec first = { new->it_value.tv_sec, new->it_value.tv_usec * 1000 };
	if (sets)
		due = sum(time, first);
	return 0;
}
