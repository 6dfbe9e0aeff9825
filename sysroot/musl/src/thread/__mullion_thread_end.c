/* Destructors of what belongs to a thread: of C++ thread-locals, and of the values
 * of keys. A thread of the host's that ends calls the export, if it has called this
 * domain; linked, and so exported, only with an extension that has such destructors. */
#include <mullion/ext.h>
#include <stdlib.h>
#include "atomic.h"
#include "pthread_impl.h"

struct entry {
	void (*destructor)(void *);
	void *object;
	struct entry *before;
};

static _Thread_local struct entry *last;

static void no_keys(void) {}
weak_alias(no_keys, __mullion_end_values);

/* Called by musl, too, when a thread of a program's own ends. */
void __pthread_tsd_run_dtors(void)
{
	/* Destructors may register others. */
	for (struct entry *entry; (entry = last);) {
		last = entry->before;
		void (*destructor)(void *) = entry->destructor;
		void *object = entry->object;
		free(entry);
		destructor(object);
	}
	__mullion_end_values();
}

MULLION_EXPORT(void, __mullion_thread_end, (void))
{
	__pthread_tsd_run_dtors();
}

int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *image)
{
	static volatile int registered;
	/* The thread that calls exit() destroys its own. */
	if (!a_swap(&registered, 1))
		atexit(__mullion_thread_end);
	struct entry *entry = malloc(sizeof *entry);
	/* Nobody looks at what this function returns. */
	if (!entry)
		abort();
	*entry = (struct entry){ destructor, object, last };
	last = entry;
	return 0;
}
