#include <signal.h>
#include <unistd.h>
#include "../signal/mullion_signal.h"

int pause(void)
{
	sigset_t same = { { __mullion_signals()->blocked } };
	return sigsuspend(&same);
}
