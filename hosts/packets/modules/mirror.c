/* The paper's forwarding module: tunnels a copy of each frame to another node, and lets the frame go on. The copy lies
 * in a datagram as VXLAN has it (RFC 7348), so that the other node's system can take it out again. What is longer than
 * the tunnel is cut. Built with -DMIRROR_TO=... and -DMIRROR_FROM=..., addresses as numbers.
 *     kind = "transcoder", filter = "ip and tcp and dst port 80" */
#include "packets.h"

#ifndef MIRROR_TO
#define MIRROR_TO 0x0a090063 /* 10.9.0.99 */
#endif
#ifndef MIRROR_FROM
#define MIRROR_FROM 0x0a0900fe /* 10.9.0.254 */
#endif
#define PORT 4789
#define NETWORK 42
/* Ethernet, IPv4, UDP, VXLAN. */
#define BEFORE (14 + 20 + 8 + 8)
#define MOST (1514 - BEFORE)

static void two(struct packets_frame *copy, uint32_t at, uint32_t value)
{
	copy->bytes[at] = (unsigned char)(value >> 8);
	copy->bytes[at + 1] = (unsigned char)value;
}

static void four(struct packets_frame *copy, uint32_t at, uint32_t value)
{
	two(copy, at, value >> 16);
	two(copy, at + 2, value);
}

int packets_next(struct packets_frame *frame)
{
	uint32_t length = frame->length < MOST ? frame->length : MOST;
	struct packets_frame *copy;

	if (length < 14)
		return PACKETS_PASS;
	copy = packets_another();
	if (!copy)
		return PACKETS_PASS;
	/* To the same neighbour as the frame. */
	for (uint32_t i = 0; i < 12; i++)
		copy->bytes[i] = frame->bytes[i];
	two(copy, 12, 0x0800);
	four(copy, 14, 0x45000000);
	four(copy, 18, 0x00000000);
	four(copy, 22, 0x40110000);
	four(copy, 26, MIRROR_FROM);
	four(copy, 30, MIRROR_TO);
	two(copy, 34, PORT);
	two(copy, 36, PORT);
	four(copy, 38, 8 << 16);
	four(copy, 42, 0x08000000);
	four(copy, 46, NETWORK << 8);
	for (uint32_t i = 0; i < length; i++)
		copy->bytes[BEFORE + i] = frame->bytes[i];
	copy->length = BEFORE + length;
	copy->end = copy->length;
	packets_emit_frame(copy);
	return PACKETS_PASS;
}
