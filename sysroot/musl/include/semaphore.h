
/* Mullion: as in pthread.h. */
#ifndef MULLION_SEMAPHORE_CLOCK
#define MULLION_SEMAPHORE_CLOCK
#define __NEED_clockid_t
#include <bits/alltypes.h>
#ifdef __cplusplus
extern "C" {
#endif
int sem_clockwait(sem_t *__restrict, clockid_t, const struct timespec *__restrict);
#ifdef __cplusplus
}
#endif
#endif
