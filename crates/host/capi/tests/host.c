/* The C interface, function by function, and what a host may do wrong. */
#define _POSIX_C_SOURCE 200809L
#include <mullion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, mullion_error_message()); \
			exit(1); \
		} \
	} while (0)
#define OK(call) EXPECT((call) == MULLION_OK)
#define FAILS(status, call) EXPECT((call) == (status) && mullion_error_message()[0])

static char logged[1 << 16];
static void keep_log(void *user, int level, const char *target, const char *line)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	size_t used;
	pthread_mutex_lock(&lock);
	used = strlen(logged);
	snprintf(logged + used, sizeof logged - used, "%s%d %s %s\n", (const char *)user, level, target, line);
	pthread_mutex_unlock(&lock);
}

/* Locks that are held for calls, and how often any was given back. */
static int locks[2], given_back;
static void give_back(void *lock)
{
	--*(int *)lock;
	given_back++;
}

static void hold(mullion_domain domain)
{
	uint64_t first, second;
	FAILS(MULLION_BAD_ARGUMENT, mullion_hold(domain, NULL, locks, &first));
	FAILS(MULLION_BAD_ARGUMENT, mullion_hold(domain, give_back, locks, NULL));
	OK(mullion_hold(domain, give_back, &locks[0], &first));
	OK(mullion_hold(domain, give_back, &locks[1], &second));
	locks[0]++;
	locks[1]++;
	FAILS(MULLION_BAD_HANDLE, mullion_release(domain, second + 1));
	OK(mullion_release(domain, second));
	FAILS(MULLION_BAD_HANDLE, mullion_release(domain, second));
	EXPECT(locks[0] == 1 && locks[1] == 0);
}

static int reports;
static mullion_domain seen;
static mullion_status report(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	char text[16];
	float single;
	mullion_pointer from = { arguments->integers[0] };
	size_t length;
	EXPECT(user == &reports);
	OK(mullion_read_string(domain, from, text, sizeof text, &length));
	EXPECT(length == strlen(text));
	memcpy(&single, &arguments->reals[1], sizeof single);
	if (!strcmp(text, "begin")) {
		/* In a constructor: memory can be used, the domain itself not yet. */
		int ended;
		mullion_pointer memory;
		EXPECT(arguments->integers[1] == 5 && arguments->reals[0] == 0.5 && single == 0.25f);
		OK(mullion_alloc(domain, 10, &memory));
		OK(mullion_free(domain, memory));
		FAILS(MULLION_NOT_OPEN, mullion_domain_has_ended(domain, &ended));
		/* As it is loaded it is not open; as it is restarted, this thread is in it. */
		int unloaded = mullion_domain_unload(domain);
		EXPECT(unloaded == MULLION_NOT_OPEN || unloaded == MULLION_IN_USE);
	} else {
		EXPECT(arguments->reals[0] == 1.5 && single == 2.5f);
		FAILS(MULLION_IN_USE, mullion_domain_unload(domain));
		FAILS(MULLION_IN_USE, mullion_domain_restart(domain));
	}
	if ((int32_t)arguments->integers[1] == -1)
		return 77;
	if (!strcmp(text, "hold"))
		hold(domain);
	seen = domain;
	reports++;
	*result = mullion_integer(1000 + reports);
	return MULLION_OK;
}

static mullion_status nested(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	mullion_pointer function = { arguments->integers[0] };
	mullion_value value = mullion_integer(arguments->integers[1]);
	mullion_function add;
	mullion_value both[2];
	(void)user;
	*result = mullion_integer(0);
	OK(mullion_call_pointer(domain, function, &value, 1, result));
	OK(mullion_function_find(domain, "add", &add));
	both[0] = *result;
	both[1] = mullion_integer(100);
	OK(mullion_call(add, both, 2, result));
	OK(mullion_function_free(add));
	return MULLION_OK;
}

static mullion_status refuse(void *user, const mullion_candidate *candidate)
{
	EXPECT(candidate->size == sizeof *candidate && candidate->length > 1000);
	EXPECT(!memcmp(candidate->bytes, "\177ELF", 4));
	return strcmp(candidate->name, user) ? MULLION_OK : 1;
}

