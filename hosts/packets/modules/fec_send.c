/* Forward error correction, the sender's side: each byte that UDP carries becomes two, which survive a wrong bit each.
 * A payload that would not fit into a frame any more goes in two.
 *     kind = "transcoder", filter = "ip and udp and dst port 5001 and not fragment" */
#include "packets.h"
#include "hamming.h"

#define MOST 1400                       /* bytes of a coded payload, its head included */
#define PART (MOST / 2 - FEC_HEAD)      /* bytes of a payload that go into one frame */

static uint8_t next_id;
static struct packets_frame second;

static void put(struct packets_frame *to, uint32_t at, uint8_t byte)
{
	to->bytes[at] = hamming_codes[byte & 15];
	to->bytes[at + 1] = hamming_codes[byte >> 4];
}

/* Codes a part of the payload, from its end: so that it can be done in its place. */
static void code(struct packets_frame *to, const struct packets_frame *from, uint32_t begin, uint32_t length, uint8_t part, uint8_t parts)
{
	uint32_t payload = from->payload, at = payload + 2 * FEC_HEAD;

	for (uint32_t i = length; i > 0; i--)
		put(to, at + 2 * (i - 1), from->bytes[payload + begin + i - 1]);
	put(to, payload, FEC_MAGIC);
	put(to, payload + 2, next_id);
	put(to, payload + 4, part);
	put(to, payload + 6, parts);
	to->end = at + 2 * length;
	to->length = to->end;
}

int packets_next(struct packets_frame *frame)
{
	uint32_t length, first;

	if (frame->payload > PACKETS_ROOM - 2 * MOST || frame->end < frame->payload || frame->end > frame->length)
		return PACKETS_PASS;
	length = frame->end - frame->payload;
	if (length > 2 * PART)
		return PACKETS_PASS;
	first = length <= PART ? length : length / 2;
	if (first < length) {
		for (uint32_t i = 0; i < frame->payload; i++)
			second.bytes[i] = frame->bytes[i];
		code(&second, frame, first, length - first, 1, 2);
		packets_emit_frame(&second);
	}
	code(frame, frame, 0, first, 0, first == length ? 1 : 2);
	next_id++;
	return PACKETS_CHANGED;
}
