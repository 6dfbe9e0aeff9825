/* Who called whom how often, in code compiled with -pg: counted here, written to gmon.out when the program ends, for
 * gprof. Return addresses come from the gate that exceptions are unwound with. No timer interrupts a domain, so the
 * histogram of times is empty. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

hidden uint64_t __mullion_control_read(uint64_t depth);
extern hidden const char __etext[];

/* Where an image's code begins in its window (docs/window.md). */
enum { CODE = 0x20000 };

/* An arc: a place in the caller and one in the callee, each an offset in the window. An empty slot is 0. */
enum { ARCS = 1 << 16, TRIES = 256 };
static struct {
	uint64_t places, count;
} arcs[ARCS];
static int started, lost;

/* The records of gmon.out, as gprof reads them. */
struct header {
	char cookie[4];
	int32_t version;
	char spare[12];
} __attribute__((packed));
struct histogram {
	char tag;
	uint64_t low, high;
	uint32_t bins, rate;
	char dimension[15], letter;
	uint16_t bin;
} __attribute__((packed));
struct record {
	char tag;
	uint64_t caller, callee;
	uint32_t count;
} __attribute__((packed));

static void finish(void)
{
	char name[4096] = "gmon.out";
	const char *prefix = getenv("GMON_OUT_PREFIX");
	if (prefix)
		snprintf(name, sizeof name, "%s.%u", prefix, (unsigned)getpid());
	FILE *file = fopen(name, "w");
	if (!file) {
		fprintf(stderr, "profile: %s: %s\n", name, strerror(errno));
		return;
	}
	struct header header = {"gmon", 1, ""};
	fwrite(&header, sizeof header, 1, file);
	struct histogram histogram = {0, CODE, (uint32_t)(uintptr_t)__etext, 1, 100, "seconds", 's', 0};
	fwrite(&histogram, sizeof histogram, 1, file);
	for (int at = 0; at < ARCS; at++) {
		uint64_t places = __atomic_load_n(&arcs[at].places, __ATOMIC_RELAXED);
		uint64_t left = __atomic_load_n(&arcs[at].count, __ATOMIC_RELAXED);
		/* gprof adds up arcs between the same places. */
		while (left) {
			uint32_t part = left > UINT32_MAX ? UINT32_MAX : left;
			struct record record = {1, places >> 32, (uint32_t)places, part};
			fwrite(&record, sizeof record, 1, file);
			left -= part;
		}
	}
	if (lost)
		fprintf(stderr, "profile: %s: more than %d pairs of caller and callee; some calls are not in it\n", name, ARCS);
	if (ferror(file) | fclose(file))
		fprintf(stderr, "profile: %s: not written whole\n", name);
}

/* Called by mcount alone, which keeps the vector registers of the profiled function's arguments; here only the first
 * call may use any. */
__attribute__((noinline, target("general-regs-only"))) hidden void __mullion_count_call(void)
{
	if (!__atomic_exchange_n(&started, 1, __ATOMIC_RELAXED))
		atexit(finish);
	/* Depth 0 is in this function, 1 in mcount. */
	uint32_t callee = __mullion_control_read(2), caller = __mullion_control_read(3);
	uint64_t places = (uint64_t)caller << 32 | callee;
	uint64_t mixed = places * 0x9e3779b97f4a7c15;
	for (unsigned at = mixed >> 48, tries = 0; tries < TRIES; at++, tries++) {
		uint64_t found = 0;
		at %= ARCS;
		if (__atomic_compare_exchange_n(&arcs[at].places, &found, places, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || found == places) {
			__atomic_fetch_add(&arcs[at].count, 1, __ATOMIC_RELAXED);
			return;
		}
	}
	lost = 1;
}
