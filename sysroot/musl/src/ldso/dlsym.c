/* There is no dynamic linker in a domain: every look-up fails, with a message. */
#include <dlfcn.h>
#include "dynlink.h"

void *dlsym(void *restrict handle, const char *restrict name)
{
	return __dlsym(handle, name, 0);
}
