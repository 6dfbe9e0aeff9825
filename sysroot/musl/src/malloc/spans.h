/* The heap of a domain: blocks in spans, spans in chunks.
 *
 *   chunk, aligned to its size (4 MiB in a window)
 *   +--------+--------+----------------+-----------------------------+----
 *   | header | span:  | span: 4 units  | span: 8 units, one large    | ...
 *   | 1 unit | 16 B   | of 5 KiB each  | block of 120 KiB            |
 *   +--------+--------+----------------+-----------------------------+----
 *
 * A chunk has units (256 of 16 KiB). A span is a run of units that holds blocks
 * of one size class, or one large block. The header says for each unit which
 * span it belongs to, so that free() finds a block's size by its address.
 * A class takes blocks from one of its spans until that is full: the fast paths
 * of malloc and free are a few instructions each.
 *
 * Nothing here is trusted: who overwrites the heap's own data harms the domain
 * alone. Who includes this says how large things are, where chunks come from,
 * and what a failure does:
 *
 *   CHUNK, UNIT        bytes; powers of two, 16 units at least
 *   CLASSES            16 to 128 in steps of 16, then four sizes to each doubling, to
 *   SMALL              the size of the last class
 *   LARGE              the largest block that has units
 *   SPAN(size)         units of a span of blocks of so many bytes
 *   MOST               the largest block at all
 *   map_chunk, unmap_chunk, map_large, unmap_large, no_memory, bad_alignment */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define UNITS (CHUNK / UNIT)

struct block {
	struct block *next;
};

struct span {
	struct block *free;          /* blocks that were given back */
	char *fresh, *end;           /* blocks that never were in use, and their end */
	uint32_t size;               /* of a block, in bytes; of the one block of a large span */
	uint32_t used;               /* blocks in use */
	uint16_t units;              /* length; 0: the unit starts no span */
	uint8_t class;               /* CLASSES for a large span */
	uint8_t full;                /* not in the list of its class */
	struct span *next, *previous;
};

struct chunk {
	struct chunk *next;
	size_t mapped;               /* bytes, from the chunk's start */
	unsigned free_units, touched; /* units from `touched` on were never used, and are zero */
	int listed;                  /* in the list of those that may have room */
	uint8_t first[UNITS];        /* the unit in which the span of each unit starts */
	struct span spans[UNITS];    /* by first unit; a free run has units == 0 */
};

static struct span empty;                /* always full: saves a test in malloc */
static struct span *current[CLASSES];    /* the span that serves each class */
static struct chunk *chunks;
static uint8_t class_of[1024 / 16 + 1];  /* by size in units of 16, up to 1 KiB */
static uint32_t class_size[CLASSES];

/* Memory for a chunk, or null; what is behind its header may be anything if `touched` is UNITS. */
static struct chunk *map_chunk(void);
static void unmap_chunk(struct chunk *c);
/* A chunk's beginning with room for one block behind its first unit. */
static struct chunk *map_large(size_t whole);
static void unmap_large(struct chunk *c);
static void no_memory(void);
static void bad_alignment(void);

static struct chunk *chunk_of(const void *p)
{
	return (struct chunk *)((uintptr_t)p & ~(CHUNK - 1));
}

static struct span *span_of(const void *p)
{
	struct chunk *c = chunk_of(p);
	return &c->spans[c->first[((uintptr_t)p & (CHUNK - 1)) / UNIT]];
}

static char *start_of(struct span *s)
{
	struct chunk *c = chunk_of(s);
	return (char *)c + (size_t)(s - c->spans) * UNIT;
}

static unsigned find_class(size_t size)
{
	if (size <= 1024)
		return class_of[(size + 15) / 16];
	unsigned doubling = 63 - (unsigned)__builtin_clzll(size - 1);
	return 8 + (doubling - 7) * 4 + (unsigned)((size - 1) >> (doubling - 2) & 3);
}

__attribute__((cold)) static void prepare(void)
{
	for (unsigned i = 0; i < CLASSES; i++) {
		class_size[i] = i < 8 ? (i + 1) * 16 : (uint32_t)(5 + (i - 8) % 4) << (5 + (i - 8) / 4);
		current[i] = &empty;
	}
	for (unsigned i = 1, class = 0; i <= 1024 / 16; i++) {
		if (i * 16 > class_size[class])
			class++;
		class_of[i] = (uint8_t)class;
	}
	empty.full = 1;
}

