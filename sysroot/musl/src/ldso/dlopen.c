/* See libraries.h. Nothing is loaded: whatever is not part of the image is not found. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "dynlink.h"
#include "libraries.h"

/* A constructor may open another library. */
static pthread_mutex_t lock = {{{PTHREAD_MUTEX_RECURSIVE}}};

/* The last part of a path. */
static const char *base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* The length of a name without what follows `.so`, as in `libz.so.1`. */
static size_t stem(const char *name)
{
	const char *suffix = strstr(name, ".so");
	return suffix && (!suffix[3] || suffix[3] == '.') ? suffix - name : strlen(name);
}

/* How many of the last parts of two paths are the same, `.` and `..` left out. The last one may differ in its version. */
static int agreement(const char *path, const char *asked, int *exactly)
{
	const char *one = base(path), *other = base(asked);
	*exactly = !strcmp(one, other);
	size_t length = stem(one);
	if (!*exactly && (length != stem(other) || memcmp(one, other, length)))
		return 0;
	int parts = 1;
	while (one > path && other > asked) {
		const char *end = one - 1, *other_end = other - 1;
		for (one = end; one > path && one[-1] != '/'; one--);
		for (other = other_end; other > asked && other[-1] != '/'; other--);
		size_t size = other_end - other;
		if (!size || (size <= 2 && !memcmp("..", other, size))) {
			/* It says nothing about the other path. */
			one = end + 1;
			continue;
		}
		if (size != (size_t)(end - one) || memcmp(one, other, size))
			break;
		parts++;
	}
	return parts;
}

static const struct library *find(const char *asked)
{
	const struct library *best = 0;
	int most = 0, best_exactly = 0;
	for (const struct library *each = __mullion_libraries; each && each->path; each++) {
		int exactly, parts = agreement(each->path, asked, &exactly);
		if (!*each->path || !parts)
			continue;
		if (!best || parts > most || (parts == most && exactly > best_exactly)) {
			best = each;
			most = parts;
			best_exactly = exactly;
		}
	}
	return best;
}

static void run(const struct functions *list)
{
	for (; list->first; list++)
		for (void (**each)(void) = list->first; each < list->end; each++)
			(*each)();
}

static void end(void)
{
	for (const struct library *each = __mullion_libraries; each->path; each++)
		if (each->state->started)
			for (const struct functions *list = each->destructors; list->first; list++)
				for (void (**last)(void) = list->end; last > list->first;)
					(*--last)();
}

static void start(const struct library *library)
{
	static int registered;
	if (!registered) {
		registered = 1;
		atexit(end);
	}
	library->state->started = 1;
	run(library->constructors);
}

void *dlopen(const char *file, int mode)
{
	if (!__mullion_libraries) {
		__dl_seterr("%s: no library was linked to be opened; name it in mullion cc --mullion-dlopen=LIBRARY, where the image is linked", file ? file : "the program");
		return 0;
	}
	if (!file || !*file)
		return (void *)__mullion_libraries;
	const struct library *library = find(file);
	if (!library) {
		__dl_seterr("%s: no part of this image; name it in mullion cc --mullion-dlopen=LIBRARY, where the image is linked", file);
		return 0;
	}
	pthread_mutex_lock(&lock);
	if ((mode & RTLD_NOLOAD) && !library->state->opened) {
		pthread_mutex_unlock(&lock);
		__dl_seterr("%s: not opened", file);
		return 0;
	}
	library->state->opened++;
	library->state->global |= !!(mode & RTLD_GLOBAL);
	if (!library->state->started)
		start(library);
	pthread_mutex_unlock(&lock);
	return (void *)library;
}

static const struct library *is_open(void *handle)
{
	for (const struct library *each = __mullion_libraries; each && each->path; each++)
		if (each == handle && (!*each->path || each->state->opened))
			return each;
	__dl_seterr("%p is no library that is open", handle);
	return 0;
}

int dlclose(void *handle)
{
	const struct library *library = is_open(handle);
	if (!library)
		return 1;
	pthread_mutex_lock(&lock);
	if (*library->path)
		library->state->opened--;
	pthread_mutex_unlock(&lock);
	return 0;
}
