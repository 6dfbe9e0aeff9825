// SPDX-License-Identifier: GPL-2.0
/*
 * Timers, work and RCU callbacks of modules behind Mullion's word wall: an ordinary module, and no part of the patch.
 *
 * The kernel links none of a walled module's own structures into its lists. For each there is one of ours, which calls the
 * module's function with the module's structure. So these lists are whole whatever a module writes, and what a module has
 * armed is taken back when it is ended, or when it frees the memory that the structure lies in.
 *
 * The library has looked at the arguments: the structure is memory that the module may write, the function is the module's.
 * User-Mode Linux has one processor and no preemption, and nothing here is called by an interrupt.
 */

#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

enum kind { TIMER, WORK, CALLBACK };

/* What stands for a structure of a module. Timers and work keep theirs until the module or its memory goes. */
struct later {
	struct hlist_node all;
	enum kind kind;
	unsigned long domain;
	/* Where the module's structure is; 0: it is there no more. */
	unsigned long own;
	void (*function)(unsigned long own);
	struct workqueue_struct *queue;
	struct timer_list timer;
	struct work_struct work;
	struct rcu_head callback;
	/* Who waits for its work in this moment: the last of them frees it, if it was forgotten meanwhile. */
	unsigned int users;
};

static DEFINE_HASHTABLE(all, 7);
static unsigned int count;

static struct later *find(unsigned long own, enum kind kind)
{
	struct later *later;

	hash_for_each_possible(all, later, all, own)
		if (later->own == own && later->kind == kind)
			return later;
	return NULL;
}

static void forget(struct later *later)
{
	hash_del(&later->all);
	count--;
	later->own = 0;
}

/* It was forgotten. */
static void drop(struct later *later)
{
	if (!later->users)
		kfree(later);
}

/* As the module sees it, by functions that are in line in the kernel's headers: `timer_pending`, `work_pending`. */
static void show_timer(struct later *later, bool is_armed)
{
	struct timer_list *timer = (struct timer_list *)later->own;

	timer->entry.pprev = is_armed ? &timer->entry.next : NULL;
}

static void show_work(struct later *later, bool is_armed)
{
	unsigned long *bits = work_data_bits((struct work_struct *)later->own);

	if (is_armed)
		*bits |= WORK_STRUCT_PENDING;
	else
		*bits &= ~(unsigned long)WORK_STRUCT_PENDING;
}

/* Of the library: no module has left a lock closed in this task, or something of it off. */
static void (*returned)(void);

static void call(struct later *later, unsigned long own)
{
	later->function(own);
	if (returned)
		returned();
}

static void at_return(struct callback_head *work)
{
	kfree(work);
	returned();
}

