/* malloc and its kin of a module of checked code: from memory of the module's own, without a gate.
 *
 *   host's malloc ──gate──► arena: 1, 3, 7, then 15 chunks of 64 KiB ──► spans ──► blocks (spans.h)
 *
 * A chunk is aligned to its size, and a table has the address of each. So free() tells blocks of this heap from the
 * host's, which are: large ones, what functions of the host return (strdup, getline), and what was wanted while
 * another thread had the heap. Arenas stay the module's until it ends or begins anew. The table is read without the
 * lock: it only grows, and an old one stays as it was.
 *
 * Nobody waits for the lock for long, because who has it may never go on: a copy of the process has one thread. Who
 * does not get it asks the host for a block, and puts what it frees into a list for the next one that has the lock. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "features.h"

#define CHUNK ((size_t)64 << 10)
#define UNIT ((size_t)4 << 10)
#define CLASSES 32
#define SMALL ((size_t)8 << 10)
/* Three of them are a chunk. */
#define LARGE ((size_t)20 << 10)
#define MOST LARGE
#define SPAN(size) ((size) <= 512 ? 1 : (size) <= 2048 ? 2 : 4)
#include "../../musl/src/malloc/spans.h"

/* mullion ld imports these by their names without the beginning. */
void *__mullion_host_malloc(size_t);
void *__mullion_host_calloc(size_t, size_t);
void *__mullion_host_realloc(void *, size_t);
void *__mullion_host_aligned_alloc(size_t, size_t);
void __mullion_host_free(void *);

/* The chunks that there are: each at its number, or behind it where that was taken. At least half is 0. */
struct table {
	size_t mask, used;
	uintptr_t chunks[64];
};

static struct table first_table = { .mask = 63 };
static struct table *table = &first_table;
static char *arena, *arena_end;          /* chunks that were never used */
static struct chunk *spare;              /* chunks that are free again */
static size_t arena_chunks = 1;
static struct block *late;               /* freed by who did not get the lock */
static int lock;

static int is_own(const void *p)
{
	const struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	uintptr_t c = (uintptr_t)p & ~(CHUNK - 1), found;
	for (size_t at = c / CHUNK;; at++) {
		found = __atomic_load_n(&t->chunks[at & t->mask], __ATOMIC_RELAXED);
		if (found == c)
			return 1;
		if (!found)
			return 0;
	}
}

static void put(struct table *t, uintptr_t c)
{
	size_t at = c / CHUNK;
	while (t->chunks[at & t->mask])
		at++;
	t->used++;
	__atomic_store_n(&t->chunks[at & t->mask], c, __ATOMIC_RELEASE);
}

/* Whether there is room for more chunks in the table. */
static int grow_table(size_t more)
{
	struct table *old = table;
	if ((old->used + more) * 2 <= old->mask)
		return 1;
	size_t places = (old->mask + 1) * 2;
	struct table *t = __mullion_host_malloc(offsetof(struct table, chunks) + places * sizeof *t->chunks);
	if (!t)
		return 0;
	t->mask = places - 1;
	t->used = 0;
	memset(t->chunks, 0, places * sizeof *t->chunks);
	for (size_t at = 0; at <= old->mask; at++)
		if (old->chunks[at])
			put(t, old->chunks[at]);
	__atomic_store_n(&table, t, __ATOMIC_RELEASE);
	return 1;
}

/* Chunks of the host. There is one more in it than is aligned. */
static int more_arena(size_t chunks)
{
	if (!grow_table(chunks))
		return 0;
	size_t size = (chunks + 1) * CHUNK - 16;
	char *p = __mullion_host_malloc(size);
	if (!p)
		return 0;
	arena = p + (-(uintptr_t)p & (CHUNK - 1));
	arena_end = arena + ((size_t)(p + size - arena) & ~(CHUNK - 1));
	return arena != arena_end;
}

