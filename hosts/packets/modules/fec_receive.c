/* Forward error correction, the receiver's side: repairs, puts parts together, and tells after each hundred frames how
 * many there were, how many bits it repaired, and how many frames were beyond repair, or without their first parts.
 *     kind = "transcoder", filter = "ip and udp and dst port 5001 and not fragment" */
#include "packets.h"
#include "hamming.h"

/* The parts of a datagram that have come, in their order. */
struct pieces {
	uint32_t high, count;
	uint32_t lengths[FEC_PARTS];
	uint8_t bytes[FEC_PARTS][FEC_PART];
};

static struct pieces all_pieces[256];
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

/* Keeps a part, which lies where the payload begins; puts all together when the last one has come. Parts come in their
 * order, or not at all. */
static int joined(struct packets_frame *frame, struct pieces *pieces, uint32_t high, uint32_t part, uint32_t parts, uint32_t length)
{
	uint32_t to = frame->payload;

	if (part == 0) {
		pieces->count = 0;
		pieces->high = high;
	}
	if (part >= parts || parts > FEC_PARTS || pieces->count != part || pieces->high != high || length > FEC_PART) {
		lost++;
		return PACKETS_DROP;
	}
	for (uint32_t i = 0; i < length; i++)
		pieces->bytes[part][i] = frame->bytes[to + i];
	pieces->lengths[part] = length;
	pieces->count++;
	if (pieces->count < parts)
		return PACKETS_DROP;
	pieces->count = 0;
	for (uint32_t piece = 0; piece < parts; piece++)
		for (uint32_t i = 0; i < pieces->lengths[piece]; i++)
			frame->bytes[to++] = pieces->bytes[piece][i];
	frame->end = to;
	frame->length = to;
	return PACKETS_CHANGED;
}

int packets_next(struct packets_frame *frame)
{
	uint32_t length, to = frame->payload;
	unsigned head[FEC_HEAD], all = 0;
	unsigned long found = 0;

	hamming_prepare();
	if (to > PACKETS_ROOM - 4 * FEC_PART || frame->end < to || frame->end > frame->length)
		return PACKETS_PASS;
	length = (frame->end - to) / 2;
	if (length < FEC_HEAD || length - FEC_HEAD > FEC_PART)
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
	if ((head[3] & 0x0f) != 1)
		return joined(frame, &all_pieces[head[1] & 0xff], head[2] & 0xff, head[3] >> 4 & 15, head[3] & 15, length);
	frame->end = to + length;
	frame->length = frame->end;
	return PACKETS_CHANGED;
}
