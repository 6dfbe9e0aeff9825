/* A packet monitor: counts what passes by, by port. Of the module type in
 * types/packet-monitor.toml; loaded and called by the tour beside it. */
#include <mullion/ext.h>

MULLION_IMPORT(long, host_log, (const char *text, unsigned long length));

static unsigned long seen[65536];

/* An IPv4 packet with UDP or TCP in it: counts its destination port, and
 * returns how often that port has been seen; -1 for anything else. */
MULLION_EXPORT(long, packet, (const unsigned char *bytes, unsigned long length))
{
    if (length < 20 || bytes[0] >> 4 != 4)
        return -1;
    unsigned long header = (bytes[0] & 15) * 4ul;
    if (header < 20 || length < header + 4 || (bytes[9] != 6 && bytes[9] != 17))
        return -1;
    unsigned long port = bytes[header + 2] << 8 | bytes[header + 3];
    if (++seen[port] == 1)
        host_log("a port that was not seen before", 31);
    return (long)seen[port];
}

MULLION_EXPORT(long, count, (unsigned long port)) { return port < 65536 ? (long)seen[port] : -1; }
