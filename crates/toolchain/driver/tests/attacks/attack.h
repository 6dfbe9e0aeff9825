/* What the attacks are given. Without the wall (PLAIN) the functions of the host are pointers that the test sets. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef PLAIN
#define HOST(type, name, ...) type (*name)(__VA_ARGS__)
#else
#define HOST(type, name, ...) extern type name(__VA_ARGS__)
#endif

/* Each attack is `long name(long a, long b, long c)`. */
#define ATTACK(name) __attribute__((noinline)) long name(long a, long b, long c)
#define AT(type, address) (*(volatile type *)(address))
