/* Queues of tasks that wait, for walled modules; found before the kernel's own header. That one links a structure on the waiting task's
 * stack into a list whose head is the module's, and the kernel follows the list and calls what it finds there. Here nobody is in such a
 * queue: a task that waits for something of the module's looks again at each tick. */
#ifndef MULLION_LINUX_WAIT_H
#define MULLION_LINUX_WAIT_H

#include_next <linux/wait.h>

#undef init_waitqueue_head
#undef wait_event
#undef wake_up
#undef wake_up_all

#define init_waitqueue_head(queue) ((void)(queue))
#define wake_up(queue) ((void)(queue))
#define wake_up_all(queue) ((void)(queue))
#define wait_event(queue, condition)                  \
	do {                                          \
		while (!(condition))                  \
			schedule_timeout_uninterruptible(1); \
	} while (0)

extern signed long schedule_timeout_uninterruptible(signed long timeout);

#endif
