/* Callbacks of RCU, for walled modules; found before the kernel's own header. That one frees a block later by a callback that is no function,
 * but where in the block it lies. This kernel has one processor, and does not take it from a reader. So nobody reads the block when another
 * task frees it, and it is freed at once. */
#ifndef MULLION_LINUX_RCUTINY_H
#define MULLION_LINUX_RCUTINY_H

#define kvfree_call_rcu mullion_free_in_line
#include_next <linux/rcutiny.h>
#undef kvfree_call_rcu

static inline void kvfree_call_rcu(struct rcu_head *head, rcu_callback_t place)
{
	kvfree(head ? (void *)head - (unsigned long)place : (void *)place);
}

#endif
