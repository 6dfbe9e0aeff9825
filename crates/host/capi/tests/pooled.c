/* What the tests of pools and of replaced domains call. VERSION tells one image from another. */
#include <mullion/ext.h>
#include <stdint.h>

MULLION_IMPORT(void, host_started, (int version));

#ifdef OTHER
MULLION_EXPORT(int, other, (void)) { return 1; }
#else
static int uses;
static unsigned char large[1 << 20];

__attribute__((constructor)) static void begin(void) { host_started(VERSION); }

MULLION_EXPORT(int, version, (void)) { return VERSION; }
/* How often this life has been used before, with memory made dirty. */
MULLION_EXPORT(int, use, (int value))
{
	for (unsigned place = 0; place < sizeof large; place += 4096)
		large[place] = (unsigned char)value;
	return uses++;
}
MULLION_EXPORT(void, crash, (void)) { *(volatile int *)8 = 1; }
#endif
