/* Locks of pages, for walled modules; found before the kernel's own header. That one sets a bit of the page, in line. This is a
 * call, and the wall notes the lock until it is opened.
 *
 * Pages that are read ahead are found in the kernel's tree, in line. A walled module finds none, and so each is asked for when it is read. */
#ifndef MULLION_LINUX_PAGEMAP_H
#define MULLION_LINUX_PAGEMAP_H

#define lock_page mullion_lock_page_in_line
#define __readahead_batch mullion_readahead_batch_in_line
#include_next <linux/pagemap.h>
#undef lock_page
#undef __readahead_batch

extern void mullion_lock_page(struct page *page);
#define lock_page mullion_lock_page
#define __readahead_batch(control, pages, count) (0)
#define readahead_expand(control, start, bytes) ((void)(control))

#endif
