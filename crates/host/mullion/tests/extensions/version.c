/* One extension in several versions. */
#include <mullion/ext.h>
#include <stdint.h>
#include <string.h>

MULLION_EXPORT(int, version, (void)) { return VERSION; }
MULLION_EXPORT(uint64_t, length, (const char *text)) { return strlen(text); }
#if VERSION > 1
MULLION_EXPORT(int, only_new, (void)) { return 7; }
#endif
#if VERSION == 3
MULLION_EXPORT(double, typed, (double value)) { return value; }
#else
MULLION_EXPORT(uint32_t, typed, (uint32_t value)) { return value + 1; }
#endif
#ifdef WAITS
MULLION_IMPORT(int, host_wait, (void));
MULLION_EXPORT(int, wait, (void)) { return host_wait(); }
#endif
