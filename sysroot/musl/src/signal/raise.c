#include "syscall.h"
#include "mullion_signal.h"

int raise(int signal)
{
	long result = __mullion_signal(signal, SI_TKILL);
	return __syscall_ret(result > 0 ? 0 : result);
}
