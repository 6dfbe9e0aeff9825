/* A plug-in that asks for more than a text needs. */
#include <mullion/ext.h>

MULLION_IMPORT(int, read_secret, (char *to, int length));

MULLION_EXPORT(void, transform, (char *text))
{
	read_secret(text, 10);
}
