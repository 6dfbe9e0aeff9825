/* Links, shared memory, policy, limits and credentials in C, and what a host may do wrong there. */
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
#define FAILS(status, call) EXPECT((call) == (status) && mullion_error_message()[0])
#define PAGE 4096

static const char *path;
static mullion_image image;
static mullion_domain last_caller;

static mullion_status who(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	(void)user;
	(void)arguments;
	OK(mullion_called_by(domain, &last_caller));
	*result = mullion_integer(5);
	return MULLION_OK;
}

static mullion_status eight(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	uint64_t value, sum = 0;
	uint32_t i;
	(void)user;
	for (i = 0; i < 8; i++) {
		OK(mullion_argument(domain, i, &value));
		EXPECT(i >= 6 || value == arguments->integers[i]);
		sum += (i + 1) * (i == 6 ? (uint64_t)(int8_t)value : i == 7 ? value : (uint64_t)(int32_t)value);
	}
	*result = mullion_integer(sum);
	return MULLION_OK;
}

static mullion_status speak(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	(void)user;
	(void)arguments;
	(void)result;
	return mullion_charge_output(domain, 40);
}

static mullion_imports imports(mullion_host_function for_eight)
{
	mullion_imports list;
	OK(mullion_imports_new(&list));
	OK(mullion_imports_link_later(list, "other"));
	OK(mullion_imports_link_later(list, "other_real"));
	OK(mullion_imports_add(list, "host_who", who, NULL));
	OK(mullion_imports_add(list, "host_eight", for_eight, NULL));
	return list;
}

static mullion_domain load(const char *name, const mullion_limits *limits, mullion_host_function for_eight)
{
	mullion_imports list = imports(for_eight);
	mullion_domain domain;
	OK(mullion_domain_load(image, name, list, limits, &domain));
	OK(mullion_imports_free(list));
	return domain;
}

static mullion_function find(mullion_domain domain, const char *name)
{
	mullion_function function;
	OK(mullion_function_find(domain, name, &function));
	return function;
}

static mullion_status call(mullion_domain domain, const char *name, uint64_t argument, uint64_t *result)
{
	mullion_function function = find(domain, name);
	mullion_value value = mullion_integer(argument), returned = MULLION_INTEGER_RESULT;
	mullion_status status = mullion_call(function, &value, 1, &returned);
	if (result)
		*result = returned.as.integer;
	OK(mullion_function_free(function));
	return status;
}

static void see(void *user, const mullion_link_info *link)
{
	mullion_link_info *seen = user;
	EXPECT(link->size == sizeof *link && !strcmp(link->import, "other"));
	EXPECT(!seen->calls);
	*seen = *link;
	EXPECT(!strcmp(link->export_name, "who"));
}

