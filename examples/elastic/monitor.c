/* Counts packets and fragments. It cannot see where they came from, and hands that on. */
static unsigned long packets, fragments;
static address_t last;

void OKE_monitor_handle_packet(const struct packet *packet)
{
	lock_table(); /* and forgets it */
	packets++;
	if (packet->fragment & (MORE_FRAGMENTS | OFFSET))
		fragments++;
	last = packet->source;
}

void OKE_monitor_report(struct report *report)
{
	report->packets = packets;
	report->fragments = fragments;
	report->last = last;
}
