/* zstd at levels 3 and 9: compress and decompress the text on standard input. */
#include "bench.h"
#include "zstd.h"

static uint8_t *text, *packed, *unpacked;
static size_t length, room;
static ZSTD_CCtx *compressor;
static ZSTD_DCtx *decompressor;

static void prepare(void) {
    text = bench_input(&length);
    room = ZSTD_compressBound(length);
    packed = malloc(room);
    unpacked = malloc(length);
    compressor = ZSTD_createCCtx();
    decompressor = ZSTD_createDCtx();
    if (!packed || !unpacked || !compressor || !decompressor)
        exit(2);
}

static uint64_t at_level(int level) {
    size_t size = ZSTD_compressCCtx(compressor, packed, room, text, length, level);
    if (ZSTD_isError(size) || ZSTD_decompressDCtx(decompressor, unpacked, length, packed, size) != length ||
        memcmp(text, unpacked, length) != 0) {
        fputs("bench: zstd did not give the text back\n", stderr);
        exit(2);
    }
    uint64_t sum = size;
    for (size_t at = 0; at < size; at += 97)
        sum = bench_mix(sum, packed[at]);
    return sum;
}

static uint64_t once(uint64_t i) {
    text[i % length] ^= 1;
    return bench_mix(at_level(3), at_level(9));
}

BENCH_MAIN(prepare(), once(i))
