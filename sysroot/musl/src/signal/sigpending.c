#include <string.h>
#include "mullion_signal.h"

int sigpending(sigset_t *set)
{
	memset(set, 0, sizeof *set);
	set->__bits[0] = __mullion_signals()->pending;
	return 0;
}