/* The first run of that many free units; 0, where the header is, if there is none. */
static unsigned find_run(const struct chunk *c, unsigned units)
{
	unsigned unit = 1;
	while (unit + units <= UNITS) {
		unsigned length = 0;
		while (length < units && c->first[unit + length] == 0)
			length++;
		if (length == units)
			return unit;
		unit += length;
		unit += c->spans[c->first[unit]].units;
	}
	return 0;
}

static void enlist_chunk(struct chunk *c)
{
	c->listed = 1;
	c->next = chunks;
	chunks = c;
}

static struct span *take_units(unsigned units)
{
	struct chunk *c, **link = &chunks;
	unsigned unit = 0;
	while ((c = *link)) {
		if (c->free_units >= units && (unit = find_run(c, units)))
			break;
		/* A full one is looked at once. */
		if (c->free_units == 0) {
			*link = c->next;
			c->listed = 0;
		} else
			link = &c->next;
	}
	if (!c) {
		c = map_chunk();
		if (!c)
			return 0;
		c->mapped = CHUNK;
		c->free_units = UNITS - 1;
		enlist_chunk(c);
		unit = 1;
	}
	c->free_units -= units;
	memset(c->first + unit, (int)unit, units);
	struct span *s = &c->spans[unit];
	s->units = (uint16_t)units;
	return s;
}

static void give_units(struct span *s)
{
	struct chunk *c = chunk_of(s);
	unsigned unit = (unsigned)(s - c->spans);
	if (c->touched < unit + s->units)
		c->touched = unit + s->units;
	c->free_units += s->units;
	memset(c->first + unit, 0, s->units);
	s->units = 0;
	if (!c->listed)
		enlist_chunk(c);
	/* One empty chunk is kept. */
	if (c->free_units == UNITS - 1 && chunks->next) {
		struct chunk **link = &chunks;
		while (*link != c)
			link = &(*link)->next;
		*link = c->next;
		unmap_chunk(c);
	}
}

static void enlist(struct span *s)
{
	struct span *head = current[s->class];
	s->full = 0;
	s->previous = 0;
	s->next = head == &empty ? 0 : head;
	if (s->next)
		s->next->previous = s;
	current[s->class] = s;
}

static void delist(struct span *s)
{
	if (s->previous)
		s->previous->next = s->next;
	else
		current[s->class] = s->next ? s->next : &empty;
	if (s->next)
		s->next->previous = s->previous;
}

static void *from_fresh(struct span *s)
{
	char *p = s->fresh;
	if ((size_t)(s->end - p) < s->size)
		return 0;
	s->fresh = p + s->size;
	s->used++;
	return p;
}

/* The current span of the class has no block on its free list. */
__attribute__((noinline)) static void *slow_malloc(unsigned class)
{
	for (struct span *s; (s = current[class]) != &empty;) {
		struct block *b = s->free;
		if (b) {
			s->free = b->next;
			s->used++;
			return b;
		}
		void *p = from_fresh(s);
		if (p)
			return p;
		delist(s);
		s->full = 1;
	}
	uint32_t size = class_size[class];
	struct span *s = take_units(SPAN(size));
	if (!s) {
		no_memory();
		return 0;
	}
	s->free = 0;
	s->fresh = start_of(s);
	s->end = s->fresh + s->units * UNIT;
	s->size = size;
	s->used = 0;
	s->class = (uint8_t)class;
	enlist(s);
	return from_fresh(s);
}

/* A large block: units of its own, or a mapping of its own. */
__attribute__((noinline)) static void *large_malloc(size_t size, int *zeroed)
{
	if (size > PTRDIFF_MAX - 2 * CHUNK) {
		no_memory();
		return 0;
	}
	struct span *s;
	if (size <= LARGE) {
		s = take_units((unsigned)((size + UNIT - 1) / UNIT));
		if (s)
			*zeroed = (unsigned)(s - chunk_of(s)->spans) >= chunk_of(s)->touched;
	} else {
		size_t whole = (size + UNIT + 4095) & ~(size_t)4095;
		struct chunk *c = map_large(whole);
		s = c ? &c->spans[1] : 0;
		if (c) {
			c->mapped = whole;
			memset(c->first + 1, 1, UNITS - 1);
			*zeroed = 1;
		}
	}
	if (!s) {
		no_memory();
		return 0;
	}
	s->class = CLASSES;
	s->used = 1;
	s->size = (uint32_t)size;
	struct chunk *c = chunk_of(s);
	if (c->touched && c->touched < (unsigned)(s - c->spans) + s->units)
		c->touched = (unsigned)(s - c->spans) + s->units;
	return start_of(s);
}

