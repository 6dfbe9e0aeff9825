// SPDX-License-Identifier: GPL-2.0
/*
 * A question to the library of Mullion's word wall while the kernel runs: an ordinary module, and no part of the patch.
 *
 * echo map > /proc/mullion      who may touch which memory now, for `mullion map`
 * echo trace > /proc/mullion    what was granted and taken since the beginning, for `mullion model run`
 *
 * The library writes files of the host, beside the walled modules.
 */

#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/string.h>
#include <linux/uaccess.h>

/* What the library and this module tell each other. */
struct mullion_live {
	/* Of the library: 0, or an error. */
	int (*tell)(const char *word);
};

extern struct mullion_live mullion_live;
struct mullion_live mullion_live;
EXPORT_SYMBOL_GPL(mullion_live);

static ssize_t ask(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	char word[16] = "";
	int error;

	if (bytes >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, from, bytes))
		return -EFAULT;
	error = mullion_live.tell ? mullion_live.tell(strim(word)) : -ENODEV;
	return error ? error : bytes;
}

static const struct proc_ops operations = {
	.proc_write = ask,
};

static int __init begin(void)
{
	return proc_create("mullion", 0200, NULL, &operations) ? 0 : -ENOMEM;
}

module_init(begin);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Questions to the wall's library");
