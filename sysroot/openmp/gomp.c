/* OpenMP with one thread: what gcc calls for `-fopenmp`. A region runs in the thread that comes to it, a loop is one
 * piece, a task runs where it is made. The locks are there for threads of the host, which may all come. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef _Bool bool;
typedef unsigned long long ull;

/* The loop or the sections that the thread is in: what has not been handed out yet. */
struct work {
	long start, end;
	ull first, last;
	unsigned section, sections;
	bool left;
};

static __thread struct work work;

/* Regions. */

static void region(void (*body)(void *), void *data, struct work begins)
{
	struct work outer = work;
	work = begins;
	body(data);
	work = outer;
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags)
{
	region(body, data, (struct work){ 0 });
}

unsigned GOMP_parallel_reductions(void (*body)(void *), void *data, unsigned threads, unsigned flags)
{
	region(body, data, (struct work){ 0 });
	return 1;
}

void GOMP_parallel_start(void (*body)(void *), void *data, unsigned threads)
{
}

void GOMP_parallel_end(void)
{
}

void GOMP_teams_reg(void (*body)(void *), void *data, unsigned teams, unsigned limit, unsigned flags)
{
	region(body, data, (struct work){ 0 });
}

void GOMP_teams(unsigned teams, unsigned limit)
{
}

bool GOMP_teams4(unsigned least, unsigned most, unsigned limit, bool first)
{
	return first;
}

/* Devices: there is none but this one. */
void GOMP_target_ext(int device, void (*body)(void *), size_t count, void **addresses, size_t *sizes,
	unsigned short *kinds, unsigned flags, void **depend, void **arguments)
{
	region(body, addresses, (struct work){ 0 });
}

void GOMP_target_data_ext(int device, size_t count, void **addresses, size_t *sizes, unsigned short *kinds)
{
}

void GOMP_target_end_data(void)
{
}

void GOMP_target_update_ext(int device, size_t count, void **addresses, size_t *sizes, unsigned short *kinds,
	unsigned flags, void **depend)
{
}

void GOMP_target_enter_exit_data(int device, size_t count, void **addresses, size_t *sizes, unsigned short *kinds,
	unsigned flags, void **depend)
{
}

/* Loops: all of a loop is one piece. */

static bool piece(long *start, long *end)
{
	if (!work.left)
		return 0;
	work.left = 0;
	*start = work.start;
	*end = work.end;
	return 1;
}

static bool begin(long start, long end, long step, long *first, long *last)
{
	work.start = start;
	work.end = end;
	work.left = step > 0 ? start < end : start > end;
	return piece(first, last);
}

static bool ull_piece(ull *start, ull *end)
{
	if (!work.left)
		return 0;
	work.left = 0;
	*start = work.first;
	*end = work.last;
	return 1;
}

static bool ull_begin(bool up, ull start, ull end, ull *first, ull *last)
{
	work.first = start;
	work.last = end;
	work.left = up ? start < end : start > end;
	return ull_piece(first, last);
}

#define CHUNKED(kind) \
	bool GOMP_loop_##kind##_start(long start, long end, long step, long chunk, long *first, long *last) \
	{ \
		return begin(start, end, step, first, last); \
	} \
	bool GOMP_loop_##kind##_next(long *first, long *last) \
	{ \
		return piece(first, last); \
	} \
	bool GOMP_loop_ull_##kind##_start(bool up, ull start, ull end, ull step, ull chunk, ull *first, ull *last) \
	{ \
		return ull_begin(up, start, end, first, last); \
	} \
	bool GOMP_loop_ull_##kind##_next(ull *first, ull *last) \
	{ \
		return ull_piece(first, last); \
	}

#define UNCHUNKED(kind) \
	bool GOMP_loop_##kind##_start(long start, long end, long step, long *first, long *last) \
	{ \
		return begin(start, end, step, first, last); \
	} \
	bool GOMP_loop_##kind##_next(long *first, long *last) \
	{ \
		return piece(first, last); \
	} \
	bool GOMP_loop_ull_##kind##_start(bool up, ull start, ull end, ull step, ull *first, ull *last) \
	{ \
		return ull_begin(up, start, end, first, last); \
	} \
	bool GOMP_loop_ull_##kind##_next(ull *first, ull *last) \
	{ \
		return ull_piece(first, last); \
	}