static mullion_value call(mullion_domain domain, const char *name, const mullion_value *arguments, size_t count, uint32_t kind)
{
	mullion_function function;
	mullion_value result = MULLION_INTEGER_RESULT;
	result.kind = kind;
	OK(mullion_function_find(domain, name, &function));
	OK(mullion_call(function, arguments, count, &result));
	OK(mullion_function_free(function));
	FAILS(MULLION_BAD_HANDLE, mullion_call(function, arguments, count, &result));
	return result;
}

static void values(mullion_domain domain)
{
	mullion_value two[] = { mullion_integer((uint64_t)-7), mullion_integer(3) };
	mullion_value three[] = { mullion_double(1.5), mullion_float(-2.0f), mullion_integer(4) };
	mullion_value seven[9];
	mullion_value one = mullion_float(9);
	mullion_function function;
	int i;
	EXPECT((int)call(domain, "add", two, 2, MULLION_INTEGER).as.integer == -4);
	EXPECT(call(domain, "scale", three, 3, MULLION_DOUBLE).as.real == -12);
	EXPECT(call(domain, "third", &one, 1, MULLION_FLOAT).as.single == 3);
	call(domain, "next", NULL, 0, MULLION_NOTHING);
	OK(mullion_function_find(domain, "add", &function));
	for (i = 0; i < 9; i++)
		seven[i] = mullion_integer(1);
	OK(mullion_call(function, seven, 6, NULL));
	OK(mullion_call(function, seven, 8, NULL));
	FAILS(MULLION_BAD_ARGUMENT, mullion_call(function, seven, 9, NULL));
	FAILS(MULLION_BAD_ARGUMENT, mullion_call(function, NULL, 1, NULL));
	seven[0].kind = MULLION_NOTHING;
	FAILS(MULLION_BAD_ARGUMENT, mullion_call(function, seven, 1, NULL));
	seven[0].kind = 99;
	FAILS(MULLION_BAD_ARGUMENT, mullion_call(function, seven + 1, 1, seven));
	OK(mullion_function_free(function));
}

/* What the host means to pass, against the extension's debug information. */
static void types(mullion_domain domain)
{
	const mullion_type two[] = { MULLION_TYPE_INTEGER(int), MULLION_TYPE_INTEGER(int) };
	const mullion_type three[] = { MULLION_TYPE_DOUBLE, MULLION_TYPE_FLOAT, MULLION_TYPE_INTEGER(int) };
	const mullion_type list[] = { MULLION_TYPE_POINTER, MULLION_TYPE_INTEGER(uint64_t) };
	const mullion_type none[] = { MULLION_TYPE_NOTHING, 3 };
	mullion_function add, scale, total, next;
	OK(mullion_function_find(domain, "add", &add));
	OK(mullion_function_find(domain, "scale", &scale));
	OK(mullion_function_find(domain, "total", &total));
	OK(mullion_function_find(domain, "next", &next));
	OK(mullion_function_check(add, MULLION_TYPE_INTEGER(int), two, 2));
	OK(mullion_function_check(add, MULLION_TYPE_NOTHING, two, 2));
	OK(mullion_function_check(scale, MULLION_TYPE_DOUBLE, three, 3));
	OK(mullion_function_check(total, MULLION_TYPE_INTEGER(int64_t), list, 2));
	OK(mullion_function_check(next, MULLION_TYPE_INTEGER(int), NULL, 0));
	FAILS(MULLION_WRONG_TYPE, mullion_function_check(add, MULLION_TYPE_INTEGER(int), two, 1));
	FAILS(MULLION_WRONG_TYPE, mullion_function_check(add, MULLION_TYPE_INTEGER(long), two, 2));
	FAILS(MULLION_WRONG_TYPE, mullion_function_check(total, MULLION_TYPE_INTEGER(int64_t), two, 2));
	FAILS(MULLION_WRONG_TYPE, mullion_function_check(scale, MULLION_TYPE_FLOAT, three, 3));
	EXPECT(strstr(mullion_error_message(), "double (double, float, int)"));
	EXPECT(strstr(mullion_error_message(), "float(double, float, int32_t)"));
	FAILS(MULLION_BAD_ARGUMENT, mullion_function_check(add, MULLION_TYPE_INTEGER(int), none, 1));
	FAILS(MULLION_BAD_ARGUMENT, mullion_function_check(add, MULLION_TYPE_INTEGER(int), none + 1, 1));
	FAILS(MULLION_BAD_ARGUMENT, mullion_function_check(add, 3, two, 2));
	FAILS(MULLION_BAD_ARGUMENT, mullion_function_check(add, 8, NULL, 1));
	FAILS(MULLION_BAD_ARGUMENT, mullion_function_check(add, 8, two, 9));
	OK(mullion_function_free(add));
	FAILS(MULLION_BAD_HANDLE, mullion_function_check(add, MULLION_TYPE_INTEGER(int), two, 2));
	OK(mullion_function_free(scale));
	OK(mullion_function_free(total));
	OK(mullion_function_free(next));
}

