/* A plug-in: makes its text loud. */
#include <mullion/ext.h>
#include <ctype.h>

MULLION_EXPORT(void, transform, (char *text))
{
	for (; *text; text++)
		*text = toupper((unsigned char)*text);
}
