/* References to blocks' buffers, for walled modules; found before the kernel's own header. That one counts in the buffer, in line.
 * These are calls, and the wall notes whose each reference is. */
#ifndef MULLION_LINUX_BUFFER_HEAD_H
#define MULLION_LINUX_BUFFER_HEAD_H

#define get_bh mullion_get_bh_in_line
#define put_bh mullion_put_bh_in_line
#include_next <linux/buffer_head.h>
#undef get_bh
#undef put_bh

extern void mullion_get_buffer(struct buffer_head *bh);
#define get_bh mullion_get_buffer
#define put_bh __brelse

#endif
