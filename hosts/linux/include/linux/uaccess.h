/* Page faults of the running task, for walled modules; found before the kernel's own header. That one counts in the task's
 * structure, in line. No module may write there: these are calls, and the wall notes them until they are taken back. */
#ifndef MULLION_LINUX_UACCESS_H
#define MULLION_LINUX_UACCESS_H

#define pagefault_disable mullion_pagefault_disable_in_line
#define pagefault_enable mullion_pagefault_enable_in_line
#include_next <linux/uaccess.h>
#undef pagefault_disable
#undef pagefault_enable

extern void mullion_pagefaults_off(void);
extern void mullion_pagefaults_on(void);
#define pagefault_disable mullion_pagefaults_off
#define pagefault_enable mullion_pagefaults_on

#endif
