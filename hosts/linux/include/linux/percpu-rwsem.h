/* What keeps a file system from being frozen, for walled modules; found before the kernel's own header. That one counts in words for
 * each processor, in line. No module may write there: these are calls, and the wall notes them until they are taken back. */
#ifndef MULLION_LINUX_PERCPU_RWSEM_H
#define MULLION_LINUX_PERCPU_RWSEM_H

#define percpu_down_read mullion_percpu_down_read_in_line
#define percpu_up_read mullion_percpu_up_read_in_line
#include_next <linux/percpu-rwsem.h>
#undef percpu_down_read
#undef percpu_up_read

extern void mullion_super_begins(struct percpu_rw_semaphore *sem);
extern void mullion_super_ends(struct percpu_rw_semaphore *sem);
#define percpu_down_read mullion_super_begins
#define percpu_up_read mullion_super_ends

#endif