static void memory(mullion_domain domain)
{
	int64_t list[] = { 1, -2, 300 };
	char text[32];
	mullion_pointer place, other, wild = { 8 }, host = { (uint64_t)(uintptr_t)list };
	mullion_value arguments[2];
	size_t length = 99;
	OK(mullion_copy_in(domain, list, sizeof list, &place));
	arguments[0] = mullion_address(place);
	arguments[1] = mullion_integer(3);
	EXPECT((int64_t)call(domain, "total", arguments, 2, MULLION_INTEGER).as.integer == 299);
	OK(mullion_write(domain, place, &list[2], sizeof list[2]));
	OK(mullion_read(domain, place, list, sizeof list));
	EXPECT(list[0] == 300 && list[1] == -2);
	OK(mullion_free(domain, place));
	FAILS(MULLION_BAD_ADDRESS, mullion_free(domain, place));
	FAILS(MULLION_BAD_ADDRESS, mullion_free(domain, wild));
	place.address = 0;
	OK(mullion_free(domain, place));

	OK(mullion_string_in(domain, "shout", &other));
	arguments[0] = mullion_address(other);
	call(domain, "upper", arguments, 1, MULLION_NOTHING);
	OK(mullion_read_string(domain, other, text, sizeof text, &length));
	EXPECT(!strcmp(text, "SHOUT") && length == 5);
	OK(mullion_read_string(domain, other, text, 6, NULL));
	FAILS(MULLION_LONG_STRING, mullion_read_string(domain, other, text, 5, NULL));
	OK(mullion_free(domain, other));

	other = mullion_as_pointer(call(domain, "name", NULL, 0, MULLION_INTEGER));
	OK(mullion_read_string(domain, other, text, sizeof text, NULL));
	EXPECT(!strcmp(text, "everything"));
	FAILS(MULLION_BAD_ADDRESS, mullion_write(domain, other, "x", 1));
	FAILS(MULLION_BAD_ADDRESS, mullion_read(domain, wild, text, 1));
	FAILS(MULLION_BAD_ADDRESS, mullion_read(domain, host, text, 1));
	FAILS(MULLION_BAD_ADDRESS, mullion_write(domain, host, text, 1));
	FAILS(MULLION_BAD_ADDRESS, mullion_read_string(domain, host, text, sizeof text, NULL));
	FAILS(MULLION_BAD_ARGUMENT, mullion_read(domain, other, NULL, 1));
	FAILS(MULLION_BAD_ARGUMENT, mullion_read(domain, other, text, SIZE_MAX));
	FAILS(MULLION_NO_MEMORY, mullion_alloc(domain, UINT64_MAX, &place));
	FAILS(MULLION_NOT_A_FUNCTION, mullion_call_pointer(domain, other, NULL, 0, NULL));
}

