/* A log function that calls the library at every line: images, and the domain that the line is about. */
#include <mullion.h>
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

static const char *path;
static mullion_domain domain;
static mullion_function add, say;
/* Lines so far; of them: while the function ran, about the domain's output, faults, restarts, other ends. */
static int lines, within, output, faults, restarts, ends;
/* What the function does to the domain, beside calling it. */
static enum { CALL, RESTART, UNLOAD } then;

/* One of these, and no other. */
static mullion_status one_of(mullion_status status, const mullion_status *allowed)
{
	int i;
	for (i = 0; allowed[i] >= 0; i++)
		if (status == allowed[i])
			return status;
	fprintf(stderr, "line %d: %s: %s\n", lines, mullion_status_name(status), mullion_error_message());
	exit(1);
}

static void told(void *user, int level, const char *target, const char *line)
{
	static const mullion_status called[] = { MULLION_OK, MULLION_ENDED, MULLION_NOT_OPEN, MULLION_BAD_HANDLE, MULLION_UNLOADED, -1 };
	static const mullion_status changed[] = { MULLION_OK, MULLION_IN_USE, MULLION_NOT_OPEN, MULLION_BAD_HANDLE, -1 };
	mullion_value arguments[2] = { mullion_integer(20), mullion_integer(22) }, result = MULLION_INTEGER_RESULT;
	mullion_pointer text;
	mullion_image image;
	int ended;

	(void)user;
	EXPECT(!within && level >= MULLION_LOG_ERROR && line[0]);
	within = 1;
	lines++;
	output += !strcmp(target, "mullion::output");
	faults += !strcmp(target, "mullion::fault");
	restarts += strstr(line, "restarted") != NULL;
	ends += strstr(line, "unloaded") != NULL;
	/* Of an image only now and then: to open it takes long. */
	if (lines % 16 == 1) {
		OK(mullion_image_open(path, &image));
		OK(mullion_image_free(image));
	}
	if (domain.number) {
		one_of(mullion_domain_has_ended(domain, &ended), called);
		if (one_of(mullion_call(add, arguments, 2, &result), called) == MULLION_OK)
			EXPECT(result.as.integer == 42);
		/* It writes itself. */
		if (one_of(mullion_string_in(domain, "told\nand more", &text), called) == MULLION_OK) {
			arguments[0] = mullion_address(text);
			one_of(mullion_call(say, arguments, 1, &result), called);
			mullion_free(domain, text);
		}
		if (then == RESTART)
			one_of(mullion_domain_restart(domain), changed);
		if (then == UNLOAD)
			one_of(mullion_domain_unload(domain), changed);
	}
	within = 0;
}

static mullion_status report(mullion_domain caller, void *user, const mullion_arguments *arguments, mullion_value *result)
{
	(void)caller;
	(void)user;
	(void)arguments;
	*result = mullion_integer(7);
	return MULLION_OK;
}

static void round_of_calls(void)
{
	static const mullion_status any[] = { MULLION_OK, MULLION_FAULT, MULLION_ENDED, MULLION_BAD_HANDLE, -1 };
	mullion_value arguments[2] = { mullion_integer(20), mullion_integer(22) }, result = MULLION_INTEGER_RESULT;
	mullion_function crash;
	mullion_pointer text;

	one_of(mullion_call(add, arguments, 2, &result), any);
	if (one_of(mullion_string_in(domain, "a line\nand another\nand a part", &text), any) == MULLION_OK) {
		arguments[0] = mullion_address(text);
		one_of(mullion_call(say, arguments, 1, &result), any);
	}
	if (mullion_function_find(domain, "crash", &crash))
		return;
	arguments[0] = mullion_integer(0);
	one_of(mullion_call(crash, arguments, 1, NULL), any);
	OK(mullion_function_free(crash));
}

int main(int count, char **arguments)
{
	mullion_image image;
	mullion_imports list;
	mullion_domain loaded;

	EXPECT(count == 2);
	path = arguments[1];
	OK(mullion_set_log(told, NULL, MULLION_LOG_TRACE));
	/* The first image says that there is no policy. */
	OK(mullion_image_open(path, &image));
	EXPECT(lines);
	OK(mullion_imports_new(&list));
	OK(mullion_imports_add(list, "host_report", report, NULL));
	OK(mullion_imports_add(list, "host_nested", report, NULL));
	for (then = CALL; then <= UNLOAD; then++) {
		OK(mullion_domain_load(image, "loud", list, NULL, &loaded));
		OK(mullion_function_find(loaded, "add", &add));
		OK(mullion_function_find(loaded, "say", &say));
		domain = loaded;
		round_of_calls();
		if (then == CALL) {
			OK(mullion_domain_restart(domain));
			round_of_calls();
			OK(mullion_domain_unload(domain));
		}
		domain.number = 0;
	}
	EXPECT(output > 2 && faults && restarts && ends);
	puts("all as the header says");
	return 0;
}