static void links(void)
{
	mullion_domain one = load("one", NULL, eight), two = load("two", NULL, eight), other;
	mullion_function ask = find(two, "who"), weigh = find(two, "weigh"), scale = find(two, "scale");
	mullion_link_options options = MULLION_LINK_DEFAULT;
	mullion_link_info seen;
	mullion_imports list;
	mullion_fault fault;
	mullion_value real = mullion_double(1.5), result = MULLION_DOUBLE_RESULT, failed = mullion_integer(77);
	uint64_t number;

	OK(call(one, "call_host", (uint64_t)-3, &number));
	EXPECT((int64_t)number == 91 - 49 - 24);
	FAILS(MULLION_REFUSED, call(one, "call_other", 1, NULL));
	OK(mullion_link(MULLION_THE_HOST, one, "other", ask, NULL));
	FAILS(MULLION_LINKED, mullion_link(MULLION_THE_HOST, one, "other", ask, NULL));
	FAILS(MULLION_NO_IMPORT, mullion_link(MULLION_THE_HOST, one, "nothing", ask, NULL));
	FAILS(MULLION_BAD_ARGUMENT, mullion_link(MULLION_THE_HOST, one, NULL, ask, NULL));
	FAILS(MULLION_BAD_HANDLE, mullion_link(MULLION_THE_HOST, one, "other", (mullion_function){ one.number }, NULL));
	FAILS(MULLION_BAD_HANDLE, mullion_link((mullion_domain){ 99 }, one, "other_real", ask, NULL));
	FAILS(MULLION_NOT_ALLOWED, mullion_link(one, one, "other_real", ask, NULL));
	options.size--;
	FAILS(MULLION_BAD_ARGUMENT, mullion_link(MULLION_THE_HOST, one, "other_real", ask, &options));
	options.size++;
	OK(call(one, "call_other", 1, &number));
	EXPECT(number == 5 && last_caller.number == one.number);
	OK(call(two, "who", 1, &number));
	EXPECT(number == 5 && last_caller.number == 0);
	FAILS(MULLION_BAD_ARGUMENT, mullion_called_by(one, &other));
	FAILS(MULLION_BAD_ARGUMENT, mullion_argument(one, 0, &number));
	FAILS(MULLION_BAD_ARGUMENT, mullion_charge_output(one, 1));
	memset(&seen, 0, sizeof seen);
	OK(mullion_links(one, see, &seen));
	EXPECT(seen.callee.number == two.number && seen.calls == 1);
	FAILS(MULLION_BAD_ARGUMENT, mullion_links(one, NULL, NULL));

	/* In the list, with eight integers, and with floating point. */
	OK(mullion_imports_new(&list));
	OK(mullion_imports_add(list, "host_who", who, NULL));
	OK(mullion_imports_add(list, "host_eight", eight, NULL));
	options.integers = 8;
	options.reals = 0;
	OK(mullion_imports_link(list, "other", weigh, &options));
	OK(mullion_imports_link(list, "other_real", scale, NULL));
	OK(mullion_domain_load(image, "three", list, NULL, &other));
	OK(call(other, "call_other", 100, &number));
	EXPECT(number == 91 - 49 + 800);
	OK(mullion_domain_restart(other));
	OK(mullion_domain_restart(two));
	{
		mullion_function call_real = find(other, "call_real");
		OK(mullion_call(call_real, &real, 1, &result));
		EXPECT(result.as.real == 4.5);
		OK(mullion_function_free(call_real));
	}
	OK(mullion_domain_unload(other));

	/* A fault behind a link: named, or a value. */
	{
		mullion_function crash = find(two, "crash");
		OK(mullion_imports_link(list, "other", crash, NULL));
		OK(mullion_domain_load(image, "innocent", list, NULL, &other));
		FAILS(MULLION_CALLEE, call(other, "call_other", 1, NULL));
		fault.size = sizeof fault;
		FAILS(MULLION_CALLEE, call(other, "call_other", 1, NULL));
		FAILS(MULLION_BAD_ARGUMENT, mullion_last_fault(&fault));
		OK(mullion_domain_restart(two));
		FAILS(MULLION_CALLEE, call(other, "call_other", 1, NULL));
		OK(mullion_last_fault(&fault));
		EXPECT(!strcmp(fault.domain, "two") && !strcmp(fault.symbol, "crash"));
		OK(mullion_domain_unload(other));
		options.failed = &failed;
		OK(mullion_imports_link(list, "other", crash, &options));
		OK(mullion_domain_load(image, "careful", list, NULL, &other));
		OK(call(other, "call_other", 1, &number));
		EXPECT(number == 77);
		OK(mullion_function_free(crash));
	}
	OK(mullion_domain_unload(two));
	OK(call(other, "call_other", 1, &number));
	EXPECT(number == 77);
	FAILS(MULLION_UNLOADED, mullion_link(MULLION_THE_HOST, one, "other_real", scale, NULL));
	memset(&seen, 0, sizeof seen);
	OK(mullion_domain_unload(other));
	OK(mullion_imports_free(list));
	OK(mullion_function_free(ask));
	OK(mullion_function_free(weigh));
	OK(mullion_function_free(scale));
	OK(mullion_domain_unload(one));
}

static mullion_status put(mullion_domain domain, mullion_pointer place, uint32_t value)
{
	mullion_function function = find(domain, "put");
	mullion_value both[] = { mullion_address(place), mullion_integer(value) };
	mullion_status status = mullion_call(function, both, 2, NULL);
	OK(mullion_function_free(function));
	return status;
}

