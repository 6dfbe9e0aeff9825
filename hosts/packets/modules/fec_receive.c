/* Forward error correction, the receiver's side: repairs, puts parts together, and tells after each hundred frames how
 * many there were, how many bits it repaired, and how many frames were beyond repair.
 *     kind = "transcoder", filter = "ip and udp and dst port 5001 and not fragment" */
#include "packets.h"
#include "hamming.h"

#define MOST 2048 /* bytes of a part */

struct part {
	int is_there;
	uint8_t part;
	uint32_t length;
	uint8_t bytes[MOST];
};

static struct part parts[256];
static unsigned long frames, repaired, lost;

/* A byte of two codes in its low bits; beyond them what became of each. */
static unsigned byte_at(const struct packets_frame *frame, uint32_t at)
{
	unsigned low = hamming_nibbles[frame->bytes[at]], high = hamming_nibbles[frame->bytes[at + 1]];

	return (low & 15) | (high & 15) << 4 | (low & 0xf0) << 4 | (high & 0xf0) << 8;
}

#define REPAIRED_LOW (HAMMING_REPAIRED << 4)
#define REPAIRED_HIGH (HAMMING_REPAIRED << 8)
#define HOPELESS (HAMMING_HOPELESS << 4 | HAMMING_HOPELESS << 8)

static unsigned long bits(unsigned byte)
{
	return (unsigned long)((byte & REPAIRED_LOW) != 0) + (unsigned long)((byte & REPAIRED_HIGH) != 0);
}

/* Puts what was decoded, and lies where the payload begins, together with the other part of its datagram. */
static int joined(struct packets_frame *frame, struct part *other, uint8_t part, uint32_t length)
{
	uint32_t to = frame->payload;

	if (!other->is_there || other->part == part) {
		for (uint32_t i = 0; i < length; i++)
			other->bytes[i] = frame->bytes[to + i];
		other->length = length;
		other->part = part;
		other->is_there = 1;
		return PACKETS_DROP;
	}
	other->is_there = 0;
	if (part == 0) {
		for (uint32_t i = 0; i < other->length; i++)
			frame->bytes[to + length + i] = other->bytes[i];
	} else {
		for (uint32_t i = length; i > 0; i--)
			frame->bytes[to + other->length + i - 1] = frame->bytes[to + i - 1];
		for (uint32_t i = 0; i < other->length; i++)
			frame->bytes[to + i] = other->bytes[i];
	}
	frame->end = to + length + other->length;
	frame->length = frame->end;
	return PACKETS_CHANGED;
}

int packets_next(struct packets_frame *frame)
{
	uint32_t length, to = frame->payload;
	unsigned head[FEC_HEAD], all = 0;
	unsigned long found = 0;

	hamming_prepare();
	if (to > PACKETS_ROOM - 2 * MOST - 2 * FEC_HEAD || frame->end < to || frame->end > frame->length)
		return PACKETS_PASS;
	length = (frame->end - to) / 2;
	if (length < FEC_HEAD || length - FEC_HEAD > MOST)
		return PACKETS_PASS;
	length -= FEC_HEAD;
	frames++;
	if (frames % 100 == 0)
		packets_tell(frames, repaired, lost);
	for (uint32_t i = 0; i < FEC_HEAD; i++) {
		head[i] = byte_at(frame, to + 2 * i);
		all |= head[i];
		found += bits(head[i]);
	}
	if ((all & HOPELESS) == 0 && (head[0] & 0xff) != FEC_MAGIC)
		return PACKETS_PASS;
	for (uint32_t i = 0; i < length; i++) {
		unsigned byte = byte_at(frame, to + 2 * FEC_HEAD + 2 * i);

		all |= byte;
		found += bits(byte);
		frame->bytes[to + i] = (uint8_t)byte;
	}
	if ((all & HOPELESS) != 0) {
		lost++;
		return PACKETS_DROP;
	}
	repaired += found;
	if ((head[3] & 0xff) == 2)
		return joined(frame, &parts[head[1] & 0xff], (uint8_t)head[2], length);
	frame->end = to + length;
	frame->length = frame->end;
	return PACKETS_CHANGED;
}
