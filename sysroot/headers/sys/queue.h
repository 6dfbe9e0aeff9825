/* Lists and queues as macros, by the names and meanings of BSD's. A structure has an ENTRY of its kind. */
#ifndef MULLION_SYS_QUEUE_H
#define MULLION_SYS_QUEUE_H

/* Singly linked, from the head on. */
#define SLIST_HEAD(name, type) struct name { struct type *slh_first; }
#define SLIST_HEAD_INITIALIZER(head) { 0 }
#define SLIST_ENTRY(type) struct { struct type *sle_next; }
#define SLIST_INIT(head) ((head)->slh_first = 0)
#define SLIST_EMPTY(head) (!(head)->slh_first)
#define SLIST_FIRST(head) ((head)->slh_first)
#define SLIST_NEXT(item, field) ((item)->field.sle_next)
#define SLIST_FOREACH(item, head, field) for ((item) = SLIST_FIRST(head); (item); (item) = SLIST_NEXT(item, field))
#define SLIST_FOREACH_SAFE(item, head, field, next) \
	for ((item) = SLIST_FIRST(head); (item) && ((next) = SLIST_NEXT(item, field), 1); (item) = (next))
#define SLIST_INSERT_HEAD(head, item, field) do { \
		(item)->field.sle_next = (head)->slh_first; \
		(head)->slh_first = (item); \
	} while (0)
#define SLIST_INSERT_AFTER(before, item, field) do { \
		(item)->field.sle_next = (before)->field.sle_next; \
		(before)->field.sle_next = (item); \
	} while (0)
#define SLIST_REMOVE_HEAD(head, field) do { (head)->slh_first = (head)->slh_first->field.sle_next; } while (0)
#define SLIST_REMOVE_AFTER(before, field) do { (before)->field.sle_next = (before)->field.sle_next->field.sle_next; } while (0)
#define SLIST_REMOVE(head, item, type, field) do { \
		struct type **__place = &(head)->slh_first; \
		while (*__place != (item)) \
			__place = &(*__place)->field.sle_next; \
		*__place = (*__place)->field.sle_next; \
	} while (0)

/* Doubly linked, from the head on. */
#define LIST_HEAD(name, type) struct name { struct type *lh_first; }
#define LIST_HEAD_INITIALIZER(head) { 0 }
#define LIST_ENTRY(type) struct { struct type *le_next, **le_prev; }
#define LIST_INIT(head) ((head)->lh_first = 0)
#define LIST_EMPTY(head) (!(head)->lh_first)
#define LIST_FIRST(head) ((head)->lh_first)
#define LIST_NEXT(item, field) ((item)->field.le_next)
#define LIST_FOREACH(item, head, field) for ((item) = LIST_FIRST(head); (item); (item) = LIST_NEXT(item, field))
#define LIST_FOREACH_SAFE(item, head, field, next) \
	for ((item) = LIST_FIRST(head); (item) && ((next) = LIST_NEXT(item, field), 1); (item) = (next))
#define LIST_INSERT_HEAD(head, item, field) do { \
		if (((item)->field.le_next = (head)->lh_first)) \
			(head)->lh_first->field.le_prev = &(item)->field.le_next; \
		(head)->lh_first = (item); \
		(item)->field.le_prev = &(head)->lh_first; \
	} while (0)
#define LIST_INSERT_AFTER(before, item, field) do { \
		if (((item)->field.le_next = (before)->field.le_next)) \
			(before)->field.le_next->field.le_prev = &(item)->field.le_next; \
		(before)->field.le_next = (item); \
		(item)->field.le_prev = &(before)->field.le_next; \
	} while (0)
#define LIST_INSERT_BEFORE(after, item, field) do { \
		(item)->field.le_prev = (after)->field.le_prev; \
		(item)->field.le_next = (after); \
		*(after)->field.le_prev = (item); \
		(after)->field.le_prev = &(item)->field.le_next; \
	} while (0)
#define LIST_REMOVE(item, field) do { \
		if ((item)->field.le_next) \
			(item)->field.le_next->field.le_prev = (item)->field.le_prev; \
		*(item)->field.le_prev = (item)->field.le_next; \
	} while (0)

