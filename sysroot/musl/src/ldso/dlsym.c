/* See libraries.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include "dynlink.h"
#include "libraries.h"

static const struct symbol *find(const struct library *library, const char *name)
{
	size_t low = 0, high = library->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(library->symbols[middle].name, name);
		if (!order)
			return &library->symbols[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* The handle is looked at here: an image that never opens anything has no dlopen(). */
void *dlsym(void *restrict handle, const char *restrict name)
{
	int all = handle == RTLD_DEFAULT || handle == RTLD_NEXT || handle == (void *)__mullion_libraries;
	int known = all;
	for (const struct library *each = __mullion_libraries; each && each->path; each++) {
		int program = !*each->path;
		int looked_at = all ? (program && handle != RTLD_NEXT) || (!program && each->state->global)
		                    : each == handle && (program || each->state->opened);
		known |= looked_at;
		const struct symbol *found = looked_at ? find(each, name) : 0;
		if (found)
			return found->value;
	}
	if (!known)
		__dl_seterr("%p is no library that is open", handle);
	else
		__dl_seterr("Symbol not found: %s", name);
	return 0;
}
