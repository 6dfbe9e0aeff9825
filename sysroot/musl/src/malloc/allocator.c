/* The domain's heap: malloc and its kin, in chunks of 4 MiB (spans.h). Blocks
 * beyond half a chunk have a mapping of their own, which starts like a chunk.
 *
 * One lock around all of it, where several threads may be in the domain: in an
 * extension. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include "libc.h"
#include "lock.h"

#define CHUNK ((size_t)4 << 20)
#define UNIT ((size_t)16 << 10)
#define CLASSES 40
#define SMALL ((size_t)32 << 10)
#define LARGE (CHUNK / 2)
#define MOST SIZE_MAX
#define SPAN(size) ((size) <= 1024 ? 1 : (size) <= 8192 ? 4 : 8)
#include "spans.h"

static volatile int lock[1];

/* Whether it was locked: that does not change once there are threads. */
static inline int enter(void)
{
	int locks = libc.need_locks;
	if (__builtin_expect(locks, 0))
		__lock(lock);
	return locks;
}

static inline void leave(int locked)
{
	if (__builtin_expect(locked, 0))
		__unlock(lock);
}

/* Memory that starts at a multiple of CHUNK: a piece that happens to, or the
 * right part of one that is larger by a chunk. */
static void *map_aligned(size_t size)
{
	char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 0;
	if (((uintptr_t)p & (CHUNK - 1)) == 0)
		return p;
	munmap(p, size);
	p = mmap(0, size + CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 0;
	size_t before = -(uintptr_t)p & (CHUNK - 1);
	if (before)
		munmap(p, before);
	munmap(p + before + size, CHUNK - before);
	return p + before;
}

static struct chunk *map_chunk(void)
{
	struct chunk *c = map_aligned(CHUNK);
	if (c)
		c->touched = 1;
	return c;
}

static void unmap_chunk(struct chunk *c)
{
	munmap(c, CHUNK);
}

static struct chunk *map_large(size_t whole)
{
	return map_aligned(whole);
}

static void unmap_large(struct chunk *c)
{
	munmap(c, c->mapped);
}

static void no_memory(void)
{
	errno = ENOMEM;
}

static void bad_alignment(void)
{
	errno = EINVAL;
}

void *__libc_calloc(size_t count, size_t each)
{
	size_t size;
	if (__builtin_mul_overflow(count, each, &size)) {
		errno = ENOMEM;
		return 0;
	}
	int zeroed = 0, locked = enter();
	void *p = size > SMALL ? large_malloc(size, &zeroed) : allocate(size);
	leave(locked);
	return p && !zeroed ? memset(p, 0, size) : p;
}

void *__libc_malloc(size_t size)
{
	int locked = enter();
	void *p = allocate(size);
	leave(locked);
	return p;
}

void __libc_free(void *p)
{
	int locked = enter();
	release(p);
	leave(locked);
}

void *__libc_realloc(void *p, size_t size)
{
	int locked = enter();
	void *moved = reallocate(p, size);
	leave(locked);
	return moved;
}

static void *__libc_aligned_alloc(size_t alignment, size_t size)
{
	int locked = enter();
	void *p = allocate_aligned(alignment, size);
	leave(locked);
	return p;
}

static size_t __libc_usable_size(void *p)
{
	return p ? room(span_of(p), p) : 0;
}

weak_alias(__libc_malloc, malloc);
weak_alias(__libc_free, free);
weak_alias(__libc_calloc, calloc);
weak_alias(__libc_realloc, realloc);
weak_alias(__libc_aligned_alloc, aligned_alloc);
weak_alias(__libc_usable_size, malloc_usable_size);
