
/* Mullion: timed waits by a clock that the caller names, as POSIX has them since 2024. */
#ifndef MULLION_PTHREAD_CLOCK
#define MULLION_PTHREAD_CLOCK
#ifdef __cplusplus
extern "C" {
#endif
int pthread_mutex_clocklock(pthread_mutex_t *__restrict, clockid_t, const struct timespec *__restrict);
int pthread_cond_clockwait(pthread_cond_t *__restrict, pthread_mutex_t *__restrict, clockid_t, const struct timespec *__restrict);
int pthread_rwlock_clockrdlock(pthread_rwlock_t *__restrict, clockid_t, const struct timespec *__restrict);
int pthread_rwlock_clockwrlock(pthread_rwlock_t *__restrict, clockid_t, const struct timespec *__restrict);
#ifdef __cplusplus
}
#endif
#endif
