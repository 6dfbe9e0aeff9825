/* Checks by remainder, in the manner of CoreMark's crc (own code): a 16-bit one
 * bit by bit, and the 32-bit one of Ethernet through a table. */
#include "bench.h"

#define LENGTH 4096

static uint8_t data[LENGTH];
static uint32_t table[256];

static BENCH_CALL uint16_t crc16(const uint8_t *p, int length, uint16_t crc) {
    for (int i = 0; i < length; i++) {
        uint8_t byte = p[i];
        for (int bit = 0; bit < 8; bit++) {
            int carry = (byte ^ crc) & 1;
            crc = (uint16_t)(crc >> 1);
            if (carry)
                crc ^= 0xa001;
            byte >>= 1;
        }
    }
    return crc;
}

static BENCH_CALL uint32_t crc32(const uint8_t *p, int length, uint32_t crc) {
    crc = ~crc;
    for (int i = 0; i < length; i++)
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
    return ~crc;
}

static void prepare(void) {
    uint32_t seed = 31;
    for (int i = 0; i < LENGTH; i++)
        data[i] = (uint8_t)bench_random(&seed);
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
    }
}

static uint64_t both(uint64_t i) {
    data[i % LENGTH]++;
    return (uint64_t)crc16(data, LENGTH / 8, (uint16_t)i) << 32 | crc32(data, LENGTH, (uint32_t)i);
}

BENCH_MAIN(prepare(), both(i))
