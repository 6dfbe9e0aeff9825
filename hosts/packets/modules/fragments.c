/* Counts pieces of packets (the paper's second monitor): tells after each hundred how many packets there were, how
 * many of them were pieces, and how many the last piece of theirs. kind = "monitor", filter = "ip", sees = 20 */
#include "packets.h"

static unsigned long packets, pieces, last_pieces;

int packets_next(struct packets_frame *frame)
{
	unsigned field;

	if (frame->length < 20 || frame->bytes[0] >> 4 != 4)
		return PACKETS_PASS;
	field = (unsigned)(frame->bytes[6] << 8 | frame->bytes[7]);
	packets++;
	if ((field & 0x3fff) != 0)
		pieces++;
	if ((field & 0x1fff) != 0 && (field & 0x2000) == 0)
		last_pieces++;
	if (packets % 100 == 0)
		packets_tell(packets, pieces, last_pieces);
	return PACKETS_PASS;
}
