/* Audio to half the bits: two neighbouring samples (16 bits, little endian, as most sound cards have them) become their
 * mean, so that the rate is half. Samples begin where the payload of UDP does.
 *     kind = "transcoder", filter = "ip and udp and dst port 5004 and not fragment" */
#include "packets.h"

static int sample(const struct packets_frame *frame, uint32_t at)
{
	return (int16_t)(uint16_t)(frame->bytes[at] | frame->bytes[at + 1] << 8);
}

#define SIGNS 0x8000800080008000

/* Two means of four samples. Without their signs, sums of two have room between them; the means' are to be put back:
 * together with those of their neighbours, as a constant for each half would need a register that a window has not. */
static uint64_t means(uint64_t four)
{
	uint64_t sums, both = 0x0000ffff0000ffff;

	four ^= SIGNS;
	sums = ((four & both) + (four >> 16 & both)) >> 1 & both;
	return (sums | sums >> 16) & 0xffffffff;
}

int packets_next(struct packets_frame *frame)
{
	uint32_t to = frame->payload, pairs, i = 0;

	if (frame->payload == PACKETS_NONE || frame->end < frame->payload || frame->end > PACKETS_ROOM)
		return PACKETS_PASS;
	pairs = (frame->end - frame->payload) / 4;
	if (pairs == 0)
		return PACKETS_PASS;
	for (; i + 4 <= pairs; i += 4) {
		uint64_t low = means(packets_eight(frame, to + 4 * i)), high = means(packets_eight(frame, to + 4 * i + 8));

		packets_put_eight(frame, to + 2 * i, (low | high << 32) ^ SIGNS);
	}
	for (; i < pairs; i++) {
		int mean = (sample(frame, to + 4 * i) + sample(frame, to + 4 * i + 2)) >> 1;

		frame->bytes[to + 2 * i] = (unsigned char)mean;
		frame->bytes[to + 2 * i + 1] = (unsigned char)(mean >> 8);
	}
	frame->end = to + 2 * pairs;
	frame->length = frame->end;
	return PACKETS_CHANGED;
}
