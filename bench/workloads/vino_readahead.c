/* The read-ahead extension of VINO.
 *
 * MiSFIT 6.3 says: it names the disk block to read next by returning a value from
 * its memory region; little computation, so that protected loads and stores
 * dominate. Our reading: an application that knows its access pattern leaves the
 * pattern in the region; the file system calls the extension, a virtual function
 * on the open file, at every read. The block that was read is looked up at the
 * cursor, and the block that follows it in the pattern is the answer. */
#include "bench.h"

#define PATTERN 4096
#define READS 4096

struct file {
    uint32_t (*read_ahead)(struct file *, uint32_t block);
    uint32_t cursor, misses;
    uint32_t pattern[PATTERN];
};

static uint32_t read_ahead(struct file *file, uint32_t block) {
    uint32_t at = file->cursor;
    if (file->pattern[at] != block) {
        file->misses++;
        return block + 1;
    }
    at = (at + 1) % PATTERN;
    file->cursor = at;
    return file->pattern[at];
}

static struct file file = {.read_ahead = read_ahead};

static void prepare(void) {
    uint32_t seed = 5;
    for (int i = 0; i < PATTERN; i++)
        file.pattern[i] = bench_random(&seed) >> 8;
}

/* The file system's side: it calls whatever the open file carries. */
static BENCH_CALL uint64_t follow(struct file *f) {
    uint32_t block = f->pattern[f->cursor];
    uint64_t sum = 0;
    for (int i = 0; i < READS; i++) {
        sum += block;
        block = f->read_ahead(f, block);
    }
    return sum + f->misses;
}

BENCH_MAIN(prepare(), follow(&file))