static struct chunk *map_chunk(void)
{
	struct chunk *c = spare;
	if (c)
		spare = c->next;
	else {
		if (arena == arena_end) {
			/* Near its limit a module may have a small one yet. */
			if (!more_arena(arena_chunks) && !more_arena(1))
				return 0;
			if (arena_chunks < 15)
				arena_chunks = arena_chunks * 2 + 1;
		}
		c = (struct chunk *)arena;
		arena += CHUNK;
		put(table, (uintptr_t)c);
	}
	memset(c, 0, sizeof *c);
	/* The host has used this memory before, and does not clear it. */
	c->touched = UNITS;
	return c;
}

static void unmap_chunk(struct chunk *c)
{
	c->next = spare;
	spare = c;
}

/* Blocks beyond LARGE are the host's. */
static struct chunk *map_large(size_t whole)
{
	return 0;
}

static void unmap_large(struct chunk *c)
{
}

static void no_memory(void)
{
}

static void bad_alignment(void)
{
}

static int enter(void)
{
	for (int tries = 0; __builtin_expect(__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE), 0); tries++) {
		if (tries == 64)
			return 0;
		__builtin_ia32_pause();
	}
	return 1;
}

static void leave(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* What others have freed meanwhile. */
static void sweep(void)
{
	struct block *b = __atomic_exchange_n(&late, 0, __ATOMIC_ACQUIRE);
	while (b) {
		struct block *next = b->next;
		release(b);
		b = next;
	}
}

static void release_late(void *p)
{
	struct block *b = p;
	b->next = __atomic_load_n(&late, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&late, &b->next, b, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

static void *own_malloc(size_t size)
{
	if (__builtin_expect(size <= LARGE && enter(), 1)) {
		if (__builtin_expect(late != 0, 0))
			sweep();
		void *p = allocate(size);
		leave();
		if (__builtin_expect(p != 0, 1))
			return p;
	}
	return __mullion_host_malloc(size);
}

static void own_free(void *p)
{
	if (!p)
		return;
	if (__builtin_expect(!is_own(p), 0))
		__mullion_host_free(p);
	else if (__builtin_expect(!enter(), 0))
		release_late(p);
	else {
		release(p);
		leave();
	}
}

static void *own_calloc(size_t count, size_t each)
{
	size_t size;
	if (__builtin_mul_overflow(count, each, &size) || size > LARGE)
		return __mullion_host_calloc(count, each);
	void *p = own_malloc(size);
	return p ? memset(p, 0, size) : p;
}

static void *own_realloc(void *p, size_t size)
{
	if (!p)
		return own_malloc(size);
	if (!is_own(p))
		return __mullion_host_realloc(p, size);
	if (size <= LARGE && enter()) {
		void *moved = reallocate(p, size);
		leave();
		if (moved)
			return moved;
	}
	/* The span of a block in use stays as it is. */
	size_t has = room(span_of(p), p);
	void *moved = __mullion_host_malloc(size);
	if (!moved)
		return 0;
	memcpy(moved, p, size < has ? size : has);
	own_free(p);
	return moved;
}

static void *own_aligned_alloc(size_t alignment, size_t size)
{
	if (size <= LARGE && alignment <= UNIT && enter()) {
		void *p = allocate_aligned(alignment, size);
		leave();
		if (p)
			return p;
	}
	return __mullion_host_aligned_alloc(alignment, size);
}

/* EINVAL and ENOMEM of every Linux: errno is the host's. */
static int own_posix_memalign(void **to, size_t alignment, size_t size)
{
	if (alignment & (alignment - 1) || alignment < sizeof(void *))
		return 22;
	void *p = own_aligned_alloc(alignment, size);
	if (!p)
		return 12;
	*to = p;
	return 0;
}

static void *own_reallocarray(void *p, size_t count, size_t each)
{
	size_t size;
	return __builtin_mul_overflow(count, each, &size) ? 0 : own_realloc(p, size);
}

/* Bytes of a block; 0 if it is the host's. */
hidden size_t __mullion_heap_room(void *p)
{
	return is_own(p) ? room(span_of(p), p) : 0;
}

weak_alias(own_malloc, malloc);
weak_alias(own_free, free);
weak_alias(own_calloc, calloc);
weak_alias(own_realloc, realloc);
weak_alias(own_aligned_alloc, aligned_alloc);
weak_alias(own_posix_memalign, posix_memalign);
weak_alias(own_reallocarray, reallocarray);
