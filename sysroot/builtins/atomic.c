/* libatomic's functions: operations of the sizes that the machine has, for who calls them by name, and of all other
 * sizes under one lock. (compiler-rt's file wants clang's built-in functions.) Everything is sequentially consistent,
 * which every weaker order that may be asked for permits. The names belong to gcc's own functions, so they are given as
 * assembler names. */
#include <fenv.h>
#include <stdbool.h>
#include <string.h>

#define NAMED(name) __asm__("__atomic_" #name)
#define STRONG __ATOMIC_SEQ_CST

static bool taken;

static void lock(void)
{
	while (__atomic_test_and_set(&taken, STRONG))
		;
}

static void unlock(void)
{
	__atomic_clear(&taken, STRONG);
}

#define CHANGE(size, type, operation) \
	type fetch_##operation##_##size(type *, type, int) NAMED(fetch_##operation##_##size); \
	type operation##_fetch_##size(type *, type, int) NAMED(operation##_fetch_##size); \
	type fetch_##operation##_##size(type *place, type value, int order) \
	{ \
		return __atomic_fetch_##operation(place, value, STRONG); \
	} \
	type operation##_fetch_##size(type *place, type value, int order) \
	{ \
		return __atomic_##operation##_fetch(place, value, STRONG); \
	}

#define SIZE(size, type) \
	type load_##size(type *, int) NAMED(load_##size); \
	void store_##size(type *, type, int) NAMED(store_##size); \
	type exchange_##size(type *, type, int) NAMED(exchange_##size); \
	bool compare_exchange_##size(type *, type *, type, int, int) NAMED(compare_exchange_##size); \
	bool test_and_set_##size(type *, int) NAMED(test_and_set_##size); \
	type load_##size(type *place, int order) \
	{ \
		return __atomic_load_n(place, STRONG); \
	} \
	void store_##size(type *place, type value, int order) \
	{ \
		__atomic_store_n(place, value, STRONG); \
	} \
	type exchange_##size(type *place, type value, int order) \
	{ \
		return __atomic_exchange_n(place, value, STRONG); \
	} \
	bool compare_exchange_##size(type *place, type *expected, type desired, int success, int failure) \
	{ \
		return __atomic_compare_exchange_n(place, expected, desired, false, STRONG, STRONG); \
	} \
	bool test_and_set_##size(type *place, int order) \
	{ \
		return __atomic_exchange_n(place, 1, STRONG); \
	} \
	CHANGE(size, type, add) \
	CHANGE(size, type, sub) \
	CHANGE(size, type, and) \
	CHANGE(size, type, or) \
	CHANGE(size, type, xor) \
	CHANGE(size, type, nand)

SIZE(1, unsigned char)
SIZE(2, unsigned short)
SIZE(4, unsigned)
SIZE(8, unsigned long)

void load(size_t, void *, void *, int) NAMED(load);
void store(size_t, void *, void *, int) NAMED(store);
void exchange(size_t, void *, void *, void *, int) NAMED(exchange);
bool compare_exchange(size_t, void *, void *, void *, int, int) NAMED(compare_exchange);
bool is_lock_free(size_t, void *) NAMED(is_lock_free);

/* Whether the compiler's own code for objects of this size and place takes no lock. */
bool is_lock_free(size_t size, void *place)
{
	return size > 0 && size <= 8 && (size & (size - 1)) == 0 && ((unsigned long)place & (size - 1)) == 0;
}

/* Does `action` on the object as a number where it can be one. */
#define BY_SIZE(size, place, action) \
	if (is_lock_free(size, place)) \
		switch (size) { \
		case 1: { typedef unsigned char number; action } break; \
		case 2: { typedef unsigned short number; action } break; \
		case 4: { typedef unsigned number; action } break; \
		case 8: { typedef unsigned long number; action } break; \
		}

void load(size_t size, void *place, void *result, int order)
{
	BY_SIZE(size, place, number value = __atomic_load_n((number *)place, STRONG); memcpy(result, &value, sizeof value); return;)
	lock();
	memcpy(result, place, size);
	unlock();
}

void store(size_t size, void *place, void *from, int order)
{
	BY_SIZE(size, place, number value; memcpy(&value, from, sizeof value); __atomic_store_n((number *)place, value, STRONG); return;)
	lock();
	memcpy(place, from, size);
	unlock();
}

void exchange(size_t size, void *place, void *from, void *result, int order)
{
	BY_SIZE(size, place, number value; memcpy(&value, from, sizeof value);
		value = __atomic_exchange_n((number *)place, value, STRONG); memcpy(result, &value, sizeof value); return;)
	lock();
	/* `from` and `result` may be one object. */
	for (size_t i = 0; i < size; i++) {
		unsigned char next = ((unsigned char *)from)[i];
		((unsigned char *)result)[i] = ((unsigned char *)place)[i];
		((unsigned char *)place)[i] = next;
	}
	unlock();
}

bool compare_exchange(size_t size, void *place, void *expected, void *desired, int success, int failure)
{
	BY_SIZE(size, place, number value; number next; memcpy(&value, expected, sizeof value); memcpy(&next, desired, sizeof next);
		bool done = __atomic_compare_exchange_n((number *)place, &value, next, false, STRONG, STRONG);
		if (!done) memcpy(expected, &value, sizeof value);
		return done;)
	lock();
	bool equal = memcmp(place, expected, size) == 0;
	if (equal)
		memcpy(place, desired, size);
	else
		memcpy(expected, place, size);
	unlock();
	return equal;
}

typedef unsigned __int128 wide;

wide load_16(wide *, int) NAMED(load_16);
void store_16(wide *, wide, int) NAMED(store_16);
wide exchange_16(wide *, wide, int) NAMED(exchange_16);
bool compare_exchange_16(wide *, wide *, wide, int, int) NAMED(compare_exchange_16);
bool test_and_set_16(wide *, int) NAMED(test_and_set_16);

wide load_16(wide *place, int order)
{
	lock();
	wide value = *place;
	unlock();
	return value;
}

void store_16(wide *place, wide value, int order)
{
	lock();
	*place = value;
	unlock();
}

wide exchange_16(wide *place, wide value, int order)
{
	lock();
	wide before = *place;
	*place = value;
	unlock();
	return before;
}

bool compare_exchange_16(wide *place, wide *expected, wide desired, int success, int failure)
{
	return compare_exchange(sizeof desired, place, expected, &desired, success, failure);
}

bool test_and_set_16(wide *place, int order)
{
	return exchange_16(place, 1, order) != 0;
}

#define CHANGE_16(operation, after) \
	wide fetch_##operation##_16(wide *, wide, int) NAMED(fetch_##operation##_16); \
	wide operation##_fetch_16(wide *, wide, int) NAMED(operation##_fetch_16); \
	wide fetch_##operation##_16(wide *place, wide value, int order) \
	{ \
		lock(); \
		wide before = *place; \
		*place = after; \
		unlock(); \
		return before; \
	} \
	wide operation##_fetch_16(wide *place, wide value, int order) \
	{ \
		wide before = fetch_##operation##_16(place, value, order); \
		return after; \
	}

CHANGE_16(add, before + value)
CHANGE_16(sub, before - value)
CHANGE_16(and, before & value)
CHANGE_16(or, before | value)
CHANGE_16(xor, before ^ value)
CHANGE_16(nand, ~(before & value))

/* What `x += y` on an atomic floating-point object calls, with the exceptions of the round that counted. */
void feraise(int) NAMED(feraiseexcept);
void feraise(int exceptions)
{
	feraiseexcept(exceptions);
}
