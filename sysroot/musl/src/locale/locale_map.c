/* In musl's place: a domain has the locales C, POSIX and C.UTF-8, and any other name is refused, so that programs see
 * that it is not there. musl takes every name. What the environment names is taken for C.UTF-8. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include "locale_impl.h"
#include "lock.h"

const char *__lctrans_impl(const char *message, const struct __locale_map *map)
{
	const char *text = map ? __mo_lookup(map->map, map->map_size, message) : 0;
	return text ? text : message;
}

volatile int __locale_lock[1];
volatile int *const __locale_lockptr = __locale_lock;

static const char variables[][12] = {
	"LC_CTYPE",
	"LC_NUMERIC",
	"LC_TIME",
	"LC_COLLATE",
	"LC_MONETARY",
	"LC_MESSAGES",
};

static int is_plain(const char *name)
{
	return !strcmp(name, "C") || !strcmp(name, "POSIX");
}

const struct __locale_map *__get_locale(int category, const char *name)
{
	if (!*name) {
		const char *value;
		int plain = ((value = getenv("LC_ALL")) && *value || (value = getenv(variables[category])) && *value
			|| (value = getenv("LANG")) && *value) && is_plain(value);
		name = plain ? "C" : "C.UTF-8";
	}
	if (is_plain(name))
		return 0;
	if (strcmp(name, "C.UTF-8") && strcmp(name, "C.utf8"))
		return LOC_MAP_FAILED;
	return category == LC_CTYPE ? (void *)&__c_dot_utf8 : 0;
}