/* What a call holds is given back when it returns, and when it faults. */
static void held(mullion_domain domain)
{
	mullion_function function;
	mullion_pointer place;
	mullion_value argument;
	uint64_t number;
	OK(mullion_function_find(domain, "hold_and_write", &function));
	OK(mullion_alloc(domain, 4, &place));
	argument = mullion_address(place);
	OK(mullion_call(function, &argument, 1, NULL));
	EXPECT(locks[0] == 0 && given_back == 2);
	argument = mullion_integer(8);
	FAILS(MULLION_FAULT, mullion_call(function, &argument, 1, NULL));
	EXPECT(locks[0] == 0 && locks[1] == 0 && given_back == 4);
	FAILS(MULLION_BAD_ARGUMENT, mullion_hold(domain, give_back, locks, &number));
	FAILS(MULLION_BAD_ARGUMENT, mullion_release(domain, 1));
	EXPECT(given_back == 4);
	OK(mullion_function_free(function));
	OK(mullion_domain_restart(domain));
}

static void faults(mullion_domain domain)
{
	mullion_function crash, next;
	mullion_value place = mullion_integer(0x18), result = MULLION_INTEGER_RESULT;
	mullion_fault fault;
	int ended = 9;
	memset(&fault, 0, sizeof fault);
	OK(mullion_function_find(domain, "crash", &crash));
	OK(mullion_function_find(domain, "next", &next));
	OK(mullion_call(next, NULL, 0, &result));
	EXPECT(result.as.integer != 6);
	FAILS(MULLION_FAULT, mullion_call(crash, &place, 1, NULL));
	FAILS(MULLION_BAD_ARGUMENT, mullion_last_fault(&fault));
	FAILS(MULLION_ENDED, mullion_call(next, NULL, 0, NULL));
	OK(mullion_domain_has_ended(domain, &ended));
	EXPECT(ended == 1);
	OK(mullion_domain_restart(domain));
	OK(mullion_domain_has_ended(domain, &ended));
	EXPECT(ended == 0);
	OK(mullion_call(next, NULL, 0, &result));
	EXPECT(result.as.integer == 6);

	FAILS(MULLION_FAULT, mullion_call(crash, &place, 1, NULL));
	fault.size = sizeof fault;
	OK(mullion_last_fault(&fault));
	EXPECT(fault.cause == MULLION_CAUSE_WRITE && (fault.address & 0xffffffff) == 0x18);
	EXPECT(!strcmp(fault.domain, "tested") && !strcmp(fault.symbol, "crash"));
	EXPECT(strstr(fault.file, "extension.c") && fault.line > 10);
	EXPECT(strstr(fault.backtrace, "crash (") && strstr(fault.message, "write to memory"));
	FAILS(MULLION_BAD_HANDLE, mullion_image_free((mullion_image){ 12345 }));
	FAILS(MULLION_BAD_ARGUMENT, mullion_last_fault(&fault));
	OK(mullion_domain_restart(domain));
	OK(mullion_function_free(crash));
	OK(mullion_function_free(next));
}

