/* Hamming's code of eight bits for four: it repairs one wrong bit of each byte, and sees two. */
#ifndef HAMMING_H
#define HAMMING_H

#include <stdint.h>

static uint8_t parity(uint8_t byte)
{
	byte ^= byte >> 4;
	return 0x6996 >> (byte & 15) & 1;
}

/* Bits 1 2 4 are parities of the positions that have that bit in their number, bit 0 is the parity of all. */
static uint8_t hamming_encode(uint8_t nibble)
{
	uint8_t code = (nibble & 1) << 3 | (nibble >> 1 & 7) << 5;

	code |= parity(code & 0xaa) << 1;
	code |= parity(code & 0xcc) << 2;
	code |= parity(code & 0xf0) << 4;
	return code | parity(code);
}

/* 0 to 15, and whether a bit was repaired in *repaired; -1 if more than one bit is wrong. */
static int hamming_decode(uint8_t code, int *repaired)
{
	unsigned wrong = parity(code & 0xaa) | parity(code & 0xcc) << 1 | parity(code & 0xf0) << 2;

	*repaired = 0;
	if (parity(code)) {
		code ^= 1 << wrong;
		*repaired = 1;
	} else if (wrong) {
		return -1;
	}
	return (code >> 3 & 1) | (code >> 5 & 7) << 1;
}

/* In front of each coded payload: twice, so that a wrong bit in one is seen. */
struct fec_head {
	uint8_t magic, id, part, parts;
};
#define FEC_MAGIC 0xfe

#endif
