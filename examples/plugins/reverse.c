/* A plug-in: turns its text around, and says so. */
#include <mullion/ext.h>
#include <stdio.h>
#include <string.h>

MULLION_EXPORT(void, transform, (char *text))
{
	unsigned long length = strlen(text);
	printf("%lu characters\n", length);
	for (unsigned long i = 0; i < length / 2; i++) {
		char other = text[length - 1 - i];
		text[length - 1 - i] = text[i];
		text[i] = other;
	}
}
