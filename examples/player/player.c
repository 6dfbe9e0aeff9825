/* Plays frames that another extension decodes. It can read them, and no more. */
#include <mullion/ext.h>
#include <stdint.h>

/* Not the host's: the decoder's. */
MULLION_IMPORT(int, decode, (const uint8_t *page, int number));

static int played;

MULLION_EXPORT(int, play, (const uint8_t *page, int number))
{
	int length = decode(page, number), vowels = 0;
	for (int i = 0; i < length; i++)
		vowels += page[i] == 'a' || page[i] == 'e' || page[i] == 'i' || page[i] == 'o' || page[i] == 'u';
	played += length >= 0;
	return length < 0 ? -1 : vowels;
}
MULLION_EXPORT(int, count, (void)) { return played; }
MULLION_EXPORT(void, scribble, (uint8_t *page)) { page[0] = 'x'; }
