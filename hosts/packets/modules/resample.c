/* Audio to half the bits: two neighbouring samples (16 bits, little endian, as most sound cards have them) become their
 * mean, so that the rate is half. Samples begin where the payload of UDP does.
 *     kind = "transcoder", filter = "ip and udp and dst port 5004 and not fragment" */
#include "packets.h"

static int sample(const struct packets_frame *frame, uint32_t at)
{
	return (int16_t)(uint16_t)(frame->bytes[at] | frame->bytes[at + 1] << 8);
}

int packets_next(struct packets_frame *frame)
{
	uint32_t to = frame->payload, pairs;

	if (frame->payload == PACKETS_NONE || frame->end < frame->payload || frame->end > PACKETS_ROOM)
		return PACKETS_PASS;
	pairs = (frame->end - frame->payload) / 4;
	if (pairs == 0)
		return PACKETS_PASS;
	for (uint32_t i = 0; i < pairs; i++) {
		int mean = (sample(frame, to + 4 * i) + sample(frame, to + 4 * i + 2)) >> 1;

		frame->bytes[to + 2 * i] = (unsigned char)mean;
		frame->bytes[to + 2 * i + 1] = (unsigned char)(mean >> 8);
	}
	frame->end = to + 2 * pairs;
	frame->length = frame->end;
	return PACKETS_CHANGED;
}
