/* Timed waits by a clock that the caller names (POSIX.1-2024). musl's wait until a time of CLOCK_REALTIME, so a time of
 * another clock is asked for as what is left until then. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static int at_real_time(clockid_t clock, const struct timespec *at, struct timespec *real)
{
	struct timespec now, here;
	if ((unsigned long)at->tv_nsec >= 1000000000 || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
		return EINVAL;
	*real = *at;
	if (clock == CLOCK_REALTIME)
		return 0;
	if (clock_gettime(clock, &now) || clock_gettime(CLOCK_REALTIME, &here))
		return EINVAL;
	real->tv_sec += here.tv_sec - now.tv_sec;
	real->tv_nsec += here.tv_nsec - now.tv_nsec;
	if (real->tv_nsec < 0) {
		real->tv_nsec += 1000000000;
		real->tv_sec--;
	} else if (real->tv_nsec >= 1000000000) {
		real->tv_nsec -= 1000000000;
		real->tv_sec++;
	}
	return 0;
}

int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock, const struct timespec *restrict at)
{
	struct timespec real;
	int wrong = pthread_mutex_trylock(mutex);
	if (wrong != EBUSY)
		return wrong;
	wrong = at_real_time(clock, at, &real);
	return wrong ? wrong : pthread_mutex_timedlock(mutex, &real);
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
	const struct timespec *restrict at)
{
	struct timespec real;
	int wrong = at_real_time(clock, at, &real);
	return wrong ? wrong : pthread_cond_timedwait(condition, mutex, &real);
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict at)
{
	struct timespec real;
	int wrong = pthread_rwlock_tryrdlock(lock);
	if (wrong != EBUSY)
		return wrong;
	wrong = at_real_time(clock, at, &real);
	return wrong ? wrong : pthread_rwlock_timedrdlock(lock, &real);
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t clock, const struct timespec *restrict at)
{
	struct timespec real;
	int wrong = pthread_rwlock_trywrlock(lock);
	if (wrong != EBUSY)
		return wrong;
	wrong = at_real_time(clock, at, &real);
	return wrong ? wrong : pthread_rwlock_timedwrlock(lock, &real);
}

int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict at)
{
	struct timespec real;
	if (!sem_trywait(semaphore))
		return 0;
	int wrong = at_real_time(clock, at, &real);
	if (wrong) {
		errno = wrong;
		return -1;
	}
	return sem_timedwait(semaphore, &real);
}
