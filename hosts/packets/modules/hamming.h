/* Hamming's code of eight bits for four: it repairs one wrong bit of each byte, and sees two. */
#ifndef HAMMING_H
#define HAMMING_H

/* Bits 1, 2 and 4 are parities of the positions that have that bit in their number, bit 0 is the parity of all; the
 * nibble lies in bits 3, 5, 6 and 7. */
static const uint8_t hamming_codes[16] = {
	0x00, 0x0f, 0x33, 0x3c, 0x55, 0x5a, 0x66, 0x69, 0x96, 0x99, 0xa5, 0xaa, 0xc3, 0xcc, 0xf0, 0xff,
};

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

/* In front of each coded payload: what it is, which datagram's, which part of how many. */
#define FEC_HEAD 4
#define FEC_MAGIC 0xfe

#endif
