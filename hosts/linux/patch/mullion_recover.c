// SPDX-License-Identifier: GPL-2.0
/*
 * Recovery of modules behind Mullion's word wall: an ordinary module, made beside the kernel, and no part of the patch.
 *
 * When a walled module is ended, its file systems answer with errors at once. A little later, in a thread of the kernel,
 * the library gives back what the module holds, and the module is loaded again. Old mounts stay until they are unmounted.
 */

#include <crypto/hash.h>
#include <linux/backing-dev.h>
#include <linux/buffer_head.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/pagevec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <asm/mullion.h>
#include "mm/slab.h"

/* A module that stands for a walled one. */
struct watched {
	struct list_head all;
	struct mullion_module *module;
	struct work_struct work;
	unsigned long ended;
	/* It is being loaded again: if it is ended meanwhile, it is not loaded a third time. */
	bool is_loading;
};

/* A mounted file system of a walled module; `ops` is what the kernel calls. */
struct mounted {
	struct list_head all;
	struct super_block *sb;
	const struct super_operations *own;
	struct super_operations ops;
};

/* A cache of a module that was ended, and that has objects in mounted file systems. */
struct leftover {
	struct list_head all;
	struct kmem_cache *cache;
};

/* What the library and this module tell each other. */
struct mullion_recovery {
	/* In the task whose call was ended, whatever it holds. */
	void (*ended)(unsigned long domain);
	/* What one may not do in that task. */
	void (*give_back)(unsigned long domain);
	/* Behind its beginning, in a thread of the kernel: not 0 if it was ended, also for what it has left there. */
	int (*is_over)(unsigned long domain);
};

static void sweep(struct work_struct *work);
static DECLARE_WORK(sweep_work, sweep);
static LIST_HEAD(modules);
static LIST_HEAD(mounts);
static LIST_HEAD(leftovers);
static DEFINE_MUTEX(turn);

static int dead_read_folio(struct file *file, struct folio *folio)
{
	folio_unlock(folio);
	return -EIO;
}

static int dead_write_begin(struct file *file, struct address_space *mapping, loff_t at, unsigned int bytes,
			    struct page **page, void **data)
{
	return -EIO;
}

static const struct address_space_operations dead_pages = {
	.read_folio = dead_read_folio,
	.write_begin = dead_write_begin,
	.dirty_folio = block_dirty_folio,
	.invalidate_folio = block_invalidate_folio,
};

/* A call that was ended may have left pages locked. Who waits for them would wait for ever. */
static void unlock_pages(struct address_space *mapping)
{
	struct folio_batch batch;
	pgoff_t at = 0;
	unsigned int n;

	folio_batch_init(&batch);
	while (filemap_get_folios(mapping, &at, ULONG_MAX, &batch)) {
		for (n = 0; n < folio_batch_count(&batch); n++) {
			struct folio *folio = batch.folios[n];

			if (folio_test_locked(folio) && !folio_test_writeback(folio))
				folio_unlock(folio);
		}
		folio_batch_release(&batch);
		cond_resched();
	}
}

static void finish_inode(struct inode *inode)
{
	truncate_inode_pages_final(&inode->i_data);
	invalidate_inode_buffers(inode);
	clear_inode(inode);
}

static void dead_evict(struct inode *inode)
{
	unlock_pages(&inode->i_data);
	finish_inode(inode);
}

/* The module's own, unless it is ended: the kernel takes an inode that is not cleared for a bug. */
static void evict(struct inode *inode)
{
	struct mounted *mounted = container_of(inode->i_sb->s_op, struct mounted, ops);

	mounted->own->evict_inode(inode);
	if (!(inode->i_state & I_CLEAR))
		dead_evict(inode);
}

/* An inode is a part of its module's object. */
static void dead_free_inode(struct inode *inode)
{
	struct slab *slab = virt_to_slab(inode);

	if (slab)
		kmem_cache_free(slab->slab_cache, nearest_obj(slab->slab_cache, slab, inode));
}

static void forget_mount(struct super_block *sb)
{
	struct mounted *mounted = container_of(sb->s_op, struct mounted, ops);
	struct watched *watched;

	/* The ended module's references to inodes go before the mount does. */
	list_for_each_entry(watched, &modules, all)
		if (mounted->ops.evict_inode == dead_evict)
			flush_work(&watched->work);
	list_del_init(&mounted->all);
	/* The kernel may look at `ops` until the mount is gone: its few bytes stay. */
	schedule_work(&sweep_work);
}

