/* Forward error correction, the sender's side: each byte that UDP carries becomes two, which survive a wrong bit each.
 * A payload that would not fit into a frame any more goes in two or three.
 *     kind = "transcoder", filter = "ip and udp and dst port 5001 and not fragment" */
#include "packets.h"
#include "hamming.h"

static uint32_t next_id;

static void put(struct packets_frame *to, uint32_t at, uint32_t byte)
{
	to->bytes[at] = hamming_codes[byte & 15];
	to->bytes[at + 1] = hamming_codes[byte >> 4 & 15];
}

/* Codes a part of the payload, from its end: so that it can be done in its place. Eight bytes at a time. Numbers are
 * compared so that gcc sees that no place lies beyond the room: in elastic C each access is checked otherwise. */
static void code(struct packets_frame *to, const struct packets_frame *from, uint32_t begin, uint32_t length, uint32_t part, uint32_t parts)
{
	uint32_t payload = from->payload, i = length;

	if (payload > PACKETS_ROOM - 4 * FEC_PART || begin > (FEC_PARTS - 1) * FEC_PART || length > FEC_PART)
		return;
	for (; i % 8 != 0; i--)
		put(to, payload + 2 * FEC_HEAD + 2 * i - 2, from->bytes[payload + begin + i - 1]);
	for (; i >= 8; i -= 8) {
		uint64_t eight = packets_eight(from, payload + begin + i - 8);

		packets_put_eight(to, payload + 2 * FEC_HEAD + 2 * i - 8, hamming_code(eight >> 32));
		packets_put_eight(to, payload + 2 * FEC_HEAD + 2 * i - 16, hamming_code(eight & 0xffffffff));
	}
	put(to, payload, FEC_MAGIC);
	put(to, payload + 2, next_id);
	put(to, payload + 4, next_id >> 8);
	put(to, payload + 6, part << 4 | parts);
	to->end = payload + 2 * FEC_HEAD + 2 * length;
	to->length = to->end;
}

int packets_next(struct packets_frame *frame)
{
	uint32_t length, parts, each;

	if (frame->payload > PACKETS_ROOM - 4 * FEC_PART || frame->end < frame->payload || frame->end > frame->length)
		return PACKETS_PASS;
	length = frame->end - frame->payload;
	if (length > FEC_PARTS * FEC_PART)
		return PACKETS_PASS;
	parts = length <= FEC_PART ? 1 : length <= 2 * FEC_PART ? 2 : 3;
	each = length / parts + (length % parts != 0);
	for (uint32_t part = 1; part < parts; part++) {
		struct packets_frame *other = packets_another();

		if (!other)
			return PACKETS_PASS;
		for (uint32_t i = 0; i < frame->payload; i++)
			other->bytes[i] = frame->bytes[i];
		code(other, frame, part * each, part + 1 < parts ? each : length - part * each, part, parts);
		packets_emit_frame(other);
	}
	code(frame, frame, 0, parts == 1 ? length : each, 0, parts);
	next_id++;
	return PACKETS_CHANGED;
}