static void handles(mullion_image image, mullion_domain domain)
{
	mullion_domain other, freed;
	mullion_imports imports = { domain.number };
	mullion_function function = { image.number };
	uint64_t bits;
	int ended;
	FAILS(MULLION_BAD_HANDLE, mullion_imports_free(imports));
	FAILS(MULLION_BAD_HANDLE, mullion_call(function, NULL, 0, NULL));
	FAILS(MULLION_BAD_HANDLE, mullion_domain_restart((mullion_domain){ 0 }));
	FAILS(MULLION_BAD_HANDLE, mullion_domain_restart((mullion_domain){ image.number }));
	FAILS(MULLION_BAD_ARGUMENT, mullion_image_open(NULL, &image));
	FAILS(MULLION_BAD_ARGUMENT, mullion_image_open("x", NULL));
	for (bits = 1; bits < 1u << 20; bits = bits * 3 + 1) {
		FAILS(MULLION_BAD_HANDLE, mullion_domain_has_ended((mullion_domain){ domain.number ^ bits << 33 }, &ended));
		FAILS(MULLION_BAD_HANDLE, mullion_domain_has_ended((mullion_domain){ domain.number + (bits << 8) }, &ended));
	}
	OK(mullion_imports_new(&imports));
	FAILS(MULLION_UNKNOWN_IMPORTS, mullion_domain_load(image, NULL, imports, NULL, &other));
	OK(mullion_imports_add(imports, "host_report", report, &reports));
	OK(mullion_imports_add(imports, "host_nested", nested, NULL));
	FAILS(MULLION_BAD_ARGUMENT, mullion_imports_add(imports, "nothing", NULL, NULL));
	OK(mullion_domain_load(image, NULL, imports, NULL, &other));
	OK(mullion_imports_free(imports));
	FAILS(MULLION_BAD_HANDLE, mullion_imports_add(imports, "late", report, NULL));
	freed = other;
	OK(mullion_function_find(other, "add", &function));
	OK(mullion_domain_unload(other));
	FAILS(MULLION_UNLOADED, mullion_call(function, NULL, 0, NULL));
	OK(mullion_function_free(function));
	FAILS(MULLION_UNKNOWN_IMPORTS, mullion_domain_load(image, NULL, MULLION_NO_IMPORTS, NULL, &other));
	FAILS(MULLION_BAD_HANDLE, mullion_domain_unload(freed));
}

static int owned, released;
static void release(void *user)
{
	EXPECT(user == &owned);
	released++;
}

static mullion_status use_owned(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	(void)domain;
	(void)arguments;
	EXPECT(user == &owned && !released);
	owned++;
	*result = mullion_integer(0);
	return MULLION_OK;
}

/* What was handed over is released when the list and its domains have gone. */
static void handed_over(mullion_image image)
{
	mullion_imports imports;
	mullion_domain one, two;
	OK(mullion_imports_new(&imports));
	FAILS(MULLION_BAD_ARGUMENT, mullion_imports_add_owned(imports, "host_report", use_owned, &owned, NULL));
	FAILS(MULLION_BAD_ARGUMENT, mullion_imports_add_owned(imports, "host_report", NULL, &owned, release));
	FAILS(MULLION_BAD_HANDLE, mullion_imports_add_owned(mullion_no_imports(), "x", use_owned, &owned, release));
	EXPECT(released == 0);
	OK(mullion_imports_add_owned(imports, "host_report", use_owned, &owned, release));
	OK(mullion_imports_add(imports, "host_nested", nested, NULL));
	OK(mullion_domain_load(image, NULL, imports, NULL, &one));
	OK(mullion_domain_load(image, NULL, imports, NULL, &two));
	OK(mullion_imports_free(imports));
	OK(mullion_domain_unload(one));
	EXPECT(released == 0);
	OK(mullion_domain_restart(two));
	EXPECT(owned == 3);
	OK(mullion_domain_unload(two));
	EXPECT(released == 1);
	/* Replaced before any domain had it. */
	OK(mullion_imports_new(&imports));
	OK(mullion_imports_add_owned(imports, "host_report", use_owned, &owned, release));
	OK(mullion_imports_add(imports, "host_report", report, &reports));
	EXPECT(released == 2);
	OK(mullion_imports_free(imports));
	EXPECT(released == 2);
}

/* Memory from before a restart is not taken for what is there now. */
static void before_a_restart(mullion_domain domain)
{
	mullion_pointer old, new, next;
	uint64_t before, after, base;
	/* The first memory of each life is in the same place. */
	OK(mullion_domain_restart(domain));
	OK(mullion_domain_restarts(domain, &before));
	OK(mullion_alloc(domain, 16, &old));
	OK(mullion_domain_base(domain, &base));
	EXPECT(base && base == old.address >> 32 << 32);
	FAILS(MULLION_BAD_ARGUMENT, mullion_domain_base(domain, NULL));
	OK(mullion_domain_restart(domain));
	OK(mullion_domain_restarts(domain, &after));
	EXPECT(after == before + 1);
	FAILS(MULLION_BAD_ADDRESS, mullion_free(domain, old));
	OK(mullion_alloc(domain, 16, &new));
	EXPECT(new.address == old.address);
	FAILS(MULLION_BAD_ADDRESS, mullion_free_since(domain, old, before));
	OK(mullion_alloc(domain, 16, &next));
	EXPECT(next.address != new.address);
	OK(mullion_free_since(domain, new, after));
	FAILS(MULLION_BAD_ADDRESS, mullion_free_since(domain, new, after));
	OK(mullion_free(domain, next));
	next.address = 0;
	OK(mullion_free_since(domain, next, before));
	FAILS(MULLION_BAD_ARGUMENT, mullion_domain_restarts(domain, NULL));
}

