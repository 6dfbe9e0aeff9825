/* Soft interrupts of the running task, for walled modules; found before the kernel's own header. That one counts in the task's
 * structure, in line. No module may write there: these are calls, and the wall notes them until they are taken back. */
#ifndef MULLION_LINUX_BOTTOM_HALF_H
#define MULLION_LINUX_BOTTOM_HALF_H

#define local_bh_disable mullion_bh_disable_in_line
#define local_bh_enable mullion_bh_enable_in_line
#define local_bh_enable_ip mullion_bh_enable_ip_in_line
#include_next <linux/bottom_half.h>
#undef local_bh_disable
#undef local_bh_enable
#undef local_bh_enable_ip

/* The count follows from the call: spin locks on one processor add nothing to it. */
extern void mullion_bottom_halves_off(void);
extern void mullion_bottom_halves_on(void);
#define local_bh_disable mullion_bottom_halves_off
#define local_bh_enable mullion_bottom_halves_on
#define __local_bh_disable_ip(ip, count) mullion_bottom_halves_off()
#define __local_bh_enable_ip(ip, count) mullion_bottom_halves_on()

#endif
