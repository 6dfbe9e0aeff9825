/* Threads of a program's own. The host starts each, if they were granted, and gives it a data stack. So what
 * pthread_create maps for a thread holds its thread-locals and nothing else. The thread begins in `begin`, which tells
 * the host by its result where others wait for its end: the host writes zero there when nothing of it is left, and
 * wakes one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include "pthread_impl.h"
#include "__mullion_leave.h"
#include "../signal/mullion_signal.h"

#define CLONE_THREAD 0x10000

/* What a new thread finds at the top of what was mapped for it. */
struct beginning {
	int (*function)(void *);
	void *argument, *thread;
	volatile int *cleared;
};

/* On the data stack, in the frame of `begin`. */
struct frame {
	jmp_buf end;
	volatile int *cleared;
	struct mullion_signals signals;
};

hidden extern char __mullion_threads;
extern char __libc_single_threaded;

/* Null: the first thread. */
static _Thread_local struct frame *frame;

static struct mullion_signals *signals(void)
{
	return frame ? &frame->signals : 0;
}

/* Not inlined: the compiler may move the address of a thread-local to before the thread pointer is set. */
__attribute__((noinline)) static void run(const struct beginning *from, struct frame *own)
{
	frame = own;
	from->function(from->argument);
}

static volatile int *begin(struct beginning *given)
{
	struct beginning from = *given;
	struct frame own = { .cleared = from.cleared };
	__set_thread_area(from.thread);
	if (!setjmp(own.end))
		run(&from, &own);
	return own.cleared;
}

_Noreturn void __mullion_leave(void *map, size_t size)
{
	struct frame *own = frame;
	if (!own) {
		/* As the kernel would for the first thread; the others go on, and the last one ends the program. */
		static volatile int never;
		a_store(&__thread_list_lock, 0);
		__wake(&__thread_list_lock, 1, 0);
		for (;;)
			__syscall(SYS_futex, &never, FUTEX_WAIT, 0, 0);
	}
	if (map)
		__syscall(SYS_munmap, map, size);
	longjmp(own->end, 1);
}

/* Processes are not made. */
int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	if (!(flags & CLONE_THREAD))
		return -ENOSYS;
	va_list rest;
	va_start(rest, argument);
	int *number = va_arg(rest, int *);
	void *thread = va_arg(rest, void *);
	volatile int *cleared = va_arg(rest, volatile int *);
	va_end(rest);
	struct beginning *given = (struct beginning *)((uintptr_t)stack & -16) - 1;
	*given = (struct beginning){ function, argument, thread, cleared };
	__mullion_threads = 1;
	__libc_single_threaded = 0;
	__mullion_signals_of_thread = signals;
	return __syscall(SYS_clone, begin, given, number);
}
