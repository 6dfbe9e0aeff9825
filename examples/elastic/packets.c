/* The environment of packet monitors: what a monitor sees, and what stands behind it.
 *
 * A monitor defines OKE_monitor_handle_packet and OKE_monitor_report. This file is trusted: it reads packets from
 * standard input (two bytes of length, then the packet), gives the first 28 bytes of those that are for UDP port 53
 * to the monitor, and prints what the monitor reports. What the types' `public` does not name is private to it. */
#include <stdio.h>
#include <string.h>

typedef unsigned char byte;

/* An IPv4 address that can be copied and not looked at. */
typedef unsigned address_t;

/* The first 28 bytes of a packet: its IPv4 header, and the first 8 bytes behind it. */
struct packet {
	byte version;
	byte service;
	unsigned short length;
	unsigned short identification;
	unsigned short fragment; /* flags and offset */
	byte life;
	byte protocol;
	unsigned short sum;
	address_t source;
	unsigned target;
	byte behind[8];
};

enum { MORE_FRAGMENTS = 0x2000, OFFSET = 0x1fff };

/* What a monitor reports. */
struct report {
	unsigned long packets;
	unsigned long fragments;
	address_t last; /* copied, unseen */
};

void OKE_monitor_handle_packet(const struct packet *packet);
void OKE_monitor_report(struct report *report);

/* A lock of the host's, as a monitor takes it. What it does not give back is given back for it. */
static int locks;
void lock_table(void) { locks++; }
void unlock_table(void) { if (locks > 0) locks--; }

static int given_back;
static void give_back(void)
{
	given_back += locks;
	locks = 0;
}

static unsigned short two(const byte *at) { return (unsigned short)(at[0] << 8 | at[1]); }
static unsigned four(const byte *at) { return (unsigned)two(at) << 16 | two(at + 2); }

static void taken_apart(struct packet *to, const byte *at)
{
	to->version = at[0];
	to->service = at[1];
	to->length = two(at + 2);
	to->identification = two(at + 4);
	to->fragment = two(at + 6);
	to->life = at[8];
	to->protocol = at[9];
	to->sum = two(at + 10);
	to->source = four(at + 12);
	to->target = four(at + 16);
	memcpy(to->behind, at + 20, 8);
}

/* The filter: for UDP port 53, or a later fragment. */
static int wanted(const struct packet *packet)
{
	return packet->protocol == 17 && ((packet->fragment & OFFSET) != 0 || two(packet->behind + 2) == 53);
}

int main(void)
{
	static byte data[65536];
	int high, low;
	while ((high = getchar()) != EOF && (low = getchar()) != EOF) {
		size_t length = (size_t)(high << 8 | low);
		struct packet packet;
		if (fread(data, 1, length, stdin) != length)
			return 1;
		if (length < 28)
			continue;
		taken_apart(&packet, data);
		if (wanted(&packet))
			OKE_monitor_handle_packet(&packet);
	}
	struct report report = {0};
	OKE_monitor_report(&report);
	printf("%lu packets seen, of which %lu were fragments; the last came from %08x; %d locks given back\n",
	       report.packets, report.fragments, report.last, given_back);
	return 0;
}
