/* What an extension's entry does. The host's first thread calls it with a block
 * laid out as the initial stack of a Linux process: the library's own start and
 * the constructors. Every thread of the host, before its first call, calls it with
 * the number of its data stack instead (docs/window.md, "The image"): what belongs
 * to a thread is set up, once the library has been started. */
#include <stdlib.h>
#include <string.h>
#include "libc.h"
#include "pthread_impl.h"
#include "stdio_impl.h"

#define STACKS 128

hidden void __libc_start_init(void);
hidden char __mullion_threads;

/* Thread-locals by the number of the data stack, which is used again. */
static void *areas[STACKS];

static void share(FILE *file)
{
	if (file)
		file->lock = 0;
}

static void start_thread(unsigned long number)
{
	/* The first thread, on its way to the block. */
	if (!libc.tls_size || number >= STACKS)
		return;
	if (!areas[number])
		areas[number] = malloc(libc.tls_size);
	if (!areas[number])
		abort();
	memset(areas[number], 0, libc.tls_size);
	__init_tp(__copy_tls(areas[number]));
	__pthread_self()->tid = (int)number + 2;
}

void __mullion_extension_start(long *block)
{
	if ((unsigned long)block < 4096) {
		start_thread((unsigned long)block);
		return;
	}
	long count = block[0];
	char **arguments = (char **)(block + 1);
	__init_libc(arguments + count + 1, arguments[0]);
	/* Threads come and go without a word to this library: it locks from the start. */
	__pthread_self()->tid = 1;
	libc.threaded = 1;
	libc.need_locks = 1;
	__mullion_threads = 1;
	share(__stdin_used);
	share(__stdout_used);
	share(__stderr_used);
	__libc_start_init();
}