/* Singly linked, with an end to add to. SIMPLEQ is another name of it. */
#define STAILQ_HEAD(name, type) struct name { struct type *stqh_first, **stqh_last; }
#define STAILQ_HEAD_INITIALIZER(head) { 0, &(head).stqh_first }
#define STAILQ_ENTRY(type) struct { struct type *stqe_next; }
#define STAILQ_INIT(head) do { (head)->stqh_first = 0; (head)->stqh_last = &(head)->stqh_first; } while (0)
#define STAILQ_EMPTY(head) (!(head)->stqh_first)
#define STAILQ_FIRST(head) ((head)->stqh_first)
#define STAILQ_NEXT(item, field) ((item)->field.stqe_next)
#define STAILQ_LAST(head, type, field) (STAILQ_EMPTY(head) ? 0 : \
	(struct type *)(void *)((char *)(head)->stqh_last - __builtin_offsetof(struct type, field)))
#define STAILQ_FOREACH(item, head, field) for ((item) = STAILQ_FIRST(head); (item); (item) = STAILQ_NEXT(item, field))
#define STAILQ_FOREACH_SAFE(item, head, field, next) \
	for ((item) = STAILQ_FIRST(head); (item) && ((next) = STAILQ_NEXT(item, field), 1); (item) = (next))
#define STAILQ_INSERT_HEAD(head, item, field) do { \
		if (!((item)->field.stqe_next = (head)->stqh_first)) \
			(head)->stqh_last = &(item)->field.stqe_next; \
		(head)->stqh_first = (item); \
	} while (0)
#define STAILQ_INSERT_TAIL(head, item, field) do { \
		(item)->field.stqe_next = 0; \
		*(head)->stqh_last = (item); \
		(head)->stqh_last = &(item)->field.stqe_next; \
	} while (0)
#define STAILQ_INSERT_AFTER(head, before, item, field) do { \
		if (!((item)->field.stqe_next = (before)->field.stqe_next)) \
			(head)->stqh_last = &(item)->field.stqe_next; \
		(before)->field.stqe_next = (item); \
	} while (0)
#define STAILQ_REMOVE_HEAD(head, field) do { \
		if (!((head)->stqh_first = (head)->stqh_first->field.stqe_next)) \
			(head)->stqh_last = &(head)->stqh_first; \
	} while (0)
#define STAILQ_REMOVE(head, item, type, field) do { \
		struct type **__place = &(head)->stqh_first; \
		while (*__place != (item)) \
			__place = &(*__place)->field.stqe_next; \
		if (!(*__place = (*__place)->field.stqe_next)) \
			(head)->stqh_last = __place; \
	} while (0)
#define STAILQ_CONCAT(first, second) do { \
		if (!STAILQ_EMPTY(second)) { \
			*(first)->stqh_last = (second)->stqh_first; \
			(first)->stqh_last = (second)->stqh_last; \
			STAILQ_INIT(second); \
		} \
	} while (0)

#define SIMPLEQ_HEAD(name, type) struct name { struct type *sqh_first, **sqh_last; }
#define SIMPLEQ_HEAD_INITIALIZER(head) { 0, &(head).sqh_first }
#define SIMPLEQ_ENTRY(type) struct { struct type *sqe_next; }
#define SIMPLEQ_INIT(head) do { (head)->sqh_first = 0; (head)->sqh_last = &(head)->sqh_first; } while (0)
#define SIMPLEQ_EMPTY(head) (!(head)->sqh_first)
#define SIMPLEQ_FIRST(head) ((head)->sqh_first)
#define SIMPLEQ_NEXT(item, field) ((item)->field.sqe_next)
#define SIMPLEQ_FOREACH(item, head, field) for ((item) = SIMPLEQ_FIRST(head); (item); (item) = SIMPLEQ_NEXT(item, field))
#define SIMPLEQ_INSERT_HEAD(head, item, field) do { \
		if (!((item)->field.sqe_next = (head)->sqh_first)) \
			(head)->sqh_last = &(item)->field.sqe_next; \
		(head)->sqh_first = (item); \
	} while (0)
#define SIMPLEQ_INSERT_TAIL(head, item, field) do { \
		(item)->field.sqe_next = 0; \
		*(head)->sqh_last = (item); \
		(head)->sqh_last = &(item)->field.sqe_next; \
	} while (0)
