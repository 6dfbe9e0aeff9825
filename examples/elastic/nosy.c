/* A monitor that looks where it may not. */
static unsigned seen;

void OKE_monitor_handle_packet(const struct packet *packet)
{
	if (packet->source == 0x0a000001)
		seen++;
	seen += packet->behind[packet->service]; /* checked when it runs */
	seen += ((const unsigned *)packet)[3];
	give_back();
	__asm__("syscall");
}

void OKE_monitor_report(struct report *report)
{
	report->packets = seen;
	report->last = 7;
}
