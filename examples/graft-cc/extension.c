/* A page eviction policy for a program that knows its own access pattern: a loop
 * over more pages than there is room for, for which the usual policy (throw out
 * what was not used for longest) is the worst there is. */
#include <mullion/ext.h>

MULLION_EXPORT(int, victim, (int now, int frames))
{
	/* What was used last is needed again last: at the end of the list, or beyond
	 * it. Nobody has tried it for longer than 3999 uses. */
	return 10 * frames / (4 - now / 1000);
}
