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

/* Places are compared so that gcc sees that none lies beyond the room: in elastic C each access is checked otherwise. */
int packets_next(struct packets_frame *frame)
{
	uint32_t to = frame->payload, end = frame->end, from = to, put;

	if (to > PACKETS_ROOM || end > PACKETS_ROOM || end < to || end - to < 4)
		return PACKETS_PASS;
	if (end >= 16) {
		for (; from <= end - 16; from += 16) {
			uint64_t low = means(packets_eight(frame, from)), high = means(packets_eight(frame, from + 8));

			packets_put_eight(frame, (from + to) / 2, (low | high << 32) ^ SIGNS);
		}
	}
	for (; from <= end - 4; from += 4) {
		int mean = (sample(frame, from) + sample(frame, from + 2)) >> 1;

		put = (from + to) / 2;
		frame->bytes[put] = (unsigned char)mean;
		frame->bytes[put + 1] = (unsigned char)(mean >> 8);
	}
	frame->end = (from + to) / 2;
	frame->length = frame->end;
	return PACKETS_CHANGED;
}
