/* The smallest extension: one function. */
#include <mullion/ext.h>

MULLION_EXPORT(int, add, (int a, int b))
{
	return a + b;
}
