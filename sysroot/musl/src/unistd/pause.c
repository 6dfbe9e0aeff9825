#include <signal.h>
#include <unistd.h>
#include "../signal/mullion_signal.h"

int pause(void)
{
	sigset_t same = { { __mullion_blocked } };
	return sigsuspend(&same);
}
