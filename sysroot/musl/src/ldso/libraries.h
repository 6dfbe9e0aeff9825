/* Libraries that dlopen() finds: part of the image since it was linked (crates/toolchain/driver/src/opened.rs), with
 * their constructors not yet run. */
#ifndef MULLION_LIBRARIES_H
#define MULLION_LIBRARIES_H
#include <features.h>
#include <stddef.h>

struct symbol {
	const char *name;
	void *value;
};

/* The functions of one section, in the order in which they run. */
struct functions {
	void (**first)(void), (**end)(void);
};

struct state {
	/* How often it was opened and not closed; whether its symbols are for all; whether its constructors have run. */
	long opened;
	int global, started;
};

struct library {
	/* Where it lay when the image was linked; empty for the program itself. A table ends with 0. */
	const char *path;
	/* By name. */
	const struct symbol *symbols;
	size_t count;
	/* Each ends with 0. Those of a library that is linked with the program are empty. */
	const struct functions *constructors, *destructors;
	struct state *state;
};

/* The linker's, in images that call dlopen(); the first is the program. */
extern weak const struct library __mullion_libraries[];

#endif
