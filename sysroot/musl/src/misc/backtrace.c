/* See execinfo.h. */
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

hidden uint64_t __mullion_control_read(uint64_t depth);
extern char *program_invocation_name;

int backtrace(void **places, int length)
{
	int found = 0;
	/* Depth 0 is in this function. Behind the outermost function there is nothing. */
	for (; found < length; found++) {
		uint64_t place = __mullion_control_read(found + 1);
		if (!place)
			break;
		places[found] = (void *)place;
	}
	return found;
}

/* As glibc writes addresses of functions without a name: the offset in the image is what addr2line takes. */
#define FORMAT "%s(+%#x) [%p]"

static const char *image(void)
{
	return program_invocation_name ? program_invocation_name : "";
}

char **backtrace_symbols(void *const *places, int length)
{
	size_t size = length < 0 ? 0 : length;
	size_t each = snprintf(0, 0, FORMAT, image(), UINT32_MAX, (void *)UINTPTR_MAX) + 1;
	char **names = malloc(size * (sizeof *names + each) + 1);
	if (!names)
		return 0;
	char *text = (char *)(names + size);
	for (size_t i = 0; i < size; i++, text += each) {
		names[i] = text;
		snprintf(text, each, FORMAT, image(), (uint32_t)(uintptr_t)places[i], places[i]);
	}
	return names;
}

void backtrace_symbols_fd(void *const *places, int length, int file)
{
	for (int i = 0; i < length; i++)
		dprintf(file, FORMAT "\n", image(), (uint32_t)(uintptr_t)places[i], places[i]);
}