static void pages(void)
{
	mullion_domain one = load("one", NULL, eight), two = load("two", NULL, eight);
	mullion_shared shared, none = { one.number };
	mullion_pointer place;
	uint64_t length, number;
	void *bytes;

	OK(mullion_shared_new("pages", PAGE + 1, &shared));
	OK(mullion_shared_bytes(shared, &bytes, &length));
	EXPECT(length == 2 * PAGE);
	OK(mullion_grant(shared, MULLION_THE_HOST, one, 0, PAGE, MULLION_READ_WRITE));
	OK(mullion_grant(shared, MULLION_THE_HOST, two, 0, PAGE, MULLION_READ));
	OK(mullion_shared_pointer(shared, one, 16, &place));
	OK(put(one, place, 1234));
	EXPECT(((volatile uint32_t *)bytes)[4] == 1234);
	((volatile uint32_t *)bytes)[4] = 4321;
	/* The pointer of the one works in the other. */
	OK(call(two, "get", place.address, &number));
	EXPECT(number == 4321);
	FAILS(MULLION_FAULT, put(two, place, 1));
	OK(mullion_domain_restart(two));
	FAILS(MULLION_FAULT, call(two, "get", place.address, NULL));
	OK(mullion_grant(shared, MULLION_THE_HOST, one, 0, PAGE, MULLION_NONE));
	FAILS(MULLION_FAULT, put(one, place, 1));
	OK(mullion_domain_restart(one));

	FAILS(MULLION_NOT_SHARED, mullion_grant(shared, MULLION_THE_HOST, one, 1, PAGE, MULLION_READ));
	FAILS(MULLION_NOT_SHARED, mullion_grant(shared, MULLION_THE_HOST, one, 0, 3 * PAGE, MULLION_READ));
	FAILS(MULLION_NOT_SHARED, mullion_grant(shared, MULLION_THE_HOST, one, PAGE, UINT64_MAX, MULLION_READ));
	FAILS(MULLION_BAD_ARGUMENT, mullion_grant(shared, MULLION_THE_HOST, one, 0, PAGE, 3));
	FAILS(MULLION_NOT_ALLOWED, mullion_grant(shared, one, one, 0, PAGE, MULLION_READ));
	FAILS(MULLION_BAD_HANDLE, mullion_grant(none, MULLION_THE_HOST, one, 0, PAGE, MULLION_READ));
	FAILS(MULLION_BAD_HANDLE, mullion_shared_free(none));
	FAILS(MULLION_SYSTEM, mullion_shared_new("far too long", UINT64_MAX / 2, &none));
	OK(mullion_grant(shared, MULLION_THE_HOST, one, PAGE, PAGE, MULLION_READ));
	OK(mullion_shared_free(shared));
	FAILS(MULLION_BAD_HANDLE, mullion_shared_free(shared));
	/* The domain keeps what it has. */
	OK(call(one, "get", place.address + PAGE, &number));
	EXPECT(number == 0);
	OK(mullion_domain_unload(one));
	OK(mullion_domain_unload(two));
}

static unsigned asked;
static mullion_domain allowed;
static mullion_status decide(void *user, const mullion_question *question)
{
	EXPECT(user == &asked && question->size == sizeof *question);
	asked++;
	if (question->kind == MULLION_QUESTION_LINK) {
		EXPECT(!strcmp(question->name, "who") && question->callee.number && question->domain.number);
		return question->asker.number == allowed.number ? MULLION_OK : 1;
	}
	EXPECT(question->kind == MULLION_QUESTION_PAGES && !strcmp(question->name, "asked"));
	return question->permission == MULLION_READ && question->offset == 0 && question->length == PAGE ? MULLION_OK : 1;
}

static void policy(void)
{
	mullion_image own;
	mullion_image before = image;
	mullion_domain one, two;
	mullion_function ask;
	mullion_shared shared;
	OK(mullion_set_access_policy(decide, &asked));
	OK(mullion_image_open(path, &own));
	OK(mullion_shared_new("asked", 2 * PAGE, &shared));
	image = own;
	one = load("one", NULL, eight);
	two = load("two", NULL, eight);
	ask = find(two, "who");
	allowed = one;
	FAILS(MULLION_NOT_ALLOWED, mullion_link(MULLION_THE_HOST, one, "other", ask, NULL));
	FAILS(MULLION_NOT_ALLOWED, mullion_link(two, one, "other", ask, NULL));
	OK(mullion_link(one, one, "other", ask, NULL));
	FAILS(MULLION_NOT_ALLOWED, mullion_grant(shared, one, one, 0, PAGE, MULLION_READ_WRITE));
	FAILS(MULLION_NOT_ALLOWED, mullion_grant(shared, one, one, PAGE, PAGE, MULLION_READ));
	OK(mullion_grant(shared, one, one, 0, PAGE, MULLION_READ));
	EXPECT(asked == 6);
	OK(mullion_set_access_policy(NULL, NULL));
	OK(mullion_function_free(ask));
	OK(mullion_domain_unload(one));
	OK(mullion_domain_unload(two));
	OK(mullion_shared_free(shared));
	OK(mullion_image_free(own));
	image = before;
}

static uint32_t cause(void)
{
	mullion_fault fault;
	fault.size = sizeof fault;
	OK(mullion_last_fault(&fault));
	return fault.cause;
}