/* The running task calls `then` before it goes back to its program. Not 0: it does not go back to any. */
int mullion_at_return(void (*then)(void))
{
	struct callback_head *work;

	returned = then;
	if (current->flags & (PF_KTHREAD | PF_EXITING))
		return -ESRCH;
	work = kmalloc(sizeof(*work), GFP_ATOMIC);
	if (!work)
		return -ENOMEM;
	init_task_work(work, at_return);
	if (task_work_add(current, work, TWA_RESUME)) {
		kfree(work);
		return -ESRCH;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(mullion_at_return);

static void fires(struct timer_list *timer)
{
	struct later *later = from_timer(later, timer, timer);

	if (later->kind == WORK) {
		queue_work(later->queue, &later->work);
		return;
	}
	show_timer(later, false);
	/* The function may free the memory of its timer, and ours goes with it. */
	call(later, later->own);
}

static void runs(struct work_struct *work)
{
	struct later *later = container_of(work, struct later, work);

	if (!later->own)
		return;
	show_work(later, false);
	call(later, later->own);
}

static struct later *make(unsigned long domain, unsigned long own, enum kind kind)
{
	struct later *later = kzalloc(sizeof(*later), GFP_ATOMIC);

	if (!later) {
		pr_err("mullion: no memory for a timer, work or callback\n");
		return NULL;
	}
	later->kind = kind;
	later->domain = domain;
	later->own = own;
	timer_setup(&later->timer, fires, 0);
	INIT_WORK(&later->work, runs);
	hash_add(all, &later->all, own);
	count++;
	return later;
}

/* One module's structure may lie where another one's has been. */
static struct later *have(unsigned long domain, unsigned long own, enum kind kind, unsigned long function)
{
	struct later *later = find(own, kind);

	if (!later)
		later = make(domain, own, kind);
	if (later) {
		later->domain = domain;
		later->function = (void (*)(unsigned long))function;
	}
	return later;
}

/* mod_timer, or timer_reduce, or mod_timer_pending. */
int mullion_timer(unsigned long domain, unsigned long own, unsigned long function, unsigned long expires, int how)
{
	struct later *later = have(domain, own, TIMER, function);
	int was;

	if (!later)
		return 0;
	((struct timer_list *)own)->expires = expires;
	was = how == 1 ? timer_reduce(&later->timer, expires) :
	      how == 2 ? mod_timer_pending(&later->timer, expires) : mod_timer(&later->timer, expires);
	show_timer(later, timer_pending(&later->timer));
	return was;
}
EXPORT_SYMBOL_GPL(mullion_timer);

int mullion_timer_end(unsigned long own, int waits)
{
	struct later *later = find(own, TIMER);
	int was;

	if (!later)
		return 0;
	/* The timer's function may free the memory of its timer while we wait. */
	later->users++;
	was = waits ? del_timer_sync(&later->timer) : del_timer(&later->timer);
	later->users--;
	if (!later->own)
		drop(later);
	else
		show_timer(later, false);
	return was;
}
EXPORT_SYMBOL_GPL(mullion_timer_end);

/* queue_work_on, or queue_delayed_work_on; `again` is for mod_delayed_work_on. */
int mullion_work(unsigned long domain, unsigned long own, unsigned long function, struct workqueue_struct *queue,
		 unsigned long delay, int again)
{
	struct later *later = have(domain, own, WORK, function);
	bool was;

	if (!later)
		return 0;
	was = work_pending(&later->work) || timer_pending(&later->timer);
	if (was && !again)
		return 0;
	if (was) {
		del_timer(&later->timer);
		cancel_work(&later->work);
	}
	later->queue = queue;
	show_work(later, true);
	if (delay)
		mod_timer(&later->timer, jiffies + delay);
	else
		queue_work(queue, &later->work);
	return again ? was : 1;
}
EXPORT_SYMBOL_GPL(mullion_work);

/* cancel_work, cancel_work_sync, flush_work, and those of delayed work. */
int mullion_work_end(unsigned long own, int waits, int runs_first)
{
	struct later *later = find(own, WORK);
	int was;

	if (!later)
		return 0;
	/* The work itself may free the memory of its work while we wait. */
	later->users++;
	was = waits ? del_timer_sync(&later->timer) : del_timer(&later->timer);
	if (runs_first) {
		if (was && later->own)
			queue_work(later->queue, &later->work);
		was |= flush_work(&later->work);
	} else {
		was |= waits ? cancel_work_sync(&later->work) : cancel_work(&later->work);
	}
	later->users--;
	if (!later->own)
		drop(later);
	else if (!runs_first)
		show_work(later, false);
	return was;
}
EXPORT_SYMBOL_GPL(mullion_work_end);

static void called(struct rcu_head *callback)
{
	struct later *later = container_of(callback, struct later, callback);
	unsigned long own = later->own;

	if (own) {
		forget(later);
		call(later, own);
	}
	kfree(later);
}

/* call_rcu. */
int mullion_callback(unsigned long domain, unsigned long own, unsigned long function)
{
	struct later *later = make(domain, own, CALLBACK);

	if (!later)
		return -ENOMEM;
	later->function = (void (*)(unsigned long))function;
	call_rcu(&later->callback, called);
	return 0;
}
EXPORT_SYMBOL_GPL(mullion_callback);

/* Memory goes back that the structures of modules lie in. How many of them were still armed. */
int mullion_later_freed(unsigned long start, unsigned long bytes)
{
	struct hlist_node *next;
	struct later *later;
	int armed = 0, at;

	if (!count)
		return 0;
	hash_for_each_safe(all, at, next, later, all) {
		if (later->own - start >= bytes)
			continue;
		forget(later);
		if (later->kind == CALLBACK) {
			/* It is freed by the callback, which does nothing else now. */
			armed++;
			continue;
		}
		armed += del_timer(&later->timer) + cancel_work(&later->work);
		drop(later);
	}
	return armed;
}
EXPORT_SYMBOL_GPL(mullion_later_freed);

/* A module was ended, or goes: nothing of it is called from then on. Sleeps. How many of its things were armed. */
int mullion_later_undo(unsigned long domain)
{
	struct hlist_node *next;
	struct later *later;
	int armed = 0, at;

again:
	hash_for_each_safe(all, at, next, later, all) {
		if (later->domain != domain)
			continue;
		forget(later);
		if (later->kind == CALLBACK) {
			armed++;
			continue;
		}
		later->users++;
		armed += del_timer_sync(&later->timer);
		armed += cancel_work_sync(&later->work);
		later->users--;
		drop(later);
		/* Others may have come and gone meanwhile. */
		goto again;
	}
	if (armed)
		rcu_barrier();
	return armed;
}
EXPORT_SYMBOL_GPL(mullion_later_undo);

static int __init begin(void)
{
	return 0;
}

module_init(begin);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Timers, work and callbacks of walled modules");
