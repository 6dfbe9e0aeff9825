/* The paper's monitor (OMA): it sees the first 28 bytes of packets to one destination, and tells after each thousand
 * how many there were and how long they are. What its role may see is for the configuration to say:
 *     kind = "monitor", filter = "dst host 10.0.0.2", sees = 28, locked = ["source"] */
#include "packets.h"
#include <stdio.h>

static unsigned long packets, bytes, udp;

int packets_next(struct packets_frame *frame)
{
	char line[120];
	int length;

	if (frame->length < 20 || frame->bytes[0] >> 4 != 4)
		return PACKETS_PASS;
	packets++;
	bytes += frame->bytes[2] << 8 | frame->bytes[3];
	udp += frame->bytes[9] == 17;
	if (packets % 1000 == 0) {
		length = snprintf(line, sizeof line, "%lu packets, %lu bytes, %lu of UDP\n", packets, bytes, udp);
		packets_report(line, length);
	}
	return PACKETS_PASS;
}
