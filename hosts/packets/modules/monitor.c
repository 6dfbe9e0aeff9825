/* The paper's monitor (OMA): it sees the first 28 bytes of packets to one destination, and tells after each thousand
 * how many there were, their bytes, and how many of UDP. What its role may see is for the configuration to say:
 *     kind = "monitor", filter = "dst host 10.0.0.2", sees = 28, locked = ["source"] */
#include "packets.h"

static unsigned long packets, bytes, udp;

int packets_next(struct packets_frame *frame)
{
	if (frame->length < 20 || frame->bytes[0] >> 4 != 4)
		return PACKETS_PASS;
	packets++;
	bytes += (unsigned long)(frame->bytes[2] << 8 | frame->bytes[3]);
	if (frame->bytes[9] == 17)
		udp++;
	if (packets % 1000 == 0)
		packets_tell(packets, bytes, udp);
	return PACKETS_PASS;
}
