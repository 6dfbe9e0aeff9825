/* Threads of the host that end, with what an extension keeps for them (../../mullion/tests/extensions/thread_end.cc). */
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

enum manner { TELL, FAULT, LOOP, REFUSE, ENTER };

static char logged[1 << 14];
static void keep_log(void *user, int level, const char *target, const char *line)
{
	size_t used = strlen(logged);
	(void)user;
	(void)target;
	snprintf(logged + used, sizeof logged - used, "%d %s\n", level, line);
}

static mullion_domain domain;
static uint64_t told[8];
static unsigned count, given_back;

static void give_back(void *user)
{
	(void)user;
	given_back++;
}

static mullion_status tell(mullion_domain caller, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	uint64_t number;
	(void)user;
	(void)result;
	EXPECT(count < 8);
	told[count++] = arguments->integers[0];
	OK(mullion_hold(caller, give_back, NULL, &number));
	return MULLION_OK;
}

static mullion_status refuse(mullion_domain caller, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	(void)caller;
	(void)user;
	(void)arguments;
	(void)result;
	return 77;
}

static mullion_status enter(mullion_domain caller, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	mullion_function get;
	mullion_value value = MULLION_INTEGER_RESULT;
	(void)user;
	(void)arguments;
	(void)result;
	OK(mullion_function_find(caller, "get", &get));
	OK(mullion_call(get, NULL, 0, &value));
	EXPECT(value.as.integer == 0);
	OK(mullion_function_free(get));
	EXPECT(mullion_domain_restart(caller) == MULLION_IN_USE);
	return MULLION_OK;
}

static void *touch(void *manner)
{
	mullion_function function;
	mullion_value values[2] = { mullion_integer(5), mullion_integer(*(enum manner *)manner) };
	OK(mullion_function_find(domain, "touch", &function));
	OK(mullion_call(function, values, 2, NULL));
	OK(mullion_function_free(function));
	return NULL;
}

static void touch_and_end(enum manner manner)
{
	pthread_t thread;
	count = given_back = 0;
	EXPECT(!pthread_create(&thread, NULL, touch, &manner));
	EXPECT(!pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	mullion_image image;
	mullion_imports imports;
	int ended;
	EXPECT(argc == 2);
	OK(mullion_set_log(keep_log, NULL, 2));
	OK(mullion_image_open(argv[1], &image));
	OK(mullion_imports_new(&imports));
	OK(mullion_imports_add(imports, "told", tell, NULL));
	OK(mullion_imports_add(imports, "panics", refuse, NULL));
	OK(mullion_imports_add(imports, "enters_again", enter, NULL));
	OK(mullion_domain_load(image, "threads", imports, NULL, &domain));
	touch_and_end(TELL);
	EXPECT(count == 2 && told[0] == 105 && told[1] == 5 && given_back == 2);
	touch_and_end(ENTER);
	EXPECT(count == 2 && told[0] == 105 && told[1] == 5);
	EXPECT(!strstr(logged, "at a thread's end"));
	touch_and_end(REFUSE);
	EXPECT(count == 0 && strstr(logged, "2 threads: at a thread's end"));
	touch_and_end(FAULT);
	OK(mullion_domain_has_ended(domain, &ended));
	EXPECT(count == 0 && ended && strstr(logged, "\n1 threads"));
	OK(mullion_domain_restart(domain));
	touch_and_end(TELL);
	EXPECT(count == 2);
	OK(mullion_domain_unload(domain));
	puts("all as the header says");
	return 0;
}