static void put(struct super_block *sb)
{
	struct mounted *mounted = container_of(sb->s_op, struct mounted, ops);

	if (mounted->own->put_super)
		mounted->own->put_super(sb);
	forget_mount(sb);
}

static const struct super_operations dead_super = {
	.free_inode = dead_free_inode,
	.drop_inode = generic_delete_inode,
	.evict_inode = dead_evict,
	.put_super = forget_mount,
};

static void kill_inode(struct inode *inode)
{
	make_bad_inode(inode);
	inode->i_data.a_ops = &dead_pages;
}

/* A walled module has mounted something. */
void mullion_mounted(struct dentry *root)
{
	struct mounted *mounted;

	if (IS_ERR_OR_NULL(root) || container_of(root->d_sb->s_op, struct mounted, ops)->ops.put_super == put)
		return;
	mounted = kzalloc(sizeof(*mounted), GFP_KERNEL | __GFP_NOFAIL);
	mounted->sb = root->d_sb;
	mounted->own = root->d_sb->s_op;
	mounted->ops = *mounted->own;
	mounted->ops.evict_inode = mounted->own->evict_inode ? evict : NULL;
	mounted->ops.put_super = put;
	list_add(&mounted->all, &mounts);
	root->d_sb->s_op = &mounted->ops;
}
EXPORT_SYMBOL_GPL(mullion_mounted);

/* The same, for types that get a tree. */
void mullion_mounted_tree(struct fs_context *context)
{
	mullion_mounted(context->root);
}
EXPORT_SYMBOL_GPL(mullion_mounted_tree);

static bool is_mounted(struct super_block *sb)
{
	struct mounted *mounted;

	list_for_each_entry(mounted, &mounts, all)
		if (mounted->sb == sb)
			return true;
	return false;
}

/* One that was being mounted when the module was ended: what it has so far ends as other mounts do. */
static void adopt(struct super_block *sb)
{
	struct mounted *mounted = is_mounted(sb) ? NULL : kzalloc(sizeof(*mounted), GFP_ATOMIC);

	if (!mounted)
		return;
	mounted->sb = sb;
	mounted->own = sb->s_op;
	mounted->ops = dead_super;
	list_add(&mounted->all, &mounts);
	sb->s_op = &mounted->ops;
}

/* What the module's own function would do with the disk; what else that had is the module's. */
static void dead_kill(struct super_block *sb)
{
	/* Without a root nobody asks for its end: inodes that the module has go now. */
	if (!sb->s_root && is_mounted(sb))
		forget_mount(sb);
	if (sb->s_bdev)
		kill_block_super(sb);
	else
		kill_anon_super(sb);
}

/* Its file systems, at once: nothing here sleeps, and no other task runs meanwhile. */
void mullion_kill_filesystem(struct file_system_type *type)
{
	struct mounted *mounted;
	struct super_block *sb;
	struct inode *inode;

	/* A variable of the module, which stays: mounts that are there end by it. */
	type->kill_sb = dead_kill;
	hlist_for_each_entry(sb, &type->fs_supers, s_instances)
		adopt(sb);
	list_for_each_entry(mounted, &mounts, all) {
		if (mounted->sb->s_type != type)
			continue;
		mounted->ops = dead_super;
		list_for_each_entry(inode, &mounted->sb->s_inodes, i_sb_list)
			kill_inode(inode);
	}
}
EXPORT_SYMBOL_GPL(mullion_kill_filesystem);

static void unlock_super(struct super_block *sb)
{
	struct inode *inode, *before = NULL;

	spin_lock(&sb->s_inode_list_lock);
	list_for_each_entry(inode, &sb->s_inodes, i_sb_list) {
		/* Those that were made meanwhile, by calls that were on their way. */
		if (inode->i_data.a_ops != &dead_pages)
			kill_inode(inode);
		if (inode->i_state & (I_FREEING | I_WILL_FREE) || !igrab(inode))
			continue;
		spin_unlock(&sb->s_inode_list_lock);
		iput(before);
		unlock_pages(&inode->i_data);
		before = inode;
		spin_lock(&sb->s_inode_list_lock);
	}
	spin_unlock(&sb->s_inode_list_lock);
	iput(before);
}

void mullion_undo_filesystem(struct file_system_type *type)
{
	struct mounted *mounted, *next;

	mullion_kill_filesystem(type);
	list_for_each_entry_safe(mounted, next, &mounts, all)
		if (mounted->sb->s_type == type)
			unlock_super(mounted->sb);
	unregister_filesystem(type);
}
EXPORT_SYMBOL_GPL(mullion_undo_filesystem);

