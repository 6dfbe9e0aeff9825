/* Forward error correction, the receiver's side: repairs, puts parts together, and says what it repaired.
 *     kind = "transcoder", filter = "ip and udp and dst port 5001 and not fragment" */
#include "packets.h"
#include "hamming.h"
#include <stdio.h>
#include <string.h>

static unsigned long frames, repaired_bits, lost;

static struct part {
	int is_there;
	struct fec_head head;
	uint32_t length;
	unsigned char bytes[2048];
} parts[256];

static void tell(void)
{
	char line[120];
	int length;

	if (++frames % 100)
		return;
	length = snprintf(line, sizeof line, "%lu frames, %lu bits repaired, %lu beyond repair\n", frames, repaired_bits, lost);
	packets_report(line, length);
}

/* A byte of two codes; -1 if it is beyond repair. */
static int decoded(const unsigned char *at)
{
	int low, high, a, b;

	low = hamming_decode(at[0], &a);
	high = hamming_decode(at[1], &b);
	if (low < 0 || high < 0)
		return -1;
	repaired_bits += a + b;
	return low | high << 4;
}

int packets_next(struct packets_frame *frame)
{
	static struct part now;
	struct part *before;
	unsigned char *heads = (unsigned char *)&now.head;
	const unsigned char *at = frame->bytes + frame->payload;
	uint32_t length;
	int byte;

	if (frame->payload == PACKETS_NONE || frame->end < frame->payload || frame->end > frame->length)
		return PACKETS_PASS;
	length = (frame->end - frame->payload) / 2;
	if (length < sizeof now.head || length - sizeof now.head > sizeof now.bytes)
		return PACKETS_PASS;
	tell();
	for (uint32_t i = 0; i < length; i++, at += 2) {
		byte = decoded(at);
		if (byte < 0) {
			lost++;
			return PACKETS_DROP;
		}
		if (i < sizeof now.head)
			heads[i] = byte;
		else
			now.bytes[i - sizeof now.head] = byte;
	}
	if (now.head.magic != FEC_MAGIC)
		return PACKETS_PASS;
	now.length = length - sizeof now.head;
	now.is_there = 1;
	before = &parts[now.head.id];
	if (now.head.parts == 2) {
		struct part *first = now.head.part == 0 ? &now : before;
		struct part *second = now.head.part == 0 ? before : &now;

		if (!before->is_there || before->head.part == now.head.part) {
			*before = now;
			return PACKETS_DROP;
		}
		before->is_there = 0;
		memcpy(frame->bytes + frame->payload, first->bytes, first->length);
		memcpy(frame->bytes + frame->payload + first->length, second->bytes, second->length);
		frame->length = frame->end = frame->payload + first->length + second->length;
		return PACKETS_CHANGED;
	}
	memcpy(frame->bytes + frame->payload, now.bytes, now.length);
	frame->length = frame->end = frame->payload + now.length;
	return PACKETS_CHANGED;
}