/* Bytes from `p` to the end of its block. */
static size_t room(struct span *s, char *p)
{
	if (s->class < CLASSES)
		return s->size;
	size_t whole = s->units ? s->units * UNIT : chunk_of(s)->mapped - UNIT;
	return whole - (size_t)(p - start_of(s));
}

__attribute__((noinline)) static void slow_free(struct span *s)
{
	if (s->class == CLASSES) {
		if (s->units)
			give_units(s);
		else
			unmap_large(chunk_of(s));
	} else if (s->full) {
		enlist(s);
	} else if (s->used == 0 && (s->next || s->previous)) {
		/* The last span of a class stays. */
		delist(s);
		give_units(s);
	}
}

static inline void *allocate(size_t size)
{
	if (size > SMALL) {
		int zeroed;
		return large_malloc(size, &zeroed);
	}
	unsigned class = find_class(size ? size : 1);
	struct span *s = current[class];
	if (!s) {
		prepare();
		return allocate(size);
	}
	struct block *b = s->free;
	if (!b)
		return slow_malloc(class);
	s->free = b->next;
	s->used++;
	return b;
}

static inline void release(void *p)
{
	if (!p)
		return;
	struct span *s = span_of(p);
	struct block *b = p;
	if (s->class < CLASSES) {
		b->next = s->free;
		s->free = b;
		if (--s->used && !s->full)
			return;
	}
	slow_free(s);
}

/* Grows a large span into the free units behind it. */
static int extend(struct span *s, size_t size)
{
	struct chunk *c = chunk_of(s);
	unsigned unit = (unsigned)(s - c->spans), wanted = (unsigned)((size + UNIT - 1) / UNIT);
	if (!s->units || size > LARGE || unit + wanted > UNITS)
		return 0;
	for (unsigned i = unit + s->units; i < unit + wanted; i++)
		if (c->first[i])
			return 0;
	c->free_units -= wanted - s->units;
	memset(c->first + unit + s->units, (int)unit, wanted - s->units);
	s->units = (uint16_t)wanted;
	if (c->touched < unit + wanted)
		c->touched = unit + wanted;
	return 1;
}

static void *reallocate(void *p, size_t size)
{
	if (!p)
		return allocate(size);
	struct span *s = span_of(p);
	size_t has = room(s, p);
	/* Kept while it fits and is not mostly empty. */
	if (size <= has && (size >= has / 4 || has <= 64))
		return p;
	if (s->class == CLASSES && size > has && extend(s, size + (size_t)((char *)p - start_of(s))))
		return p;
	/* A block that grows will grow again. */
	size_t asked = size > has && size > 1024 ? size + size / 8 : size;
	if (asked > MOST)
		asked = size;
	void *moved = allocate(asked < size ? size : asked);
	if (!moved)
		return 0;
	memcpy(moved, p, size < has ? size : has);
	release(p);
	return moved;
}

/* Blocks of a class whose size is a multiple of the alignment are aligned, as
 * their span is; so is a large block. Beyond a unit, a part of one is. */
static void *allocate_aligned(size_t alignment, size_t size)
{
	if (alignment & (alignment - 1) || !alignment) {
		bad_alignment();
		return 0;
	}
	if (alignment > LARGE || size > PTRDIFF_MAX - CHUNK) {
		no_memory();
		return 0;
	}
	if (alignment <= 16)
		return allocate(size);
	if (alignment > UNIT) {
		char *p = allocate((size > SMALL ? size : SMALL) + alignment);
		return p ? p + (-(uintptr_t)p & (alignment - 1)) : 0;
	}
	/* The powers of two are classes. */
	size_t power = alignment;
	while (power < size)
		power *= 2;
	return allocate(power <= SMALL ? power : size);
}