void mullion_undo_inode(struct inode *inode)
{
	if (inode->i_state & I_NEW)
		iget_failed(inode);
	else
		iput(inode);
}
EXPORT_SYMBOL_GPL(mullion_undo_inode);

/* An ended call has left the inode marked as new: whoever looks for it would wait for ever. */
void mullion_undo_new_inode(struct inode *inode)
{
	if (!(inode->i_state & I_NEW))
		return;
	make_bad_inode(inode);
	unlock_new_inode(inode);
}
EXPORT_SYMBOL_GPL(mullion_undo_new_inode);

/* Whether the task that has got the inode has to say when it is filled in. */
int mullion_is_new(struct inode *inode)
{
	return !!(inode->i_state & I_NEW);
}
EXPORT_SYMBOL_GPL(mullion_is_new);

/* A file system is not frozen meanwhile. */
void mullion_super_begins(struct percpu_rw_semaphore *sem)
{
	percpu_down_read(sem);
}
EXPORT_SYMBOL_GPL(mullion_super_begins);

void mullion_super_ends(struct percpu_rw_semaphore *sem)
{
	percpu_up_read(sem);
}
EXPORT_SYMBOL_GPL(mullion_super_ends);

void mullion_undo_hash(struct crypto_shash *hash)
{
	crypto_free_shash(hash);
}
EXPORT_SYMBOL_GPL(mullion_undo_hash);

/* Its objects go with the last mount. */
void mullion_undo_cache(struct kmem_cache *cache)
{
	struct leftover *leftover = kzalloc(sizeof(*leftover), GFP_KERNEL | __GFP_NOFAIL);

	leftover->cache = cache;
	list_add(&leftover->all, &leftovers);
}
EXPORT_SYMBOL_GPL(mullion_undo_cache);

/* What modules count in the running task, by calls that the library notes. An ended call's counts are taken back there. */
void mullion_pagefaults_off(void)
{
	pagefault_disable();
}
EXPORT_SYMBOL_GPL(mullion_pagefaults_off);

void mullion_pagefaults_on(void)
{
	pagefault_enable();
}
EXPORT_SYMBOL_GPL(mullion_pagefaults_on);

void mullion_undo_pagefaults(struct thread_info *of)
{
	of->task->pagefault_disabled--;
}
EXPORT_SYMBOL_GPL(mullion_undo_pagefaults);

void mullion_bottom_halves_off(void)
{
	local_bh_disable();
}
EXPORT_SYMBOL_GPL(mullion_bottom_halves_off);

void mullion_bottom_halves_on(void)
{
	local_bh_enable();
}
EXPORT_SYMBOL_GPL(mullion_bottom_halves_on);

/* What waits runs behind the next interrupt: not in the middle of an end. */
void mullion_undo_bottom_halves(struct thread_info *of)
{
	of->preempt_count -= SOFTIRQ_DISABLE_OFFSET;
}
EXPORT_SYMBOL_GPL(mullion_undo_bottom_halves);

/* One more reference to a buffer. */
void mullion_get_buffer(struct buffer_head *bh)
{
	get_bh(bh);
}
EXPORT_SYMBOL_GPL(mullion_get_buffer);

/* What the kernel has in line for buffers and pages. No module writes their structures: it calls these. The library looks at
 * whether it has the buffer or takes the page's lock; of a page that it marks, at the type alone. It notes the locks. */
void mullion_lock_buffer(struct buffer_head *bh)
{
	lock_buffer(bh);
}
EXPORT_SYMBOL_GPL(mullion_lock_buffer);

void mullion_buffer_uptodate(struct buffer_head *bh)
{
	set_buffer_uptodate(bh);
}
EXPORT_SYMBOL_GPL(mullion_buffer_uptodate);

void mullion_buffer_not_uptodate(struct buffer_head *bh)
{
	clear_buffer_uptodate(bh);
}
EXPORT_SYMBOL_GPL(mullion_buffer_not_uptodate);

void mullion_buffer_no_error(struct buffer_head *bh)
{
	clear_buffer_write_io_error(bh);
}
EXPORT_SYMBOL_GPL(mullion_buffer_no_error);

void mullion_get_page(struct page *page)
{
	get_page(page);
}
EXPORT_SYMBOL_GPL(mullion_get_page);

void mullion_put_page(struct page *page)
{
	put_page(page);
}
EXPORT_SYMBOL_GPL(mullion_put_page);

