/* What programs with threads do. Each case is a word. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MANY 8
#define TURNS 20000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long sum;
static atomic_int arrived, destroyed;
static _Thread_local long own = 7;

static void fail(const char *what, int error)
{
	printf("%s: %s\n", what, strerror(error));
	exit(1);
}

static void *add(void *given)
{
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&lock);
		sum++;
		pthread_mutex_unlock(&lock);
		own++;
		free(malloc(16 + i % 300));
	}
	return (void *)(own + (long)given);
}

/* Sums under a lock, results by join, thread-locals that begin anew. */
static int sums(void)
{
	pthread_t all[MANY];
	for (long i = 0; i < MANY; i++) {
		int error = pthread_create(&all[i], 0, add, (void *)i);
		if (error)
			fail("pthread_create", error);
	}
	long results = 0;
	for (int i = 0; i < MANY; i++) {
		void *result;
		pthread_join(all[i], &result);
		results += (long)result;
	}
	printf("%ld %ld %ld\n", sum, results, own);
	return 0;
}

/* A bounded queue with two conditions. */
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;
static int queue[4], held;

static void *produce(void *given)
{
	for (int i = 1; i <= 1000; i++) {
		pthread_mutex_lock(&lock);
		while (held == 4)
			pthread_cond_wait(&room, &lock);
		queue[held++] = i;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
	}
	return given;
}

static void *consume(void *given)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		while (!held)
			pthread_cond_wait(&changed, &lock);
		sum += queue[--held];
		pthread_cond_signal(&room);
		pthread_mutex_unlock(&lock);
	}
	return given;
}

static int queues(void)
{
	pthread_t all[6];
	for (int i = 0; i < 6; i++)
		pthread_create(&all[i], 0, i % 2 ? produce : consume, 0);
	for (int i = 0; i < 6; i++)
		pthread_join(all[i], 0);
	printf("%ld %d\n", sum, held);
	return 0;
}

static pthread_barrier_t barrier;
static sem_t semaphore;

static void *meet(void *given)
{
	for (int i = 0; i < 100; i++) {
		arrived++;
		pthread_barrier_wait(&barrier);
		if (arrived < 4 * (i + 1))
			fail("barrier", 0);
		pthread_barrier_wait(&barrier);
	}
	sem_post(&semaphore);
	return given;
}

static int meetings(void)
{
	pthread_t thread;
	pthread_barrier_init(&barrier, 0, 4);
	sem_init(&semaphore, 0, 0);
	for (int i = 0; i < 4; i++) {
		pthread_create(&thread, 0, meet, 0);
		pthread_detach(thread);
	}
	for (int i = 0; i < 4; i++)
		sem_wait(&semaphore);
	printf("%d\n", arrived);
	return 0;
}

static void *wait_for_ever(void *given)
{
	pthread_mutex_lock(&lock);
	arrived++;
	pthread_cond_broadcast(&changed);
	for (;;)
		pthread_cond_wait(&room, &lock);
	return given;
}

static void started(int count)
{
	pthread_t thread;
	for (int i = 0; i < count; i++) {
		int error = pthread_create(&thread, 0, wait_for_ever, 0);
		if (error)
			fail("pthread_create", error);
	}
	pthread_mutex_lock(&lock);
	while (arrived < count)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* One more than were granted. */
static int limit(int granted)
{
	pthread_t thread;
	started(granted);
	int error = pthread_create(&thread, 0, wait_for_ever, 0);
	printf("%d: %s\n", granted, error == EAGAIN ? "EAGAIN" : "?");
	return 0;
}

static void *nothing(void *given)
{
	return given;
}

/* Joined threads leave their places at once, detached ones soon. */
static int turns(void)
{
	pthread_t thread;
	for (int i = 0; i < 150; i++) {
		int error = pthread_create(&thread, 0, nothing, 0);
		if (error)
			fail("pthread_create", error);
		pthread_join(thread, 0);
	}
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < 150; i++) {
		int error;
		while ((error = pthread_create(&thread, &attributes, nothing, 0)) == EAGAIN)
			sched_yield();
		if (error)
			fail("pthread_create", error);
	}
	puts("300");
	return 0;
}

static void *leave(void *given)
{
	exit(*(int *)given);
}

static void *fall(void *given)
{
	*(volatile int *)given = 1;
	return 0;
}

static void *spin(void *given)
{
	for (volatile int on = 1; on;)
		;
	return given;
}

static void *last(void *given)
{
	for (int i = 0; i < 100; i++)
		sched_yield();
	puts("the last one");
	return given;
}

static pthread_key_t key;

static void destroy(void *value)
{
	destroyed += *(int *)value;
}

static void *with_value(void *given)
{
	pthread_setspecific(key, given);
	return 0;
}

static int values(void)
{
	static int one = 1;
	pthread_t thread;
	pthread_key_create(&key, destroy);
	pthread_setspecific(key, &one);
	for (int i = 0; i < 3; i++) {
		pthread_create(&thread, 0, with_value, &one);
		pthread_join(thread, 0);
	}
	int before = destroyed;
	pthread_key_delete(key);
	pthread_create(&thread, 0, nothing, 0);
	pthread_join(thread, 0);
	printf("%d %d\n", before, destroyed);
	return 0;
}

static int timed(void)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 20000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	started(1);
	pthread_mutex_lock(&lock);
	int error;
	while (!(error = pthread_cond_timedwait(&changed, &lock, &until)))
		;
	puts(error == ETIMEDOUT ? "ETIMEDOUT" : strerror(error));
	return 0;
}

/* A deep stack: it is the host's, whatever was asked for. */
static int deep(int depth)
{
	volatile char room[4096];
	room[0] = 1;
	return depth ? deep(depth - 1) + room[0] : 0;
}

static void *deeper(void *given)
{
	return (void *)(long)deep(1000);
}

int main(int count, char **words)
{
	pthread_t thread;
	const char *word = words[1];
	if (!strcmp(word, "sums"))
		return sums();
	if (!strcmp(word, "queues"))
		return queues();
	if (!strcmp(word, "meetings"))
		return meetings();
	if (!strcmp(word, "limit"))
		return limit(atoi(words[2]));
	if (!strcmp(word, "turns"))
		return turns();
	if (!strcmp(word, "values"))
		return values();
	if (!strcmp(word, "timed"))
		return timed();
	if (!strcmp(word, "exit")) {
		int status = atoi(words[2]);
		started(3);
		pthread_create(&thread, 0, leave, &status);
		pthread_join(thread, 0);
	}
	if (!strcmp(word, "fault")) {
		started(3);
		pthread_create(&thread, 0, fall, (void *)64);
		pthread_join(thread, 0);
	}
	if (!strcmp(word, "return")) {
		started(3);
		pthread_create(&thread, 0, spin, 0);
		return 5;
	}
	if (!strcmp(word, "spin")) {
		for (int i = 0; i < 3; i++)
			pthread_create(&thread, 0, spin, 0);
		pthread_join(thread, 0);
	}
	if (!strcmp(word, "leave")) {
		pthread_create(&thread, 0, last, 0);
		pthread_exit(0);
	}
	if (!strcmp(word, "deep")) {
		void *result;
		pthread_create(&thread, 0, deeper, 0);
		pthread_join(thread, &result);
		printf("%ld\n", (long)result);
		return 0;
	}
	if (!strcmp(word, "fork")) {
		pid_t child = fork();
		printf("%d %s\n", (int)child, strerror(errno));
		return 0;
	}
	return 2;
}