CHUNKED(static)
CHUNKED(dynamic)
CHUNKED(guided)
CHUNKED(nonmonotonic_dynamic)
CHUNKED(nonmonotonic_guided)
CHUNKED(ordered_static)
CHUNKED(ordered_dynamic)
CHUNKED(ordered_guided)
UNCHUNKED(runtime)
UNCHUNKED(nonmonotonic_runtime)
UNCHUNKED(maybe_nonmonotonic_runtime)
UNCHUNKED(ordered_runtime)

static void loop_region(void (*body)(void *), void *data, long start, long end, long step)
{
	struct work all = { .start = start, .end = end, .left = step > 0 ? start < end : start > end };
	region(body, data, all);
}

#define REGION(kind) \
	void GOMP_parallel_loop_##kind(void (*body)(void *), void *data, unsigned threads, long start, long end, \
		long step, long chunk, unsigned flags) \
	{ \
		loop_region(body, data, start, end, step); \
	}

#define UNCHUNKED_REGION(kind) \
	void GOMP_parallel_loop_##kind(void (*body)(void *), void *data, unsigned threads, long start, long end, \
		long step, unsigned flags) \
	{ \
		loop_region(body, data, start, end, step); \
	}

REGION(static)
REGION(dynamic)
REGION(guided)
REGION(nonmonotonic_dynamic)
REGION(nonmonotonic_guided)
UNCHUNKED_REGION(runtime)
UNCHUNKED_REGION(nonmonotonic_runtime)
UNCHUNKED_REGION(maybe_nonmonotonic_runtime)

void GOMP_loop_end(void)
{
}

bool GOMP_loop_end_cancel(void)
{
	return 0;
}

void GOMP_loop_end_nowait(void)
{
}

void GOMP_ordered_start(void)
{
}

void GOMP_ordered_end(void)
{
}

/* Sections: one after the other. */

unsigned GOMP_sections_next(void)
{
	return work.section < work.sections ? ++work.section : 0;
}

unsigned GOMP_sections_start(unsigned count)
{
	work.section = 0;
	work.sections = count;
	return GOMP_sections_next();
}

void GOMP_parallel_sections(void (*body)(void *), void *data, unsigned threads, unsigned count, unsigned flags)
{
	region(body, data, (struct work){ .sections = count });
}

void GOMP_sections_end(void)
{
}

bool GOMP_sections_end_cancel(void)
{
	return 0;
}

void GOMP_sections_end_nowait(void)
{
}

bool GOMP_single_start(void)
{
	return 1;
}

void *GOMP_single_copy_start(void)
{
	return 0;
}

void GOMP_single_copy_end(void *data)
{
}

/* Tasks. */

static void run_task(void (*body)(void *), void *data, void (*copy)(void *, void *), long size, long alignment,
	const long *range)
{
	char room[size + alignment + 1];
	void *own = (void *)(((unsigned long)room + alignment) & -(alignment ? alignment : 1));
	if (copy)
		copy(own, data);
	else
		memcpy(own, data, size);
	if (range)
		memcpy(own, range, 2 * sizeof *range);
	region(body, own, (struct work){ 0 });
}

void GOMP_task(void (*body)(void *), void *data, void (*copy)(void *, void *), long size, long alignment, bool condition,
	unsigned flags, void **depend, int priority, void *detach)
{
	run_task(body, data, copy, size, alignment, 0);
}

void GOMP_taskloop(void (*body)(void *), void *data, void (*copy)(void *, void *), long size, long alignment,
	unsigned flags, unsigned long tasks, int priority, long start, long end, long step)
{
	long range[2] = { start, end };
	if (step > 0 ? start < end : start > end)
		run_task(body, data, copy, size, alignment, range);
}

void GOMP_taskloop_ull(void (*body)(void *), void *data, void (*copy)(void *, void *), long size, long alignment,
	unsigned flags, unsigned long tasks, int priority, ull start, ull end, ull step)
{
	/* The bit of gcc's that says that the loop goes up. */
	const unsigned up = 1 << 8;
	long range[2] = { (long)start, (long)end };
	if (flags & up ? start < end : start > end)
		run_task(body, data, copy, size, alignment, range);
}

void GOMP_taskwait(void)
{
}

void GOMP_taskwait_depend(void **depend)
{
}

void GOMP_taskyield(void)
{
	sched_yield();
}

void GOMP_taskgroup_start(void)
{
}

void GOMP_taskgroup_end(void)
{
}

/* What threads do together. */

void GOMP_barrier(void)
{
}

bool GOMP_barrier_cancel(void)
{
	return 0;
}

bool GOMP_cancel(int which, bool wanted)
{
	return 0;
}

bool GOMP_cancellation_point(int which)
{
	return 0;
}