void mullion_lock_page(struct page *page)
{
	lock_page(page);
}
EXPORT_SYMBOL_GPL(mullion_lock_page);

void mullion_page_checked(struct page *page)
{
	SetPageChecked(page);
}
EXPORT_SYMBOL_GPL(mullion_page_checked);

void mullion_page_error(struct page *page)
{
	SetPageError(page);
}
EXPORT_SYMBOL_GPL(mullion_page_error);

void mullion_page_no_error(struct page *page)
{
	ClearPageError(page);
}
EXPORT_SYMBOL_GPL(mullion_page_no_error);

void mullion_page_uptodate(struct page *page)
{
	SetPageUptodate(page);
}
EXPORT_SYMBOL_GPL(mullion_page_uptodate);

void mullion_page_not_uptodate(struct page *page)
{
	ClearPageUptodate(page);
}
EXPORT_SYMBOL_GPL(mullion_page_not_uptodate);

/* Those that an ended call has left closed; transfers open theirs themselves. */
void mullion_undo_page_lock(struct page *page)
{
	if (PageLocked(page) && !PageWriteback(page))
		unlock_page(page);
}
EXPORT_SYMBOL_GPL(mullion_undo_page_lock);

void mullion_undo_buffer_lock(struct buffer_head *bh)
{
	if (buffer_locked(bh))
		unlock_buffer(bh);
}
EXPORT_SYMBOL_GPL(mullion_undo_buffer_lock);

static void sweep(struct work_struct *work)
{
	struct leftover *leftover, *next;
	struct mounted *mounted;

	rcu_barrier();
	mutex_lock(&turn);
	list_for_each_entry(mounted, &mounts, all)
		if (mounted->ops.evict_inode == dead_evict)
			goto out;
	list_for_each_entry_safe(leftover, next, &leftovers, all) {
		list_del(&leftover->all);
		kmem_cache_destroy(leftover->cache);
		kfree(leftover);
	}
out:
	mutex_unlock(&turn);
}

struct mullion_recovery mullion_recovery;
EXPORT_SYMBOL_GPL(mullion_recovery);

static void recover(struct work_struct *work)
{
	struct watched *watched = container_of(work, struct watched, work);
	int error;

	/* Transfers of pages that were under way end by themselves, and unlock them. */
	msleep(50);
	if (mullion_recovery.give_back)
		mullion_recovery.give_back(watched->ended);
	schedule_work(&sweep_work);
	watched->is_loading = true;
	error = mullion_insert(watched->module);
	if (!error && mullion_recovery.is_over && mullion_recovery.is_over(watched->module->domain)) {
		mullion_recovery.give_back(watched->module->domain);
		error = -EFAULT;
	}
	watched->is_loading = false;
	if (error)
		pr_err("mullion: %s is not loaded again: %d\n", watched->module->name, error);
	else
		pr_err("mullion: %s is loaded again\n", watched->module->name);
}

static struct watched *find(struct mullion_module *module)
{
	struct watched *watched;

	list_for_each_entry(watched, &modules, all)
		if (watched->module == module)
			return watched;
	return NULL;
}

/* The module that stands for a walled one has begun. */
void mullion_watch(struct mullion_module *module)
{
	struct watched *watched = kzalloc(sizeof(*watched), GFP_KERNEL | __GFP_NOFAIL);

	watched->module = module;
	INIT_WORK(&watched->work, recover);
	list_add(&watched->all, &modules);
}
EXPORT_SYMBOL_GPL(mullion_watch);

void mullion_unwatch(struct mullion_module *module)
{
	struct watched *watched = find(module);

	if (!watched)
		return;
	flush_work(&watched->work);
	list_del(&watched->all);
	kfree(watched);
}
EXPORT_SYMBOL_GPL(mullion_unwatch);

static void ended(unsigned long domain)
{
	struct watched *watched;

	list_for_each_entry(watched, &modules, all) {
		if (watched->module->domain != domain || watched->is_loading)
			continue;
		watched->ended = domain;
		schedule_work(&watched->work);
	}
}

static int __init begin(void)
{
	/* As many bytes the wall's library looks at, in front of functions that make these. */
	BUILD_BUG_ON(sizeof(struct inode) != 568);
	BUILD_BUG_ON(offsetof(struct crypto_shash, base) != 8);
	BUILD_BUG_ON(sizeof(struct mutex) != 24);
	BUILD_BUG_ON(sizeof(struct rw_semaphore) != 32);
	mullion_recovery.ended = ended;
	return 0;
}

module_init(begin);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Recovery of walled modules");
