/* A table of flows: who talks to whom, by addresses, protocol and ports. Tells after each thousand packets how many
 * flows there are, how many packets the largest has, and how many packets found no room.
 *     kind = "monitor", filter = "ip and (udp or tcp)", sees = 28 */
#include "packets.h"

#define FLOWS 1024
#define TRIES 8

struct flow {
	uint32_t source, destination, ports, protocol;
	unsigned long packets;
};

static struct flow table[FLOWS];
static unsigned long packets, flows, largest, homeless;

static uint32_t number(const struct packets_frame *frame, uint32_t at)
{
	return (uint32_t)frame->bytes[at] << 24 | (uint32_t)frame->bytes[at + 1] << 16 |
	       (uint32_t)frame->bytes[at + 2] << 8 | (uint32_t)frame->bytes[at + 3];
}

static void count(struct flow *flow)
{
	flow->packets++;
	if (flow->packets > largest)
		largest = flow->packets;
}

static void find(uint32_t source, uint32_t destination, uint32_t ports, uint32_t protocol)
{
	uint32_t hash = (source ^ destination * 0x9e3779b1 ^ ports * 0x85ebca6b ^ protocol) * 0xc2b2ae35;
	uint32_t place = hash >> 22;

	for (uint32_t tries = 0; tries < TRIES; tries++) {
		struct flow *flow = &table[(place + tries) % FLOWS];

		if (flow->packets == 0) {
			flow->source = source;
			flow->destination = destination;
			flow->ports = ports;
			flow->protocol = protocol;
			flows++;
		} else if (flow->source != source || flow->destination != destination || flow->ports != ports ||
			   flow->protocol != protocol) {
			continue;
		}
		count(flow);
		return;
	}
	homeless++;
}

int packets_next(struct packets_frame *frame)
{
	/* Without options the ports lie behind twenty bytes; a later piece has none. */
	if (frame->length < 24 || frame->bytes[0] != 0x45 || ((frame->bytes[6] & 0x1f) | frame->bytes[7]) != 0)
		return PACKETS_PASS;
	find(number(frame, 12), number(frame, 16), number(frame, 20), frame->bytes[9]);
	packets++;
	if (packets % 1000 == 0)
		packets_tell(flows, largest, homeless);
	return PACKETS_PASS;
}
