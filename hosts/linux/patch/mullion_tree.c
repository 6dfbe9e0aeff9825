// SPDX-License-Identifier: GPL-2.0
/*
 * Trees of modules behind Mullion's word wall (`struct radix_tree_root`): an ordinary module, and no part of the patch.
 *
 * A tree's root lies in memory that the module may write, and the kernel would follow the pointer there. So the kernel never
 * does: for each root there is a tree of ours. The module's root has a word that says whether ours is empty, and nothing else.
 *
 * The library has looked at the arguments: the root is memory that stays the module's.
 * User-Mode Linux has one processor and no preemption, and nothing here is called by an interrupt.
 */

#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/radix-tree.h>
#include <linux/slab.h>

/* What stands for a root of a module. */
struct tree {
	struct hlist_node all;
	unsigned long domain;
	/* Where the module's root is. */
	unsigned long own;
	struct radix_tree_root root;
};

static DEFINE_HASHTABLE(all, 7);
static unsigned int count;

static struct tree *find(unsigned long own)
{
	struct tree *tree;

	hash_for_each_possible(all, tree, all, own)
		if (tree->own == own)
			return tree;
	return NULL;
}

/* What the tree names is the module's, and stays. */
static void empty(struct tree *tree)
{
	struct radix_tree_iter iter;
	void __rcu **slot;

	radix_tree_for_each_slot(slot, &tree->root, &iter, 0)
		radix_tree_iter_delete(&tree->root, &iter, slot);
}

static void forget(struct tree *tree)
{
	empty(tree);
	hash_del(&tree->all);
	count--;
	kfree(tree);
}

/* As the module sees it, by `radix_tree_empty`, which is in line. */
static void show(struct tree *tree)
{
	struct radix_tree_root *own = (struct radix_tree_root *)tree->own;

	own->xa_head = radix_tree_empty(&tree->root) ? NULL : tree;
}

/* The tree of a root. NULL: it is empty, or there is no memory. */
static struct tree *have(unsigned long domain, unsigned long own, bool makes)
{
	struct tree *tree = find(own);

	/* The module has initialised its root again. */
	if (tree && !((struct radix_tree_root *)own)->xa_head)
		empty(tree);
	if (tree || !makes)
		return tree;
	tree = kzalloc(sizeof(*tree), GFP_ATOMIC);
	if (!tree)
		return NULL;
	tree->domain = domain;
	tree->own = own;
	/* Whatever the module's root says: nothing sleeps here. */
	INIT_RADIX_TREE(&tree->root, GFP_ATOMIC);
	hash_add(all, &tree->all, own);
	count++;
	return tree;
}

/* radix_tree_lookup. */
unsigned long mullion_tree_lookup(unsigned long domain, unsigned long own, unsigned long index)
{
	struct tree *tree = have(domain, own, false);

	return tree ? (unsigned long)radix_tree_lookup(&tree->root, index) : 0;
}
EXPORT_SYMBOL_GPL(mullion_tree_lookup);

/* radix_tree_insert. The library has refused what the kernel takes for a node of its own. */
unsigned long mullion_tree_insert(unsigned long domain, unsigned long own, unsigned long index, void *item)
{
	struct tree *tree = have(domain, own, true);
	int error;

	if (!tree)
		return -ENOMEM;
	error = radix_tree_insert(&tree->root, index, item);
	show(tree);
	return error;
}
EXPORT_SYMBOL_GPL(mullion_tree_insert);

/* radix_tree_delete_item; any item if it is NULL, as radix_tree_delete. */
unsigned long mullion_tree_delete(unsigned long domain, unsigned long own, unsigned long index, void *item)
{
	struct tree *tree = have(domain, own, false);
	void *was;

	if (!tree)
		return 0;
	was = radix_tree_delete_item(&tree->root, index, item);
	show(tree);
	return (unsigned long)was;
}
EXPORT_SYMBOL_GPL(mullion_tree_delete);

/* radix_tree_gang_lookup. */
unsigned long mullion_tree_gang_lookup(unsigned long domain, unsigned long own, void **results, unsigned long first,
				       unsigned long most)
{
	struct tree *tree = have(domain, own, false);

	return tree ? radix_tree_gang_lookup(&tree->root, results, first, most) : 0;
}
EXPORT_SYMBOL_GPL(mullion_tree_gang_lookup);

/* Memory goes back that roots lie in. */
unsigned long mullion_tree_freed(unsigned long start, unsigned long bytes)
{
	struct hlist_node *next;
	struct tree *tree;
	int at;

	if (!count)
		return 0;
	hash_for_each_safe(all, at, next, tree, all)
		if (tree->own - start < bytes)
			forget(tree);
	return 0;
}
EXPORT_SYMBOL_GPL(mullion_tree_freed);

/* A module was ended, or goes. */
unsigned long mullion_tree_undo(unsigned long domain)
{
	struct hlist_node *next;
	struct tree *tree;
	int at;

	hash_for_each_safe(all, at, next, tree, all)
		if (tree->domain == domain)
			forget(tree);
	return 0;
}
EXPORT_SYMBOL_GPL(mullion_tree_undo);

static int __init begin(void)
{
	return 0;
}

module_init(begin);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Trees of walled modules");
