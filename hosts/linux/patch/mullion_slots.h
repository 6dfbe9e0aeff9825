// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel passes to functions in tables of modules behind Mullion's word wall: the beginning of those ordinary modules that
 * have such tables, and no part of the patch.
 */

/* What the kernel has where an argument points to. Six of them are the arguments of a call; those that are left out have nothing. */
struct mullion_argument {
	/* So many bytes to read, and of these so many to write. */
	unsigned int reads;
	unsigned int writes;
	/* Or as many as the argument with this number before it says, from 1 on. */
	unsigned int counter;
	unsigned int how;
};

/* `slots.rs` has the same numbers. The last but one: the counter is where its argument points to. The last one ends with a zero. */
enum how { FIXED, READ_COUNTED, WRITE_COUNTED, WRITE_COUNTED_THERE, TEXT };

#define READS(bytes) { .reads = (bytes) }
#define WRITES(bytes) { .reads = (bytes), .writes = (bytes) }
#define READS_AS(number) { .counter = (number) + 1, .how = READ_COUNTED }
#define WRITES_AS(number) { .counter = (number) + 1, .how = WRITE_COUNTED }
#define WRITES_AS_AT(number) { .counter = (number) + 1, .how = WRITE_COUNTED_THERE }
#define READS_TEXT { .how = TEXT }

