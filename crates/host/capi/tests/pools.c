/* Pools of domains, and domains that are replaced behind their functions, with several threads (pooled.c). */
#include <mullion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, mullion_error_message()); \
			exit(1); \
		} \
	} while (0)
#define OK(call) EXPECT((call) == MULLION_OK)

enum { THREADS = 6, ROUNDS = 60, MOST = 3 };

static mullion_image images[2], other;
static mullion_imports imports;
static mullion_pool pool;
static mullion_live live;

/* A constructor's call: the handle that it is told is good. */
static mullion_status started(mullion_domain caller, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	mullion_pointer place;
	(void)user;
	(void)result;
	EXPECT(arguments->integers[0] == 1 || arguments->integers[0] == 2);
	OK(mullion_alloc(caller, 16, &place));
	OK(mullion_free(caller, place));
	return MULLION_OK;
}

static int64_t call(mullion_function function, const mullion_value *arguments, size_t count)
{
	mullion_value result = MULLION_INTEGER_RESULT;
	OK(mullion_call(function, arguments, count, &result));
	return (int32_t)result.as.integer;
}

static int64_t call_named(mullion_domain domain, const char *name, const mullion_value *arguments, size_t count)
{
	mullion_function function;
	int64_t answer;
	OK(mullion_function_find(domain, name, &function));
	answer = call(function, arguments, count);
	OK(mullion_function_free(function));
	return answer;
}

static void crash(mullion_domain domain)
{
	mullion_function function;
	OK(mullion_function_find(domain, "crash", &function));
	EXPECT(mullion_call(function, NULL, 0, NULL) == MULLION_FAULT);
	OK(mullion_function_free(function));
}

static mullion_pool_figures figures(void)
{
	mullion_pool_figures now = MULLION_POOL_FIGURES_DEFAULT;
	OK(mullion_pool_stats(pool, &now));
	return now;
}

/* Each use finds a domain that is as new, whatever the one before did. */
static void *use(void *number)
{
	int round;
	for (round = 0; round < ROUNDS; round++) {
		mullion_domain domain;
		mullion_value value = mullion_integer(7);
		mullion_pointer place;
		OK(mullion_pool_get(pool, MULLION_NEVER, &domain));
		EXPECT(call_named(domain, "use", &value, 1) == 0);
		EXPECT(call_named(domain, "use", &value, 1) == 1);
		OK(mullion_copy_in(domain, "abc", 4, &place));
		if ((round + *(int *)number) % 5 == 0)
			crash(domain);
		OK(mullion_pool_put(domain));
		EXPECT(mullion_write(domain, place, "abc", 4) == MULLION_BAD_HANDLE);
		EXPECT(mullion_pool_put(domain) == MULLION_BAD_HANDLE);
	}
	return NULL;
}

static void on_threads(void *(*run)(void *), unsigned count, pthread_t *threads, int *numbers)
{
	unsigned at;
	for (at = 0; at < count; at++) {
		numbers[at] = (int)at;
		EXPECT(!pthread_create(&threads[at], NULL, run, &numbers[at]));
	}
}

static void join(unsigned count, pthread_t *threads)
{
	while (count--)
		EXPECT(!pthread_join(threads[count], NULL));
}

static void pools(void)
{
	mullion_pool_limits bounds = MULLION_POOL_LIMITS_DEFAULT;
	mullion_pool_figures now;
	mullion_domain all[MOST], one;
	mullion_function held;
	mullion_value value = mullion_integer(1);
	pthread_t threads[THREADS];
	int numbers[THREADS], at;

	bounds.size = 8;
	EXPECT(mullion_pool_new(images[0], NULL, imports, NULL, &bounds, &pool) == MULLION_BAD_ARGUMENT);
	bounds.size = sizeof bounds;
	bounds.most = MOST;
	bounds.memory = 4096;
	EXPECT(mullion_pool_new(images[0], NULL, imports, NULL, &bounds, &pool) == MULLION_TIMED_OUT);
	bounds.memory = 0;
	EXPECT(mullion_pool_new(images[0], NULL, MULLION_NO_IMPORTS, NULL, &bounds, &pool) == MULLION_UNKNOWN_IMPORTS);
	OK(mullion_pool_new(images[0], "pooled", imports, NULL, &bounds, &pool));
	now = figures();
	EXPECT(now.ready == 1 && now.made == 1 && now.uses == 0 && now.taken == 0);

	on_threads(use, THREADS, threads, numbers);
	join(THREADS, threads);
	now = figures();
	EXPECT(now.uses == THREADS * ROUNDS && now.taken == 0 && now.ended >= 1 && now.restarts >= 1);
	EXPECT(now.made <= MOST + now.replaced);

	/* Bounded. */
	for (at = 0; at < MOST; at++)
		OK(mullion_pool_get(pool, MULLION_NEVER, &all[at]));
	EXPECT(mullion_pool_get(pool, 0, &one) == MULLION_TIMED_OUT);
	EXPECT(mullion_pool_get(pool, 1000000, &one) == MULLION_TIMED_OUT);
	OK(mullion_pool_put(all[0]));
	OK(mullion_pool_get(pool, MULLION_NEVER, &all[0]));

	/* What is still held is its holder's. */
	OK(mullion_function_find(all[0], "use", &held));
	EXPECT(call(held, &value, 1) == 0);
	OK(mullion_pool_put(all[0]));
	EXPECT(call(held, &value, 1) == 1);
	now = figures();
	OK(mullion_pool_get(pool, MULLION_NEVER, &all[0]));
	EXPECT(figures().replaced == now.replaced + 1 && call_named(all[0], "use", &value, 1) == 0);
	EXPECT(call(held, &value, 1) == 2);
	OK(mullion_function_free(held));

	/* Unloaded: another one takes its place. */
	OK(mullion_domain_unload(all[0]));
	EXPECT(mullion_pool_put(all[0]) == MULLION_BAD_HANDLE);
	OK(mullion_pool_get(pool, MULLION_NEVER, &all[0]));

	/* An upgrade that is refused changes nothing. */
	EXPECT(mullion_pool_upgrade(pool, images[1], NULL, MULLION_NO_IMPORTS, NULL) == MULLION_UNKNOWN_IMPORTS);
	OK(mullion_pool_put(all[2]));
	OK(mullion_pool_get(pool, MULLION_NEVER, &all[2]));
	EXPECT(call_named(all[2], "version", NULL, 0) == 1);
	OK(mullion_pool_put(all[2]));
	OK(mullion_pool_upgrade(pool, images[1], NULL, imports, NULL));
	EXPECT(call_named(all[1], "version", NULL, 0) == 1);
	OK(mullion_pool_put(all[1]));
	OK(mullion_pool_get(pool, MULLION_NEVER, &all[1]));
	EXPECT(call_named(all[1], "version", NULL, 0) == 2);

	/* Domains that are of no pool, and one that outlives its pool. */
	OK(mullion_domain_load(images[0], NULL, imports, NULL, &one));
	EXPECT(mullion_pool_put(one) == MULLION_BAD_ARGUMENT);
	OK(mullion_domain_unload(one));
	EXPECT(mullion_live_new(all[1], &live) == MULLION_BAD_ARGUMENT);
	OK(mullion_pool_free(pool));
	EXPECT(mullion_pool_get(pool, 0, &one) == MULLION_BAD_HANDLE);
	EXPECT(call_named(all[1], "version", NULL, 0) == 2);
	OK(mullion_pool_put(all[1]));
	OK(mullion_pool_put(all[0]));
}

