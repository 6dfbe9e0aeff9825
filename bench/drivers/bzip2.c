/* bzip2 with blocks of 300 KB: compress and decompress the text on standard input. */
#include "bench.h"
#include "bzlib.h"

static char *text, *packed, *unpacked;
static size_t length, room;

/* The library is built without stdio and asks for this. */
void bz_internal_error(int code) {
    fprintf(stderr, "bench: bzip2 internal error %d\n", code);
    exit(2);
}

static void prepare(void) {
    text = (char *)bench_input(&length);
    room = length + length / 100 + 600;
    packed = malloc(room);
    unpacked = malloc(length);
    if (!packed || !unpacked)
        exit(2);
}

static uint64_t once(uint64_t i) {
    unsigned packed_length = (unsigned)room, unpacked_length = (unsigned)length;
    text[i % length] ^= 1;
    if (BZ2_bzBuffToBuffCompress(packed, &packed_length, text, (unsigned)length, 3, 0, 0) != BZ_OK ||
        BZ2_bzBuffToBuffDecompress(unpacked, &unpacked_length, packed, packed_length, 0, 0) != BZ_OK ||
        memcmp(text, unpacked, length) != 0) {
        fputs("bench: bzip2 did not give the text back\n", stderr);
        exit(2);
    }
    uint64_t sum = packed_length;
    for (unsigned at = 0; at < packed_length; at += 97)
        sum = bench_mix(sum, (uint8_t)packed[at]);
    return sum;
}

BENCH_MAIN(prepare(), once(i))