#define SIMPLEQ_INSERT_AFTER(head, before, item, field) do { \
		if (!((item)->field.sqe_next = (before)->field.sqe_next)) \
			(head)->sqh_last = &(item)->field.sqe_next; \
		(before)->field.sqe_next = (item); \
	} while (0)
#define SIMPLEQ_REMOVE_HEAD(head, field) do { \
		if (!((head)->sqh_first = (head)->sqh_first->field.sqe_next)) \
			(head)->sqh_last = &(head)->sqh_first; \
	} while (0)

/* Doubly linked, from both ends. */
#define TAILQ_HEAD(name, type) struct name { struct type *tqh_first, **tqh_last; }
#define TAILQ_HEAD_INITIALIZER(head) { 0, &(head).tqh_first }
#define TAILQ_ENTRY(type) struct { struct type *tqe_next, **tqe_prev; }
#define TAILQ_INIT(head) do { (head)->tqh_first = 0; (head)->tqh_last = &(head)->tqh_first; } while (0)
#define TAILQ_EMPTY(head) (!(head)->tqh_first)
#define TAILQ_FIRST(head) ((head)->tqh_first)
#define TAILQ_NEXT(item, field) ((item)->field.tqe_next)
#define TAILQ_LAST(head, name) (*(((struct name *)((head)->tqh_last))->tqh_last))
#define TAILQ_PREV(item, name, field) (*(((struct name *)((item)->field.tqe_prev))->tqh_last))
#define TAILQ_FOREACH(item, head, field) for ((item) = TAILQ_FIRST(head); (item); (item) = TAILQ_NEXT(item, field))
#define TAILQ_FOREACH_SAFE(item, head, field, next) \
	for ((item) = TAILQ_FIRST(head); (item) && ((next) = TAILQ_NEXT(item, field), 1); (item) = (next))
#define TAILQ_FOREACH_REVERSE(item, head, name, field) \
	for ((item) = TAILQ_LAST(head, name); (item); (item) = TAILQ_PREV(item, name, field))
#define TAILQ_INSERT_HEAD(head, item, field) do { \
		if (((item)->field.tqe_next = (head)->tqh_first)) \
			(head)->tqh_first->field.tqe_prev = &(item)->field.tqe_next; \
		else \
			(head)->tqh_last = &(item)->field.tqe_next; \
		(head)->tqh_first = (item); \
		(item)->field.tqe_prev = &(head)->tqh_first; \
	} while (0)
#define TAILQ_INSERT_TAIL(head, item, field) do { \
		(item)->field.tqe_next = 0; \
		(item)->field.tqe_prev = (head)->tqh_last; \
		*(head)->tqh_last = (item); \
		(head)->tqh_last = &(item)->field.tqe_next; \
	} while (0)
#define TAILQ_INSERT_AFTER(head, before, item, field) do { \
		if (((item)->field.tqe_next = (before)->field.tqe_next)) \
			(item)->field.tqe_next->field.tqe_prev = &(item)->field.tqe_next; \
		else \
			(head)->tqh_last = &(item)->field.tqe_next; \
		(before)->field.tqe_next = (item); \
		(item)->field.tqe_prev = &(before)->field.tqe_next; \
	} while (0)
#define TAILQ_INSERT_BEFORE(after, item, field) do { \
		(item)->field.tqe_prev = (after)->field.tqe_prev; \
		(item)->field.tqe_next = (after); \
		*(after)->field.tqe_prev = (item); \
		(after)->field.tqe_prev = &(item)->field.tqe_next; \
	} while (0)
#define TAILQ_REMOVE(head, item, field) do { \
		if ((item)->field.tqe_next) \
			(item)->field.tqe_next->field.tqe_prev = (item)->field.tqe_prev; \
		else \
			(head)->tqh_last = (item)->field.tqe_prev; \
		*(item)->field.tqe_prev = (item)->field.tqe_next; \
	} while (0)
#define TAILQ_CONCAT(first, second, field) do { \
		if (!TAILQ_EMPTY(second)) { \
			*(first)->tqh_last = (second)->tqh_first; \
			(second)->tqh_first->field.tqe_prev = (first)->tqh_last; \
			(first)->tqh_last = (second)->tqh_last; \
			TAILQ_INIT(second); \
		} \
	} while (0)

#endif
