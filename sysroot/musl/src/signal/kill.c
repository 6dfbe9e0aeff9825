/* There is one process, which is its own group. */
#include <errno.h>
#include "syscall.h"
#include "mullion_signal.h"

int kill(pid_t process, int signal)
{
	if (process < -1 || process > 1)
		return __syscall_ret(-ESRCH);
	long result = __mullion_signal(signal, SI_USER);
	return __syscall_ret(result > 0 ? 0 : result);
}
