/* Blocks' buffers, for walled modules; found before the kernel's own header. That one counts references in the buffer, and sets its
 * lock and its marks, in line. These are calls, and the wall notes whose each reference and each lock is. Several buffers are read one
 * by one: in a list of them the kernel would follow each pointer, and nobody would have looked at it. */
#ifndef MULLION_LINUX_BUFFER_HEAD_H
#define MULLION_LINUX_BUFFER_HEAD_H

#define get_bh mullion_get_bh_in_line
#define put_bh mullion_put_bh_in_line
#define lock_buffer mullion_lock_buffer_in_line
#define set_buffer_uptodate mullion_uptodate_bh_in_line
#define clear_buffer_uptodate mullion_not_uptodate_bh_in_line
#define clear_buffer_write_io_error mullion_no_error_bh_in_line
#include_next <linux/buffer_head.h>
#undef get_bh
#undef put_bh
#undef lock_buffer
#undef set_buffer_uptodate
#undef clear_buffer_uptodate
#undef clear_buffer_write_io_error

extern void mullion_get_buffer(struct buffer_head *bh);
extern void mullion_lock_buffer(struct buffer_head *bh);
extern void mullion_buffer_uptodate(struct buffer_head *bh);
extern void mullion_buffer_not_uptodate(struct buffer_head *bh);
extern void mullion_buffer_no_error(struct buffer_head *bh);
#define get_bh mullion_get_buffer
#define put_bh __brelse
#define lock_buffer mullion_lock_buffer
#define set_buffer_uptodate mullion_buffer_uptodate
#define clear_buffer_uptodate mullion_buffer_not_uptodate
#define clear_buffer_write_io_error mullion_buffer_no_error

static inline void mullion_read_batch(int count, struct buffer_head *all[], blk_opf_t flags)
{
	for (int at = 0; at < count; at++)
		if (!bh_uptodate_or_lock(all[at]))
			__bh_read(all[at], flags, false);
}
#define bh_read_batch(count, all) mullion_read_batch(count, all, 0)
#define bh_readahead_batch mullion_read_batch

#endif