static pthread_mutex_t critical = PTHREAD_MUTEX_INITIALIZER, atomic = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t named = PTHREAD_MUTEX_INITIALIZER;

void GOMP_critical_start(void)
{
	pthread_mutex_lock(&critical);
}

void GOMP_critical_end(void)
{
	pthread_mutex_unlock(&critical);
}

/* One word for each name: a flag. */
void GOMP_critical_name_start(void **name)
{
	for (;;) {
		pthread_mutex_lock(&named);
		bool taken = *name != 0;
		*name = &named;
		pthread_mutex_unlock(&named);
		if (!taken)
			return;
		sched_yield();
	}
}

void GOMP_critical_name_end(void **name)
{
	pthread_mutex_lock(&named);
	*name = 0;
	pthread_mutex_unlock(&named);
}

void GOMP_atomic_start(void)
{
	pthread_mutex_lock(&atomic);
}

void GOMP_atomic_end(void)
{
	pthread_mutex_unlock(&atomic);
}

/* The functions of omp.h. */

#define ALWAYS(name, value) \
	int name(void) \
	{ \
		return value; \
	}

ALWAYS(omp_get_num_threads, 1)
ALWAYS(omp_get_max_threads, 1)
ALWAYS(omp_get_thread_num, 0)
ALWAYS(omp_get_num_procs, 1)
ALWAYS(omp_in_parallel, 0)
ALWAYS(omp_get_dynamic, 0)
ALWAYS(omp_get_nested, 0)
ALWAYS(omp_get_thread_limit, 1)
ALWAYS(omp_get_max_active_levels, 1)
ALWAYS(omp_get_supported_active_levels, 1)
ALWAYS(omp_get_level, 0)
ALWAYS(omp_get_active_level, 0)
ALWAYS(omp_in_final, 0)
ALWAYS(omp_get_cancellation, 0)
ALWAYS(omp_get_proc_bind, 0)
ALWAYS(omp_get_num_places, 0)
ALWAYS(omp_get_default_device, 0)
ALWAYS(omp_get_num_devices, 0)
ALWAYS(omp_get_initial_device, 0)
ALWAYS(omp_is_initial_device, 1)
ALWAYS(omp_get_num_teams, 1)
ALWAYS(omp_get_team_num, 0)
ALWAYS(omp_get_max_task_priority, 0)

void omp_set_num_threads(int count)
{
}

void omp_set_dynamic(int wanted)
{
}

void omp_set_nested(int wanted)
{
}

void omp_set_max_active_levels(int most)
{
}

void omp_set_schedule(int kind, int chunk)
{
}

void omp_set_default_device(int device)
{
}

void omp_get_schedule(int *kind, int *chunk)
{
	*kind = 1;
	*chunk = 0;
}

int omp_get_ancestor_thread_num(int level)
{
	return level ? -1 : 0;
}

int omp_get_team_size(int level)
{
	return level ? -1 : 1;
}

double omp_get_wtime(void)
{
	struct timespec now = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

double omp_get_wtick(void)
{
	return 1e-9;
}

void omp_init_lock(int *lock)
{
	*lock = 0;
}

void omp_destroy_lock(int *lock)
{
}

int omp_test_lock(int *lock)
{
	return !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

void omp_set_lock(int *lock)
{
	while (!omp_test_lock(lock))
		sched_yield();
}

void omp_unset_lock(int *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

void omp_init_lock_with_hint(int *lock, int hint)
{
	*lock = 0;
}

/* As gcc's header lays it out: a lock, a count, and who has it. */
struct nested {
	int lock, count;
	void *owner;
};

void omp_init_nest_lock(struct nested *lock)
{
	memset(lock, 0, sizeof *lock);
}

void omp_init_nest_lock_with_hint(struct nested *lock, int hint)
{
	memset(lock, 0, sizeof *lock);
}

void omp_destroy_nest_lock(struct nested *lock)
{
}

int omp_test_nest_lock(struct nested *lock)
{
	void *self = (void *)pthread_self();
	if (__atomic_load_n(&lock->owner, __ATOMIC_RELAXED) != self) {
		if (!omp_test_lock(&lock->lock))
			return 0;
		__atomic_store_n(&lock->owner, self, __ATOMIC_RELAXED);
	}
	return ++lock->count;
}

void omp_set_nest_lock(struct nested *lock)
{
	while (!omp_test_nest_lock(lock))
		sched_yield();
}

void omp_unset_nest_lock(struct nested *lock)
{
	if (--lock->count)
		return;
	__atomic_store_n(&lock->owner, 0, __ATOMIC_RELAXED);
	omp_unset_lock(&lock->lock);
}