static mullion_function version;
static int stop;

/* No call fails while the domain behind it is replaced. */
static void *ask(void *number)
{
	int64_t last = 0;
	(void)number;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		last = call(version, NULL, 0);
		EXPECT(last == 1 || last == 2);
	}
	EXPECT(call(version, NULL, 0) == 2);
	return NULL;
}

static mullion_domain load(mullion_image image)
{
	mullion_domain domain;
	OK(mullion_domain_load(image, NULL, imports, NULL, &domain));
	return domain;
}

static void replaced(void)
{
	const mullion_type types[] = { MULLION_TYPE_DOUBLE };
	mullion_domain first = load(images[0]), now, wrong;
	mullion_function function, of_first;
	mullion_value value = mullion_integer(1);
	pthread_t threads[THREADS];
	int numbers[THREADS], at;

	OK(mullion_live_new(first, &live));
	OK(mullion_live_domain(live, &now));
	EXPECT(now.number == first.number);
	EXPECT(mullion_live_function(live, "none", MULLION_TYPE_NOTHING, NULL, 0, &version) == MULLION_NO_EXPORT);
	EXPECT(mullion_live_function(live, "use", MULLION_TYPE_INTEGER(int), types, 1, &version) == MULLION_WRONG_TYPE);
	OK(mullion_live_function(live, "version", MULLION_TYPE_INTEGER(int), NULL, 0, &version));
	OK(mullion_function_check(version, MULLION_TYPE_INTEGER(int), NULL, 0));
	OK(mullion_function_find(first, "use", &of_first));
	EXPECT(call(version, NULL, 0) == 1 && call(of_first, &value, 1) == 0);

	on_threads(ask, THREADS, threads, numbers);
	for (at = 1; at <= 40; at++)
		OK(mullion_live_upgrade(live, load(images[at % 2])));
	OK(mullion_live_upgrade(live, load(images[1])));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	join(THREADS, threads);

	/* The first one's handle has gone; what was found by it goes on. */
	EXPECT(mullion_function_find(first, "use", &function) == MULLION_BAD_HANDLE);
	EXPECT(call(of_first, &value, 1) == 1);
	OK(mullion_function_free(of_first));

	/* An image without the function takes no place, and its handle stays the host's. */
	wrong = load(other);
	EXPECT(mullion_live_upgrade(live, wrong) == MULLION_NO_EXPORT);
	EXPECT(call(version, NULL, 0) == 2 && call_named(wrong, "other", NULL, 0) == 1);
	OK(mullion_domain_unload(wrong));

	/* Functions go on without the handle of the place. */
	OK(mullion_live_free(live));
	EXPECT(mullion_live_domain(live, &now) == MULLION_BAD_HANDLE);
	EXPECT(call(version, NULL, 0) == 2);
	OK(mullion_function_free(version));
}

int main(int argc, char **argv)
{
	EXPECT(argc == 4);
	OK(mullion_image_open(argv[1], &images[0]));
	OK(mullion_image_open(argv[2], &images[1]));
	OK(mullion_image_open(argv[3], &other));
	OK(mullion_imports_new(&imports));
	OK(mullion_imports_add(imports, "host_started", started, NULL));
	pools();
	replaced();
	puts("all as the header says");
	return 0;
}
