/* Counts pieces of packets (the paper's second monitor). kind = "monitor", filter = "ip", sees = 20 */
#include "packets.h"
#include <stdio.h>

static unsigned long packets, pieces, last_pieces;

int packets_next(struct packets_frame *frame)
{
	char line[120];
	unsigned field;
	int length;

	if (frame->length < 20 || frame->bytes[0] >> 4 != 4)
		return PACKETS_PASS;
	field = frame->bytes[6] << 8 | frame->bytes[7];
	packets++;
	if (field & 0x3fff)
		pieces++;
	if (field & 0x1fff && !(field & 0x2000))
		last_pieces++;
	if (packets % 100 == 0) {
		length = snprintf(line, sizeof line, "%lu packets, %lu pieces of %lu others\n", packets, pieces, last_pieces);
		packets_report(line, length);
	}
	return PACKETS_PASS;
}
