/* References to pages, for walled modules; found before the kernel's own header. That one counts in the page's structure, in line.
 * No module may write there: these are calls, and the wall notes whose each reference is. */
#ifndef MULLION_LINUX_MM_H
#define MULLION_LINUX_MM_H

#define get_page mullion_get_page_in_line
#define put_page mullion_put_page_in_line
#include_next <linux/mm.h>
#undef get_page
#undef put_page

extern void mullion_get_page(struct page *page);
extern void mullion_put_page(struct page *page);
#define get_page mullion_get_page
#define put_page mullion_put_page

#endif
