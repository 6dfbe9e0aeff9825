/* See obstack.h. */
#include <obstack.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int obstack_exit_failure = 1;

static void give_up(void)
{
	fputs("memory exhausted\n", stderr);
	exit(obstack_exit_failure);
}

void (*obstack_alloc_failed_handler)(void) = give_up;

enum { USUAL = 4064, ALIGNMENT = 16 };

static struct _obstack_chunk *take(struct obstack *h, size_t size)
{
	struct _obstack_chunk *chunk = h->use_extra_arg ? h->chunkfun.extra(h->extra_arg, size) : h->chunkfun.plain(size);
	if (!chunk)
		obstack_alloc_failed_handler();
	chunk->limit = (char *)chunk + size;
	return chunk;
}

static void give(struct obstack *h, struct _obstack_chunk *chunk)
{
	if (h->use_extra_arg)
		h->freefun.extra(h->extra_arg, chunk);
	else
		h->freefun.plain(chunk);
}

static char *beginning(struct obstack *h, struct _obstack_chunk *chunk)
{
	return (char *)(((uintptr_t)chunk->contents + h->alignment_mask) & ~(uintptr_t)h->alignment_mask);
}

static int begin(struct obstack *h, size_t size, size_t alignment)
{
	h->chunk_size = size ? size : USUAL;
	h->alignment_mask = (alignment ? alignment : ALIGNMENT) - 1;
	h->chunk = take(h, h->chunk_size);
	h->chunk->prev = 0;
	h->next_free = h->object_base = beginning(h, h->chunk);
	h->chunk_limit = h->chunk->limit;
	h->maybe_empty_object = h->alloc_failed = 0;
	return 1;
}

int _obstack_begin(struct obstack *h, size_t size, size_t alignment, void *(*take)(size_t), void (*give)(void *))
{
	h->chunkfun.plain = take;
	h->freefun.plain = give;
	h->use_extra_arg = 0;
	return begin(h, size, alignment);
}

int _obstack_begin_1(struct obstack *h, size_t size, size_t alignment, void *(*take)(void *, size_t),
	void (*give)(void *, void *), void *argument)
{
	h->chunkfun.extra = take;
	h->freefun.extra = give;
	h->extra_arg = argument;
	h->use_extra_arg = 1;
	return begin(h, size, alignment);
}

/* The object that grows moves into a chunk that has room for `more` of it. */
void _obstack_newchunk(struct obstack *h, size_t more)
{
	struct _obstack_chunk *old = h->chunk;
	size_t length = h->next_free - h->object_base;
	size_t around = sizeof *old + h->alignment_mask;
	size_t wanted = length + more + (length >> 3) + around + 100;
	/* All of them, if one is too large. */
	if (length + more < length || wanted < length + more)
		obstack_alloc_failed_handler();
	struct _obstack_chunk *chunk = take(h, wanted > h->chunk_size ? wanted : h->chunk_size);
	chunk->prev = old;
	h->chunk = chunk;
	h->chunk_limit = chunk->limit;
	char *base = beginning(h, chunk);
	memcpy(base, h->object_base, length);
	/* Nothing else was in it. */
	if (!h->maybe_empty_object && h->object_base == beginning(h, old)) {
		chunk->prev = old->prev;
		give(h, old);
	}
	h->object_base = base;
	h->next_free = base + length;
	h->maybe_empty_object = 0;
}

static int within(struct _obstack_chunk *chunk, char *object)
{
	return (uintptr_t)object > (uintptr_t)chunk && (uintptr_t)object <= (uintptr_t)chunk->limit;
}

void _obstack_free(struct obstack *h, void *object)
{
	struct _obstack_chunk *chunk = h->chunk;
	while (chunk && !within(chunk, object)) {
		struct _obstack_chunk *before = chunk->prev;
		give(h, chunk);
		chunk = before;
		h->maybe_empty_object = 1;
	}
	h->chunk = chunk;
	if (chunk) {
		h->object_base = h->next_free = object;
		h->chunk_limit = chunk->limit;
	} else if (object) {
		/* No object of this stack. */
		abort();
	}
}

int _obstack_allocated_p(struct obstack *h, void *object)
{
	struct _obstack_chunk *chunk = h->chunk;
	while (chunk && !within(chunk, object))
		chunk = chunk->prev;
	return chunk != 0;
}

size_t _obstack_memory_used(struct obstack *h)
{
	size_t sum = 0;
	for (struct _obstack_chunk *chunk = h->chunk; chunk; chunk = chunk->prev)
		sum += chunk->limit - (char *)chunk;
	return sum;
}

int obstack_vprintf(struct obstack *h, const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	int length = vsnprintf(0, 0, format, again);
	va_end(again);
	if (length < 0)
		return length;
	obstack_make_room(h, (size_t)length + 1);
	vsnprintf(h->next_free, (size_t)length + 1, format, arguments);
	h->next_free += length;
	return length;
}

int obstack_printf(struct obstack *h, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = obstack_vprintf(h, format, arguments);
	va_end(arguments);
	return length;
}
