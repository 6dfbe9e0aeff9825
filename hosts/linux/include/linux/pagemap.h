/* Locks of pages, for walled modules; found before the kernel's own header. That one sets a bit of the page, in line. This is a
 * call, and the wall notes the lock until it is opened. */
#ifndef MULLION_LINUX_PAGEMAP_H
#define MULLION_LINUX_PAGEMAP_H

#define lock_page mullion_lock_page_in_line
#include_next <linux/pagemap.h>
#undef lock_page

extern void mullion_lock_page(struct page *page);
#define lock_page mullion_lock_page

#endif
