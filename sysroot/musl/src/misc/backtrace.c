/* See execinfo.h. */
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

int backtrace(void **places, int length)
{
	(void)places;
	(void)length;
	return 0;
}

/* Names of addresses that a program has from elsewhere: as numbers. */
enum { DIGITS = 19 };

char **backtrace_symbols(void *const *places, int length)
{
	if (length < 0)
		length = 0;
	char **names = malloc(length * (sizeof *names + DIGITS) + 1);
	if (!names)
		return 0;
	char *text = (char *)(names + length);
	for (int i = 0; i < length; i++, text += DIGITS) {
		names[i] = text;
		snprintf(text, DIGITS, "%p", places[i]);
	}
	return names;
}

void backtrace_symbols_fd(void *const *places, int length, int file)
{
	for (int i = 0; i < length; i++)
		dprintf(file, "%p\n", places[i]);
}
