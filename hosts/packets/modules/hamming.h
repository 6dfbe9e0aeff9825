/* Hamming's code of eight bits for four: it repairs one wrong bit of each byte, and sees two. */
#ifndef HAMMING_H
#define HAMMING_H

/* Bits 1, 2 and 4 are parities of the positions that have that bit in their number, bit 0 is the parity of all; the
 * nibble lies in bits 3, 5, 6 and 7. */
static const uint8_t hamming_codes[16] = {
	0x00, 0x0f, 0x33, 0x3c, 0x55, 0x5a, 0x66, 0x69, 0x96, 0x99, 0xa5, 0xaa, 0xc3, 0xcc, 0xf0, 0xff,
};

/* The codes of four bytes, eight at once: a nibble in each byte, and each parity by shifts of all of them. */
static inline uint64_t hamming_code(uint64_t four)
{
	uint64_t all, near, one = 0x0101010101010101;

	all = (four | four << 16) & 0x0000ffff0000ffff;
	all = (all | all << 8) & 0x00ff00ff00ff00ff;
	all = (all & 0x000f000f000f000f) | (all & 0x00f000f000f000f0) << 4;
	near = all ^ all >> 1;
	return (all & one) << 3 | (all & 0x0e0e0e0e0e0e0e0e) << 4 | ((near ^ all >> 2) & one) |
	       ((near ^ all >> 3) & one) << 1 | ((all ^ all >> 2 ^ all >> 3) & one) << 2 |
	       ((near >> 1 ^ all >> 3) & one) << 4;
}

/* Of each byte: the nibble, and whether a bit was repaired, or more than one is wrong. */
#define HAMMING_REPAIRED 0x10
#define HAMMING_HOPELESS 0x80
static uint8_t hamming_nibbles[256];
static int hamming_is_ready;

static void hamming_prepare(void)
{
	if (hamming_is_ready)
		return;
	hamming_is_ready = 1;
	for (unsigned byte = 0; byte < 256; byte++)
		hamming_nibbles[byte] = HAMMING_HOPELESS;
	for (unsigned nibble = 0; nibble < 16; nibble++) {
		hamming_nibbles[hamming_codes[nibble]] = (uint8_t)nibble;
		for (unsigned bit = 0; bit < 8; bit++)
			hamming_nibbles[hamming_codes[nibble] ^ 1u << bit] = (uint8_t)(nibble | HAMMING_REPAIRED);
	}
}

/* In front of each coded part: what it is, which datagram's (two bytes), and which part of how many. */
#define FEC_HEAD 4
#define FEC_MAGIC 0xfe
/* Bytes of a payload that go into one frame of 1514 bytes, and frames that a payload may take. */
#define FEC_PART 732
#define FEC_PARTS 3

#endif
