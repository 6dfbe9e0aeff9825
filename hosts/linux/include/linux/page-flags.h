/* Marks of pages, for walled modules; found before the kernel's own header. That one sets bits of the page's structure, in line.
 * No module may write there: these are calls. */
#ifndef MULLION_LINUX_PAGE_FLAGS_H
#define MULLION_LINUX_PAGE_FLAGS_H

#define SetPageChecked mullion_checked_in_line
#define SetPageError mullion_error_in_line
#define ClearPageError mullion_no_error_in_line
#define SetPageUptodate mullion_uptodate_in_line
#define ClearPageUptodate mullion_not_uptodate_in_line
#include_next <linux/page-flags.h>
#undef SetPageChecked
#undef SetPageError
#undef ClearPageError
#undef SetPageUptodate
#undef ClearPageUptodate

struct page;
extern void mullion_page_checked(struct page *page);
extern void mullion_page_error(struct page *page);
extern void mullion_page_no_error(struct page *page);
extern void mullion_page_uptodate(struct page *page);
extern void mullion_page_not_uptodate(struct page *page);
#define SetPageChecked mullion_page_checked
#define SetPageError mullion_page_error
#define ClearPageError mullion_page_no_error
#define SetPageUptodate mullion_page_uptodate
#define ClearPageUptodate mullion_page_not_uptodate

#endif
