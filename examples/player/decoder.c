/* Decodes frames into pages that it shares with whoever asked. It has a bug. */
#include <mullion/ext.h>
#include <stdint.h>

MULLION_IMPORT(void, host_asked, (void));

static int *volatile nowhere;

MULLION_EXPORT(int, decode, (uint8_t *page, int number))
{
	host_asked();
	if (number == 3)
		*nowhere = number;
	for (int i = 0; i < 16; i++)
		page[i] = (uint8_t)('a' + (number + i) % 26);
	return 16;
}
