/* The task for walled modules, found before the architecture's own header: that takes it from the address of a local, and a
 * module's stack is not the kernel's. */
#ifndef MULLION_ASM_THREAD_INFO_H
#define MULLION_ASM_THREAD_INFO_H

#define current_thread_info mullion_thread_info_of_this_stack
#include_next <asm/thread_info.h>
#undef current_thread_info

#ifndef __ASSEMBLY__
extern struct thread_info *mullion_thread_info(void);
#define current_thread_info mullion_thread_info
#endif

#endif
