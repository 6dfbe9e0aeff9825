/* Keys of thread-specific values. musl finds the threads by a list that it keeps. Those of a program are there;
 * those of the host come to an extension without a word, and are found by their data stacks. */
#include "pthread_impl.h"

volatile size_t __pthread_tsd_size = sizeof(void *) * PTHREAD_KEYS_MAX;
void *__pthread_tsd_main[PTHREAD_KEYS_MAX];

/* As in __mullion_extension_start.c. */
#define STACKS 128
hidden extern pthread_t __mullion_thread_of_stack[STACKS];
hidden void __mullion_thread_end(void);

/* Links what calls the destructors when a thread ends. */
__attribute__((used)) static void (*const end)(void) = __mullion_thread_end;

static void (*keys[PTHREAD_KEYS_MAX])(void *);
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_key_t next;

/* Of keys without a destructor: null says that a key is free. */
static void nothing(void *value) {}

int __pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	pthread_t self = __pthread_self();
	/* The first thread of a program. */
	if (!self->tsd)
		self->tsd = __pthread_tsd_main;
	__pthread_rwlock_wrlock(&lock);
	pthread_key_t found = next;
	while (keys[found] && (found = (found + 1) % PTHREAD_KEYS_MAX) != next)
		;
	int full = keys[found] != 0;
	if (!full)
		keys[next = *key = found] = destructor ? destructor : nothing;
	__pthread_rwlock_unlock(&lock);
	return full ? EAGAIN : 0;
}

int __pthread_key_delete(pthread_key_t key)
{
	__pthread_rwlock_wrlock(&lock);
	pthread_t self = __pthread_self();
	self->tsd[key] = 0;
	__tl_lock();
	for (pthread_t thread = self->next; thread != self; thread = thread->next)
		thread->tsd[key] = 0;
	__tl_unlock();
	for (int i = 0; i < STACKS; i++) {
		pthread_t thread = __mullion_thread_of_stack[i];
		if (thread)
			thread->tsd[key] = 0;
	}
	keys[key] = 0;
	__pthread_rwlock_unlock(&lock);
	return 0;
}

/* See __mullion_thread_end.c. */
void __mullion_end_values(void)
{
	pthread_t self = __pthread_self();
	for (int round = 0; self->tsd_used && round < PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
		self->tsd_used = 0;
		for (int key = 0; key < PTHREAD_KEYS_MAX; key++) {
			__pthread_rwlock_rdlock(&lock);
			void (*destructor)(void *) = keys[key];
			__pthread_rwlock_unlock(&lock);
			void *value = self->tsd[key];
			self->tsd[key] = 0;
			if (value && destructor)
				destructor(value);
		}
	}
}

weak_alias(__pthread_key_create, pthread_key_create);
weak_alias(__pthread_key_delete, pthread_key_delete);
