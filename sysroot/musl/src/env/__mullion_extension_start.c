/* What an extension's entry does: the library's own start and the constructors.
 * `block` is laid out as the initial stack of a Linux process. */
#include "libc.h"

hidden void __libc_start_init(void);

void __mullion_extension_start(long *block)
{
	long count = block[0];
	char **arguments = (char **)(block + 1);
	__init_libc(arguments + count + 1, arguments[0]);
	__libc_start_init();
}
