/* Stacks of objects, as glibc has them: objects grow at the end of a chunk, and are freed from the last one on. */
#ifndef MULLION_OBSTACK_H
#define MULLION_OBSTACK_H

#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _obstack_chunk {
	char *limit;
	struct _obstack_chunk *prev;
	char contents[4];
};

struct obstack {
	size_t chunk_size;
	struct _obstack_chunk *chunk;
	char *object_base, *next_free, *chunk_limit;
	/* In the place of `next_free`, for whoever calls with a number. */
	union {
		size_t i;
		void *p;
	} temp;
	size_t alignment_mask;
	union {
		void *(*plain)(size_t);
		void *(*extra)(void *, size_t);
	} chunkfun;
	union {
		void (*plain)(void *);
		void (*extra)(void *, void *);
	} freefun;
	void *extra_arg;
	unsigned use_extra_arg : 1, maybe_empty_object : 1, alloc_failed : 1;
};

int _obstack_begin(struct obstack *, size_t, size_t, void *(*)(size_t), void (*)(void *));
int _obstack_begin_1(struct obstack *, size_t, size_t, void *(*)(void *, size_t), void (*)(void *, void *), void *);
void _obstack_newchunk(struct obstack *, size_t);
void _obstack_free(struct obstack *, void *);
int _obstack_allocated_p(struct obstack *, void *);
size_t _obstack_memory_used(struct obstack *);
int obstack_printf(struct obstack *, const char *, ...) __attribute__((__format__(__printf__, 2, 3)));
int obstack_vprintf(struct obstack *, const char *, __builtin_va_list) __attribute__((__format__(__printf__, 2, 0)));

extern void (*obstack_alloc_failed_handler)(void);
extern int obstack_exit_failure;

#ifdef __cplusplus
}
#endif

#define obstack_init(h) \
	_obstack_begin((h), 0, 0, (void *(*)(size_t))obstack_chunk_alloc, (void (*)(void *))obstack_chunk_free)
#define obstack_begin(h, size) \
	_obstack_begin((h), (size), 0, (void *(*)(size_t))obstack_chunk_alloc, (void (*)(void *))obstack_chunk_free)
#define obstack_specify_allocation(h, size, alignment, take, give) \
	_obstack_begin((h), (size), (alignment), (void *(*)(size_t))(take), (void (*)(void *))(give))
#define obstack_specify_allocation_with_arg(h, size, alignment, take, give, argument) \
	_obstack_begin_1((h), (size), (alignment), (void *(*)(void *, size_t))(take), (void (*)(void *, void *))(give), (argument))

#define obstack_base(h) ((void *)(h)->object_base)
#define obstack_next_free(h) ((void *)(h)->next_free)
#define obstack_chunk_size(h) ((h)->chunk_size)
#define obstack_alignment_mask(h) ((h)->alignment_mask)
#define obstack_memory_used(h) _obstack_memory_used(h)
#define obstack_object_size(h) \
	__extension__({ struct obstack const *__h = (h); (size_t)(__h->next_free - __h->object_base); })
#define obstack_room(h) \
	__extension__({ struct obstack const *__h = (h); (size_t)(__h->chunk_limit - __h->next_free); })
#define obstack_empty_p(h) \
	__extension__({ struct obstack const *__h = (h); !__h->chunk->prev && __h->next_free == (char *)( \
		((__UINTPTR_TYPE__)__h->chunk->contents + __h->alignment_mask) & ~(__UINTPTR_TYPE__)__h->alignment_mask); })
#define obstack_make_room(h, length) \
	__extension__({ struct obstack *__m = (h); size_t __n = (length); if (obstack_room(__m) < __n) _obstack_newchunk(__m, __n); (void)0; })
#define obstack_grow(h, from, length) \
	__extension__({ struct obstack *__o = (h); size_t __l = (length); obstack_make_room(__o, __l); \
		memcpy(__o->next_free, (from), __l); __o->next_free += __l; (void)0; })
#define obstack_grow0(h, from, length) \
	__extension__({ struct obstack *__o = (h); size_t __l = (length); obstack_make_room(__o, __l + 1); \
		memcpy(__o->next_free, (from), __l); __o->next_free += __l; *__o->next_free++ = 0; (void)0; })
#define obstack_1grow(h, value) \
	__extension__({ struct obstack *__o = (h); obstack_make_room(__o, 1); *__o->next_free++ = (char)(value); (void)0; })
#define obstack_ptr_grow(h, value) \
	__extension__({ const void *__v = (value); obstack_grow((h), &__v, sizeof __v); })
#define obstack_int_grow(h, value) \
	__extension__({ int __v = (value); obstack_grow((h), &__v, sizeof __v); })
#define obstack_blank(h, length) \
	__extension__({ struct obstack *__o = (h); size_t __l = (length); obstack_make_room(__o, __l); __o->next_free += __l; (void)0; })
#define obstack_1grow_fast(h, value) ((void)(*((h)->next_free)++ = (char)(value)))
#define obstack_ptr_grow_fast(h, value) \
	__extension__({ struct obstack *__o = (h); const void *__v = (value); memcpy(__o->next_free, &__v, sizeof __v); __o->next_free += sizeof __v; (void)0; })
#define obstack_int_grow_fast(h, value) \
	__extension__({ struct obstack *__o = (h); int __v = (value); memcpy(__o->next_free, &__v, sizeof __v); __o->next_free += sizeof __v; (void)0; })
#define obstack_blank_fast(h, length) ((void)((h)->next_free += (length)))
#define obstack_finish(h) \
	__extension__({ struct obstack *__f = (h); void *__made = __f->object_base; \
		if (__f->next_free == __made) __f->maybe_empty_object = 1; \
		__f->next_free = (char *)(((__UINTPTR_TYPE__)__f->next_free + __f->alignment_mask) & ~(__UINTPTR_TYPE__)__f->alignment_mask); \
		if (__f->next_free > __f->chunk_limit) __f->next_free = __f->chunk_limit; \
		__f->object_base = __f->next_free; __made; })
#define obstack_alloc(h, length) \
	__extension__({ struct obstack *__a = (h); obstack_blank(__a, (length)); obstack_finish(__a); })
#define obstack_copy(h, from, length) \
	__extension__({ struct obstack *__a = (h); obstack_grow(__a, (from), (length)); obstack_finish(__a); })
#define obstack_copy0(h, from, length) \
	__extension__({ struct obstack *__a = (h); obstack_grow0(__a, (from), (length)); obstack_finish(__a); })
#define obstack_free(h, object) _obstack_free((h), (object))

#endif