/* The map of names for perf; crates/host/mullion/tests/profile.rs has the real one read it. */
static void profile(const char *path, mullion_imports imports)
{
	static char text[1 << 20];
	char map[64];
	mullion_image image;
	mullion_domain domain;
	mullion_value numbers[] = { mullion_integer(2), mullion_integer(3) };
	FILE *file;
	OK(mullion_enable_perf_map());
	OK(mullion_image_open(path, &image));
	OK(mullion_domain_load(image, "a profile", imports, NULL, &domain));
	EXPECT(call(domain, "add", numbers, 2, MULLION_INTEGER).as.integer == 5);
	snprintf(map, sizeof map, "/tmp/perf-%ld.map", (long)getpid());
	file = fopen(map, "r");
	EXPECT(file && fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	EXPECT(strstr(text, " add [a profile]\n") && !remove(map));
	OK(mullion_domain_unload(domain));
	OK(mullion_image_free(image));
}

static void *elsewhere(void *argument)
{
	mullion_function add = { *(uint64_t *)argument };
	mullion_value two[] = { mullion_integer(20), mullion_integer(22) }, result = MULLION_INTEGER_RESULT;
	int round;
	EXPECT(!mullion_error_message()[0]);
	for (round = 0; round < 1000; round++) {
		OK(mullion_call(add, two, 2, &result));
		EXPECT(result.as.integer == 42);
	}
	return NULL;
}

/* Calls that go on by themselves: waited for, cancelled, closed. */
static void started(mullion_domain domain)
{
	mullion_value two[] = { mullion_integer(2), mullion_integer(3) };
	mullion_value sum = MULLION_INTEGER_RESULT;
	mullion_call_limits limits = MULLION_CALL_LIMITS_DEFAULT;
	mullion_function add, spin;
	mullion_call_handle call, nothing = { 0 };
	mullion_fault fault;
	mullion_status status;
	int i;

	OK(mullion_function_find(domain, "add", &add));
	OK(mullion_function_find(domain, "spin", &spin));
	OK(mullion_call_start(add, two, 2, NULL, &call));
	OK(mullion_call_wait(call, MULLION_NEVER, &sum));
	EXPECT(sum.as.integer == 5);
	FAILS(MULLION_BAD_ARGUMENT, mullion_call_wait(call, MULLION_NEVER, &sum));
	OK(mullion_call_close(call));
	FAILS(MULLION_BAD_HANDLE, mullion_call_close(call));
	FAILS(MULLION_BAD_HANDLE, mullion_call_wait(nothing, 0, NULL));
	FAILS(MULLION_BAD_HANDLE, mullion_call_cancel(nothing));
	FAILS(MULLION_BAD_ARGUMENT, mullion_call_start(add, two, 2, NULL, NULL));
	for (i = 0; i < 10; i++) {
		OK(mullion_call_start(spin, NULL, 0, NULL, &call));
		FAILS(MULLION_TIMED_OUT, mullion_call_wait(call, 1000 * 1000 * i, NULL));
		OK(mullion_call_cancel(call));
		OK(mullion_call_cancel(call));
		FAILS(MULLION_CANCELLED, mullion_call_wait(call, MULLION_NEVER, NULL));
		/* With a fault, if it had entered the domain. */
		fault.size = sizeof fault;
		status = mullion_last_fault(&fault);
		EXPECT(status == MULLION_BAD_ARGUMENT || fault.cause == MULLION_CAUSE_CANCELLED);
		OK(mullion_call_close(call));
		OK(mullion_domain_restart_when_idle(domain, MULLION_NEVER));
		OK(mullion_call_start(spin, NULL, 0, NULL, &call));
		OK(mullion_call_close(call));
		OK(mullion_domain_restart_when_idle(domain, MULLION_NEVER));
	}
	limits.nanoseconds = 20 * 1000 * 1000;
	OK(mullion_call_start(spin, NULL, 0, &limits, &call));
	FAILS(MULLION_FAULT, mullion_call_wait(call, MULLION_NEVER, NULL));
	OK(mullion_call_close(call));
	OK(mullion_domain_restart_when_idle(domain, MULLION_NEVER));
	OK(mullion_function_free(add));
	OK(mullion_function_free(spin));
}

static void find(void *user, const char *text, size_t length)
{
	EXPECT(strlen(text) == length);
	*(int *)user = strstr(text, "kind=\"time_limit\"} 1\n") != NULL;
}

/* Of a domain that was refused memory, and then spun until its time was up. */
static void figures(mullion_domain domain)
{
	mullion_metrics metrics = MULLION_METRICS_DEFAULT;
	uint64_t count = 7;
	int found = 0;
	OK(mullion_domain_metrics(domain, &metrics));
	EXPECT(metrics.calls >= 2 && metrics.faults == 1 && metrics.restarts == 0);
	EXPECT(metrics.limit_hits == 2 && metrics.memory_limit == 1 << 20);
	EXPECT(metrics.memory > 0 && metrics.memory <= metrics.memory_highest);
	EXPECT(metrics.nanoseconds >= 50 * 1000 * 1000 && metrics.nanoseconds != MULLION_NOT_MEASURED);
	OK(mullion_domain_faults_of(domain, "time_limit", &count));
	EXPECT(count == 1);
	OK(mullion_domain_limit_hits_of(domain, "memory", &count));
	EXPECT(count == 1);
	FAILS(MULLION_BAD_ARGUMENT, mullion_domain_faults_of(domain, "bad luck", &count));
	OK(mullion_prometheus_text(find, &found));
	EXPECT(found);
	FAILS(MULLION_CANNOT_WRITE, mullion_prometheus("/does/not/exist"));
	metrics.size = 16;
	FAILS(MULLION_BAD_ARGUMENT, mullion_domain_metrics(domain, &metrics));
}

int main(int count, char **words)
{
	mullion_image image, other;
	mullion_imports imports;
	mullion_domain domain, limited;
	mullion_function function;
	mullion_limits limits = MULLION_LIMITS_DEFAULT;
	mullion_value number = mullion_integer(1), result;
	mullion_pointer text;
	pthread_t threads[4];
	uint64_t bytes;
	int i;

	EXPECT(count == 2 && mullion_version()[0] && !mullion_error_message()[0]);
	EXPECT(!strcmp(mullion_status_name(MULLION_FAULT), "MULLION_FAULT"));
	EXPECT(!strcmp(mullion_status_name(-5), "unknown status"));
	OK(mullion_set_log(keep_log, "> ", MULLION_LOG_INFO));
	FAILS(MULLION_IN_USE, mullion_set_log(keep_log, "> ", MULLION_LOG_INFO));

	FAILS(MULLION_CANNOT_OPEN, mullion_image_open("/nonexistent", &image));
	EXPECT(strstr(mullion_error_message(), "/nonexistent: No such file"));
	FAILS(MULLION_REJECTED, mullion_image_from_memory("junk", "junk", 4, &image));
	OK(mullion_image_open(words[1], &image));

	OK(mullion_imports_new(&imports));
	OK(mullion_imports_add(imports, "host_report", report, &reports));
	OK(mullion_imports_add(imports, "host_nested", nested, NULL));
	OK(mullion_domain_load(image, "tested", imports, NULL, &domain));
	EXPECT(reports == 1 && seen.number == domain.number);
	EXPECT(call(domain, "at_start", NULL, 0, MULLION_INTEGER).as.integer == 1001);
	FAILS(MULLION_NO_EXPORT, mullion_function_find(domain, "nothing", &function));

	values(domain);
	types(domain);
	memory(domain);

	result = call(domain, "report", &number, 1, MULLION_INTEGER);
	EXPECT(result.as.integer == 1002);
	number = mullion_integer((uint64_t)-1);
	OK(mullion_function_find(domain, "report", &function));
	FAILS(MULLION_REFUSED, mullion_call(function, &number, 1, NULL));
	EXPECT(mullion_refusal() == 77);
	OK(mullion_function_free(function));
	number = mullion_integer(21);
	EXPECT(call(domain, "nest", &number, 1, MULLION_INTEGER).as.integer == 2 * 21 + 100 + 1);

	faults(domain);
	EXPECT(strstr(logged, "> 3 mullion::domain tested: restarted"));
	EXPECT(strstr(logged, "> 1 mullion::fault tested: write to memory"));
	EXPECT(strstr(logged, "> 3 mullion::fault tested:   at 0x") && strstr(logged, " crash ("));
	EXPECT(strstr(logged, "> 2 mullion::host no policy"));
	held(domain);
	OK(mullion_string_in(domain, "hello, log", &text));
	number = mullion_address(text);
	call(domain, "say", &number, 1, MULLION_NOTHING);
	EXPECT(strstr(logged, "> 3 mullion::output tested: hello, log"));

	handles(image, domain);
	handed_over(image);
	before_a_restart(domain);
	started(domain);

	limits.nanoseconds = 50 * 1000 * 1000;
	limits.memory = 1 << 20;
	limits.measured = MULLION_CLOCK_WALL;
	OK(mullion_domain_load(image, NULL, imports, &limits, &limited));
	OK(mullion_domain_memory(limited, &bytes));
	EXPECT(bytes > 0 && bytes <= 1 << 20);
	FAILS(MULLION_NO_MEMORY, mullion_alloc(limited, 1 << 20, &text));
	OK(mullion_function_find(limited, "spin", &function));
	FAILS(MULLION_FAULT, mullion_call(function, NULL, 0, NULL));
	OK(mullion_function_free(function));
	figures(limited);
	OK(mullion_domain_unload(limited));
	limits.measured = 3;
	FAILS(MULLION_BAD_ARGUMENT, mullion_domain_load(image, NULL, imports, &limits, &limited));
	limits.size = 8;
	FAILS(MULLION_BAD_ARGUMENT, mullion_domain_load(image, NULL, imports, &limits, &limited));

	OK(mullion_prepare_thread());
	OK(mullion_set_policy(refuse, (void *)"evil"));
	OK(mullion_image_open(words[1], &other));
	OK(mullion_image_prepare(other, 2));
	OK(mullion_image_free(other));
	FAILS(MULLION_BAD_HANDLE, mullion_image_free(other));
	FAILS(MULLION_BAD_HANDLE, mullion_image_prepare(other, 2));
	{
		static char content[1 << 20];
		FILE *file = fopen(words[1], "rb");
		size_t length = file ? fread(content, 1, sizeof content, file) : 0;
		EXPECT(file && length > 1000);
		fclose(file);
		OK(mullion_image_from_memory("good", content, length, &other));
		FAILS(MULLION_NOT_PERMITTED, mullion_image_from_memory("evil", content, length, &other));
	}
	OK(mullion_set_policy(NULL, NULL));

	OK(mullion_function_find(domain, "add", &function));
	for (i = 0; i < 4; i++)
		EXPECT(!pthread_create(&threads[i], NULL, elsewhere, &function.number));
	for (i = 0; i < 4; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	OK(mullion_function_free(function));
	OK(mullion_image_free(image));
	OK(mullion_domain_unload(domain));
	FAILS(MULLION_BAD_HANDLE, mullion_domain_unload(domain));
	profile(words[1], imports);
	OK(mullion_imports_free(imports));
	puts("all as the header says");
	return 0;
}
