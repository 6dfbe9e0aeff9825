/* What an extension's entry does. The host's first thread calls it with a block
 * laid out as the initial stack of a Linux process: the library's own start and
 * the constructors. Every thread of the host, before its first call, calls it with
 * the number of its data stack instead (docs/window.md, "The image"): what belongs
 * to a thread is set up, once the library has been started. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "libc.h"
#include "pthread_impl.h"
#include "stdio_impl.h"

/* More than there can be. */
#define STACKS 128

hidden void __libc_start_init(void);
hidden extern char __mullion_threads;
extern char __libc_single_threaded;

/* Thread-locals by the number of the data stack, which is used again. Behind them
 * lie the values of keys, if the library has keys. */
static char *areas[STACKS];
/* Who has each stack, or had it last: for pthread_key_delete. */
hidden pthread_t __mullion_thread_of_stack[STACKS];

static volatile size_t no_keys;
weak_alias(no_keys, __pthread_tsd_size);

static void share(FILE *file)
{
	if (file)
		file->lock = 0;
}

/* Not inlined: the compiler may move the read of the thread pointer, there before it is set. */
__attribute__((noinline)) static void describe(unsigned long stack, int tid, void **values)
{
	pthread_t self = __pthread_self();
	self->tid = tid;
	self->tsd = values;
	__mullion_thread_of_stack[stack] = self;
}

/* Of a thread that has nothing of its own yet: who asks for memory writes errno. */
static struct pthread starting = { .self = &starting };

/* 0, or a negative error number: then nothing has changed, and the thread makes no call. */
static long start_thread(unsigned long number)
{
	/* The first thread, on its way to the block. */
	if (!libc.tls_size || number >= STACKS)
		return 0;
	size_t locals = (libc.tls_size + 15) & -16, size = locals + __pthread_tsd_size;
	if (!areas[number]) {
		__set_thread_area(TP_ADJ(&starting));
		areas[number] = malloc(size);
	}
	if (!areas[number])
		return -ENOMEM;
	memset(areas[number], 0, size);
	__init_tp(__copy_tls((unsigned char *)areas[number]));
	describe(number, (int)number + 2, (void **)(areas[number] + locals));
	return 0;
}

long __mullion_extension_start(long *block)
{
	if ((unsigned long)block < 4096)
		return start_thread((unsigned long)block);
	long count = block[0];
	char **arguments = (char **)(block + 1);
	__init_libc(arguments + count + 1, arguments[0]);
	/* Threads come and go without a word to this library: it locks from the start. */
	void **values = __pthread_tsd_size ? calloc(1, __pthread_tsd_size) : 0;
	if (__pthread_tsd_size && !values)
		abort();
	describe(0, 1, values);
	libc.threaded = 1;
	libc.need_locks = 1;
	__mullion_threads = 1;
	__libc_single_threaded = 0;
	share(__stdin_used);
	share(__stdout_used);
	share(__stderr_used);
	__libc_start_init();
	return 0;
}