static void limits(void)
{
	mullion_limits all = MULLION_LIMITS_DEFAULT;
	mullion_call_limits few = MULLION_CALL_LIMITS_DEFAULT;
	mullion_domain domain;
	mullion_function function;
	mullion_value zero, number = mullion_integer(1);
	mullion_pointer place;

	all.total_nanoseconds = 20 * 1000 * 1000;
	domain = load("total", &all, eight);
	OK(mullion_alloc(domain, 16, &place));
	zero = mullion_address(place);
	function = find(domain, "wait");
	FAILS(MULLION_FAULT, mullion_call(function, &zero, 1, NULL));
	EXPECT(cause() == MULLION_CAUSE_TOTAL_TIME);
	OK(mullion_function_free(function));
	OK(mullion_domain_unload(domain));
	all.total_nanoseconds = 0;

	all.total_processor_nanoseconds = 20 * 1000 * 1000;
	few.processor_nanoseconds = 1000 * 1000;
	domain = load("processor", &all, eight);
	OK(mullion_alloc(domain, 16, &place));
	zero = mullion_address(place);
	function = find(domain, "wait");
	FAILS(MULLION_FAULT, mullion_call_limited(function, &zero, 1, &few, NULL));
	EXPECT(cause() == MULLION_CAUSE_PROCESSOR_TIME);
	few.size = offsetof(mullion_call_limits, processor_nanoseconds); /* of an older header */
	OK(mullion_domain_restart(domain));
	OK(mullion_alloc(domain, 16, &place));
	zero = mullion_address(place);
	FAILS(MULLION_FAULT, mullion_call_limited(function, &zero, 1, &few, NULL));
	EXPECT(cause() == MULLION_CAUSE_TOTAL_PROCESSOR_TIME);
	few = (mullion_call_limits)MULLION_CALL_LIMITS_DEFAULT;
	OK(mullion_function_free(function));
	OK(mullion_domain_unload(domain));
	all.total_processor_nanoseconds = 0;

	all.gate_calls = 1;
	domain = load("gates", &all, eight);
	OK(call(domain, "call_host", 1, NULL));
	OK(mullion_domain_unload(domain));
	all.gate_calls = 0;

	domain = load("one call", NULL, eight);
	OK(mullion_alloc(domain, 16, &place));
	zero = mullion_address(place);
	function = find(domain, "wait");
	few.nanoseconds = 10 * 1000 * 1000;
	FAILS(MULLION_FAULT, mullion_call_limited(function, &zero, 1, &few, NULL));
	EXPECT(cause() == MULLION_CAUSE_TIME);
	OK(mullion_function_free(function));
	OK(mullion_domain_restart(domain));
	function = find(domain, "call_host");
	few.nanoseconds = 0;
	few.gate_calls = 1;
	OK(mullion_call_limited(function, &number, 1, &few, NULL));
	OK(mullion_call_limited(function, &number, 1, NULL, NULL));
	few.size = 1;
	FAILS(MULLION_BAD_ARGUMENT, mullion_call_limited(function, &number, 1, &few, NULL));
	OK(mullion_function_free(function));
	OK(mullion_domain_unload(domain));

	all.output = 100;
	domain = load("loud", &all, speak);
	OK(call(domain, "call_host", 1, NULL));
	OK(call(domain, "call_host", 1, NULL));
	FAILS(MULLION_FAULT, call(domain, "call_host", 1, NULL));
	EXPECT(cause() == MULLION_CAUSE_OUTPUT);
	OK(mullion_domain_unload(domain));

	/* A host that was compiled with the header before. */
	all.size = offsetof(mullion_limits, total_nanoseconds);
	all.output = 1;
	domain = load("old", &all, speak);
	OK(call(domain, "call_host", 1, NULL));
	OK(mullion_domain_unload(domain));
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int inside, released;

static mullion_status hold(mullion_domain domain, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	(void)domain;
	(void)user;
	(void)arguments;
	(void)result;
	pthread_mutex_lock(&lock);
	inside = 1;
	pthread_cond_broadcast(&changed);
	while (!released)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return MULLION_OK;
}

static void *enter(void *argument)
{
	OK(call(*(mullion_domain *)argument, "call_host", 1, NULL));
	return NULL;
}

/* While another thread is in the domain, it can be neither unloaded nor restarted, but called. */
static void busy(void)
{
	mullion_domain domain = load("busy", NULL, hold);
	mullion_domain caller;
	mullion_pointer place;
	uint64_t number;
	pthread_t thread;
	EXPECT(!pthread_create(&thread, NULL, enter, &domain));
	pthread_mutex_lock(&lock);
	while (!inside)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	FAILS(MULLION_IN_USE, mullion_domain_restart(domain));
	FAILS(MULLION_IN_USE, mullion_domain_unload(domain));
	OK(call(domain, "who", 1, &number));
	/* The other thread's host function is not this one's. */
	FAILS(MULLION_BAD_ARGUMENT, mullion_called_by(domain, &caller));
	OK(mullion_alloc(domain, 16, &place));
	OK(mullion_free(domain, place));
	pthread_mutex_lock(&lock);
	released = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	EXPECT(!pthread_join(thread, NULL));
	OK(mullion_domain_restart(domain));
	OK(mullion_domain_unload(domain));
	FAILS(MULLION_BAD_HANDLE, mullion_domain_restart(domain));
}

/* Three domains, a link and a shared page, in a file that the test has painted. */
static void books(const char *json)
{
	mullion_domain one = load("the caller", NULL, eight), two = load("the called one", NULL, eight);
	mullion_domain three = load("the third", NULL, eight);
	mullion_function who = find(two, "who");
	mullion_shared page;
	OK(mullion_link(MULLION_THE_HOST, one, "other", who, NULL));
	OK(mullion_shared_new("the page", PAGE, &page));
	OK(mullion_grant(page, MULLION_THE_HOST, one, 0, PAGE, MULLION_READ_WRITE));
	OK(mullion_grant(page, MULLION_THE_HOST, three, 0, PAGE, MULLION_READ));
	FAILS(MULLION_CANNOT_WRITE, mullion_snapshot("/nonexistent/books.json"));
	FAILS(MULLION_BAD_ARGUMENT, mullion_snapshot(NULL));
	OK(mullion_snapshot(json));
	OK(mullion_shared_free(page));
	OK(mullion_function_free(who));
	OK(mullion_domain_unload(one));
	OK(mullion_domain_unload(two));
	OK(mullion_domain_unload(three));
}

static char *contents(const char *file)
{
	static char text[1 << 16];
	FILE *stream = fopen(file, "rb");
	size_t length = stream ? fread(text, 1, sizeof text - 1, stream) : 0;
	EXPECT(stream && length);
	fclose(stream);
	text[length] = 0;
	return text;
}

/* words: image, policy, keyring, record */
static void credentials(char **words)
{
	mullion_request request;
	mullion_image admitted;
	const char *keys[] = { "loader" }, *strangers[] = { "stranger" }, *missing[] = { "nobody" };
	memset(&request, 0, sizeof request);
	FAILS(MULLION_CREDENTIALS, mullion_set_policy_file("/nonexistent"));
	FAILS(MULLION_CREDENTIALS, mullion_set_policy_file(words[0]));
	OK(mullion_set_policy_file(words[1]));
	FAILS(MULLION_NOT_PERMITTED, mullion_image_open(path, &admitted));
	FAILS(MULLION_BAD_ARGUMENT, mullion_image_open_as(path, &request, &admitted));
	FAILS(MULLION_BAD_ARGUMENT, mullion_image_open_as(path, NULL, &admitted));
	request.size = sizeof request;
	FAILS(MULLION_NOT_PERMITTED, mullion_image_open_as(path, &request, &admitted));
	request.keys = keys;
	request.key_count = 1;
	FAILS(MULLION_BAD_ARGUMENT, mullion_image_open_as(path, &request, &admitted));
	request.keyring = words[2];
	FAILS(MULLION_NOT_PERMITTED, mullion_image_open_as(path, &request, &admitted));
	EXPECT(strstr(mullion_error_message(), "record"));
	request.record = contents(words[3]);
	request.keys = missing;
	FAILS(MULLION_CREDENTIALS, mullion_image_open_as(path, &request, &admitted));
	request.keys = strangers;
	FAILS(MULLION_NOT_PERMITTED, mullion_image_open_as(path, &request, &admitted));
	request.keys = keys;
	OK(mullion_image_open_as(path, &request, &admitted));
	OK(mullion_image_free(admitted));
	OK(mullion_set_policy_file(NULL));
	OK(mullion_image_open(path, &admitted));
	OK(mullion_image_free(admitted));
}

int main(int count, char **words)
{
	EXPECT(count >= 2);
	path = words[1];
	OK(mullion_image_open(path, &image));
	links();
	pages();
	policy();
	limits();
	busy();
	if (count == 6) {
		books(words[5]);
		credentials(words + 1);
	}
	OK(mullion_image_free(image));
	puts("all as the header says");
	return 0;
}
