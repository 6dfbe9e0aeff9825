#include <setjmp.h>
#include "mullion_signal.h"

/* Where setjmp keeps the data stack (docs/window.md, "Gates"). */
enum { DATA_STACK = 4 };

_Noreturn void siglongjmp(sigjmp_buf buffer, int value)
{
	__mullion_left(buffer->__jb[DATA_STACK]);
	longjmp(buffer, value);
}
