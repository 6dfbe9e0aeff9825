/* zlib at level 6: deflate and inflate the text on standard input. */
#include "bench.h"
#include "zlib.h"

static uint8_t *text, *packed, *unpacked;
static size_t length;

static void prepare(void) {
    text = bench_input(&length);
    packed = malloc(compressBound((uLong)length));
    unpacked = malloc(length);
    if (!packed || !unpacked)
        exit(2);
}

static uint64_t once(uint64_t i) {
    uLongf packed_length = compressBound((uLong)length), unpacked_length = (uLongf)length;
    text[i % length] ^= 1;
    if (compress2(packed, &packed_length, text, (uLong)length, 6) != Z_OK ||
        uncompress(unpacked, &unpacked_length, packed, packed_length) != Z_OK || memcmp(text, unpacked, length) != 0) {
        fputs("bench: zlib did not give the text back\n", stderr);
        exit(2);
    }
    return (uint64_t)packed_length << 32 | crc32(0, packed, (uInt)packed_length);
}

BENCH_MAIN(prepare(), once(i))
