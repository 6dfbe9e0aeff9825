/* Forward error correction, the sender's side: each byte that UDP carries becomes two, which survive a wrong bit each.
 * A payload that would not fit into a frame any more goes in two.
 *     kind = "transcoder", filter = "ip and udp and dst port 5001 and not fragment" */
#include "packets.h"
#include "hamming.h"
#include <string.h>

#define MOST 1400 /* bytes of a coded payload, its head included */

static uint8_t next_id;

/* The frame's headers, then a coded part of the payload: its length. */
static uint32_t coded(unsigned char *to, const struct packets_frame *frame, uint32_t from, uint32_t length, int part, int parts)
{
	struct fec_head head = { FEC_MAGIC, next_id, part, parts };
	const unsigned char *heads = (const unsigned char *)&head;
	unsigned char *at = to + frame->payload;

	memcpy(to, frame->bytes, frame->payload);
	for (unsigned i = 0; i < sizeof head; i++) {
		*at++ = hamming_encode(heads[i] & 15);
		*at++ = hamming_encode(heads[i] >> 4);
	}
	for (uint32_t i = 0; i < length; i++) {
		unsigned char byte = frame->bytes[frame->payload + from + i];
		*at++ = hamming_encode(byte & 15);
		*at++ = hamming_encode(byte >> 4);
	}
	return at - to;
}

int packets_next(struct packets_frame *frame)
{
	static unsigned char one[PACKETS_ROOM], other[PACKETS_ROOM];
	uint32_t length, first, ends[2];

	if (frame->payload == PACKETS_NONE || frame->end < frame->payload || frame->end > frame->length)
		return PACKETS_PASS;
	length = frame->end - frame->payload;
	if (length > 2 * (MOST / 2 - 4))
		return PACKETS_PASS;
	first = length <= MOST / 2 - 4 ? length : length / 2;
	ends[0] = coded(one, frame, 0, first, 0, first == length ? 1 : 2);
	if (first < length) {
		ends[1] = coded(other, frame, first, length - first, 1, 2);
		packets_emit(other, ends[1], ends[1]);
	}
	memcpy(frame->bytes, one, ends[0]);
	frame->length = frame->end = ends[0];
	next_id++;
	return PACKETS_CHANGED;
}
