/* An extension that calls another one, which may be one of the same image. */
#include <mullion/ext.h>
#include <stdint.h>

#define EIGHT int a, int b, int c, int d, int e, int f, int8_t g, int64_t h

MULLION_IMPORT(int64_t, other, (EIGHT));
MULLION_IMPORT(double, other_real, (double a, int b));
MULLION_IMPORT(int, host_who, (void));
MULLION_IMPORT(int64_t, host_eight, (EIGHT));

MULLION_EXPORT(int64_t, call_other, (int64_t h)) { return other(1, 2, 3, 4, 5, 6, -7, h); }
MULLION_EXPORT(double, call_real, (double a)) { return other_real(a, 3); }
MULLION_EXPORT(int64_t, call_host, (int64_t h)) { return host_eight(1, 2, 3, 4, 5, 6, -7, h); }

MULLION_EXPORT(int64_t, weigh, (EIGHT))
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
MULLION_EXPORT(double, scale, (double a, int b)) { return a * b; }
MULLION_EXPORT(int64_t, who, (void)) { return host_who(); }
typedef int64_t asking(void);
MULLION_EXPORT(asking *, get_who, (void)) { return who; }
MULLION_EXPORT(int64_t, crash, (void)) { return *(volatile int *)0x40; }
MULLION_EXPORT(double, crash_real, (void)) { return *(volatile int *)0x40; }
MULLION_EXPORT(int64_t, again, (EIGHT)) { return other(a, b, c, d, e, f, g, h - 1) + 1; }

MULLION_EXPORT(uint32_t, get, (const volatile uint32_t *place)) { return *place; }
MULLION_EXPORT(void, put, (volatile uint32_t *place, uint32_t value)) { *place = value; }
MULLION_EXPORT(uint32_t, wait, (const volatile uint32_t *place))
{
	while (!*place) {}
	return *place;
}
