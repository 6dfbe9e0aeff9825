// SPDX-License-Identifier: GPL-2.0
/*
 * What modules behind Mullion's word wall register: an ordinary module, and no part of the patch.
 *
 * The kernel never has a structure that lies in memory which a module may write. For each that is registered it has one of
 * ours, in a cache of its type. Ours begins as zeros. It gets numbers, names that are copied, and functions that are the
 * module's own. Nothing else of the module's structure comes through: no list, no count, no other pointer.
 *
 * The library calls the kernel's function for that, and names it: some of them lie in modules that need not be there.
 * User-Mode Linux has one processor and no preemption, and nothing here is called by an interrupt.
 */

#include <crypto/internal/hash.h>
#include <crypto/internal/scompress.h>
#include <linux/blk_types.h>
#include <linux/crypto.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/module.h>
#include <linux/nls.h>
#include <linux/notifier.h>
#include <linux/slab.h>

/* `registrations.rs` has the same numbers. */
enum type { FILE_SYSTEM, CHARACTERS, ALGORITHM, SHASH, SCOMP, NOTIFIER, TYPES };

/* What the library and this module tell each other. */
struct mullion_registrations {
	/* Where ours is of a module's structure; 0: it is not what it has to be. The kernel does not have it yet. */
	unsigned long (*copy)(unsigned long domain, int type, unsigned long own);
	/* The kernel has it, or has it no longer. */
	void (*is_in)(unsigned long copy, int is);
	/* Where ours is of one that the kernel has; 0: there is none. */
	unsigned long (*find)(unsigned long domain, int type, unsigned long own);
	unsigned long (*bytes)(int type);
	/* Whether it keeps a mounted file system of a module's from being frozen. */
	int (*is_of_super)(unsigned long domain, unsigned long semaphore);
	/* Where the mapping of an inode lies, and that of a block device. */
	unsigned long (*mapping)(unsigned long inode, unsigned long device);
	/* Of the library: the module in whose data so many bytes lie, or 0. */
	unsigned long (*owner)(unsigned long address, unsigned long bytes);
	/* Whether the kernel may call it with these arguments: it is a function of the module's, or one that its policy names, and its
	 * policy lends no more of them than there is. */
	int (*fits)(unsigned long domain, unsigned long function, const struct mullion_argument *arguments);
	/* What the function writes behind the kernel's own words is lent to it for one call: 0, if its policy does not say so. */
	void *(*lend)(unsigned long domain, unsigned long function, unsigned long start, unsigned long bytes);
	void (*end)(void *loan);
	/* What the kernel has where a table of a module says so: a function with arguments that are looked at has another address there. */
	unsigned long (*real)(unsigned long address);
	/* The kernel's structure of a module. */
	struct module *(*module)(unsigned long domain);
};

extern struct mullion_registrations mullion_registrations;

/* It stays: the kernel may still look at it when the module is gone, as at a file system that is mounted. */
struct registered {
	struct list_head all;
	unsigned long domain;
	enum type type;
	unsigned long own;
	bool is_in;
	void *copy;
	char names[2][64];
	/* What is registered, with the module's functions where ours has some of its own. */
	union {
		struct crypto_alg algorithm;
		struct shash_alg shash;
		struct notifier_block notifier;
	} was;
};

/* What there is of a type. */
struct kind {
	const char *name;
	unsigned int bytes;
	bool (*copies)(struct registered *one);
	struct kmem_cache *cache;
};

static LIST_HEAD(all);

/* Numbers alone: a pointer does not compile. */
#define TAKES(name) do { \
	BUILD_BUG_ON(__builtin_classify_type(own->name) != __builtin_classify_type(0)); \
	to->name = own->name; \
} while (0)

/* A function of the module, or none; and what the kernel has in its arguments. */
#define CALLS(name, ...) do { \
	const struct mullion_argument arguments[6] = { __VA_ARGS__ }; \
	\
	if (own->name && !mullion_registrations.fits(one->domain, (unsigned long)own->name, arguments)) \
		return false; \
	to->name = own->name; \
} while (0)

/* The kernel calls it without a look. */
#define MUST_CALL(name, ...) do { \
	CALLS(name, __VA_ARGS__); \
	if (!own->name) \
		return false; \
} while (0)

/* The kernel calls ours, if there is one of the module's. */
#define OURS(name, function) do { \
	if (to->name) \
		to->name = function; \
} while (0)

static bool is_own(struct registered *one, const void *what, unsigned long bytes)
{
	return mullion_registrations.owner((unsigned long)what, bytes) == one->domain;
}

/* A short text of the module's. */
static const char *name(struct registered *one, int which, const char *text)
{
	int at;

	for (at = 0; at < sizeof(one->names[0]); at++) {
		if (!is_own(one, text + at, 1))
			return NULL;
		one->names[which][at] = text[at];
		if (!text[at])
			return one->names[which];
	}
	return NULL;
}

static bool copies_file_system(struct registered *one)
{
	const struct file_system_type *own = (void *)one->own;
	struct file_system_type *to = one->copy;
	unsigned long end = mullion_registrations.real((unsigned long)own->kill_sb);

	to->name = name(one, 0, own->name);
	TAKES(fs_flags);
	CALLS(init_fs_context, WRITES(sizeof(struct fs_context)));
	CALLS(mount, {}, {}, READS_TEXT, READS_TEXT);
	if (end == (unsigned long)kill_block_super)
		to->kill_sb = kill_block_super;
	else
		MUST_CALL(kill_sb, WRITES(sizeof(struct super_block)));
	to->owner = mullion_registrations.module(one->domain);
	/* `parameters` are for the module's own parser. */
	return to->name && (to->mount || to->init_fs_context);
}

/* As many bytes users of a table read. */
#define LETTERS 256

static bool copies_characters(struct registered *one)
{
	const struct nls_table *own = (void *)one->own;
	struct nls_table *to = one->copy;

	to->charset = name(one, 0, own->charset);
	if (own->alias)
		to->alias = name(one, 1, own->alias);
	MUST_CALL(uni2char, {}, WRITES_AS(2));
	MUST_CALL(char2uni, READS_AS(1), {}, WRITES(sizeof(wchar_t)));
	to->charset2lower = own->charset2lower;
	to->charset2upper = own->charset2upper;
	return to->charset && (to->alias || !own->alias) && is_own(one, own->charset2lower, LETTERS) &&
	       is_own(one, own->charset2upper, LETTERS);
}

/* The others say what lies around the structure. */
#define FLAGS (CRYPTO_ALG_NEED_FALLBACK | CRYPTO_ALG_OPTIONAL_KEY | CRYPTO_ALG_INTERNAL | CRYPTO_ALG_KERN_DRIVER_ONLY | \
	       CRYPTO_ALG_ALLOCATES_MEMORY)

/* More has no module, and the kernel adds to it in 32 bits. */
#define MOST (64u << 10)

/* Ours, of which the kernel speaks. */
static struct registered *of(enum type type, void *copy);

/*
 * The kernel's words in front of a context say who is called next: no module writes them. So a function that makes a context
 * is lent that alone, and its policy lets it read the rest. `contexts` in the policy names such functions.
 */
#define WITH_CONTEXT(one, function, context, bytes, call) ({ \
	void *loan = mullion_registrations.lend((one)->domain, (unsigned long)(function), (unsigned long)(context), bytes); \
	__auto_type result = (call); \
	\
	mullion_registrations.end(loan); \
	result; \
})

#define TRANSFORM (sizeof(struct crypto_tfm) + own->cra_ctxsize)

static bool copies_base(struct registered *one, const struct crypto_alg *own, struct crypto_alg *to)
{
	to->cra_flags = own->cra_flags & FLAGS;
	TAKES(cra_blocksize);
	TAKES(cra_ctxsize);
	TAKES(cra_alignmask);
	TAKES(cra_priority);
	strscpy(to->cra_name, own->cra_name, sizeof(to->cra_name));
	strscpy(to->cra_driver_name, own->cra_driver_name, sizeof(to->cra_driver_name));
	if (to->cra_ctxsize > MOST)
		return false;
	CALLS(cra_init, READS(TRANSFORM));
	CALLS(cra_exit, READS(TRANSFORM));
	CALLS(cra_destroy);
	to->cra_module = mullion_registrations.module(one->domain);
	return true;
}

static int algorithm_init(struct crypto_tfm *tfm)
{
	struct registered *one = of(ALGORITHM, tfm->__crt_alg);
	const struct crypto_alg *was = &one->was.algorithm;

	return WITH_CONTEXT(one, was->cra_init, crypto_tfm_ctx(tfm), was->cra_ctxsize, was->cra_init(tfm));
}

static void algorithm_exit(struct crypto_tfm *tfm)
{
	struct registered *one = of(ALGORITHM, tfm->__crt_alg);
	const struct crypto_alg *was = &one->was.algorithm;

	WITH_CONTEXT(one, was->cra_exit, crypto_tfm_ctx(tfm), was->cra_ctxsize, (was->cra_exit(tfm), 0));
}

static int cipher_setkey(struct crypto_tfm *tfm, const u8 *key, unsigned int bytes)
{
	struct registered *one = of(ALGORITHM, tfm->__crt_alg);
	const struct crypto_alg *was = &one->was.algorithm;

	return WITH_CONTEXT(one, was->cra_cipher.cia_setkey, crypto_tfm_ctx(tfm), was->cra_ctxsize,
			    was->cra_cipher.cia_setkey(tfm, key, bytes));
}

static int compress(struct crypto_tfm *tfm, const u8 *from, unsigned int bytes, u8 *to, unsigned int *room)
{
	struct registered *one = of(ALGORITHM, tfm->__crt_alg);
	const struct crypto_alg *was = &one->was.algorithm;

	return WITH_CONTEXT(one, was->cra_compress.coa_compress, crypto_tfm_ctx(tfm), was->cra_ctxsize,
			    was->cra_compress.coa_compress(tfm, from, bytes, to, room));
}

static int decompress(struct crypto_tfm *tfm, const u8 *from, unsigned int bytes, u8 *to, unsigned int *room)
{
	struct registered *one = of(ALGORITHM, tfm->__crt_alg);
	const struct crypto_alg *was = &one->was.algorithm;

	return WITH_CONTEXT(one, was->cra_compress.coa_decompress, crypto_tfm_ctx(tfm), was->cra_ctxsize,
			    was->cra_compress.coa_decompress(tfm, from, bytes, to, room));
}

static bool copies_algorithm(struct registered *one)
{
	const struct crypto_alg *own = (void *)one->own;
	struct crypto_alg *to = one->copy;
	u32 type = own->cra_flags & CRYPTO_ALG_TYPE_MASK;

	if (!copies_base(one, own, to))
		return false;
	to->cra_flags |= type;
	switch (type) {
	case CRYPTO_ALG_TYPE_CIPHER:
		TAKES(cra_cipher.cia_min_keysize);
		TAKES(cra_cipher.cia_max_keysize);
		MUST_CALL(cra_cipher.cia_setkey, READS(TRANSFORM), READS_AS(2));
		MUST_CALL(cra_cipher.cia_encrypt, READS(TRANSFORM), WRITES(own->cra_blocksize), READS(own->cra_blocksize));
		MUST_CALL(cra_cipher.cia_decrypt, READS(TRANSFORM), WRITES(own->cra_blocksize), READS(own->cra_blocksize));
		one->was.algorithm = *to;
		OURS(cra_cipher.cia_setkey, cipher_setkey);
		break;
	case CRYPTO_ALG_TYPE_COMPRESS:
		MUST_CALL(cra_compress.coa_compress, READS(TRANSFORM), READS_AS(2), {}, WRITES_AS_AT(4), WRITES(sizeof(int)));
		MUST_CALL(cra_compress.coa_decompress, READS(TRANSFORM), READS_AS(2), {}, WRITES_AS_AT(4), WRITES(sizeof(int)));
		one->was.algorithm = *to;
		OURS(cra_compress.coa_compress, compress);
		OURS(cra_compress.coa_decompress, decompress);
		break;
	default:
		return false;
	}
	OURS(cra_init, algorithm_init);
	OURS(cra_exit, algorithm_exit);
	return true;
}

/* The digest that is being made, whose first word leads to what is called next: the module writes beside it. */
#define KEEPS(desc, call) ({ \
	struct crypto_shash *tfm = (desc)->tfm; \
	struct registered *one = of(SHASH, crypto_shash_alg(tfm)); \
	const struct shash_alg *was = &one->was.shash; \
	int result = (call); \
	\
	(desc)->tfm = tfm; \
	result; \
})

/* Some modules have one function for digests of several sizes. */
#define KEEPS_DIGEST(desc, to, call) ({ \
	u8 digest[HASH_MAX_DIGESTSIZE] = {}; \
	int error = KEEPS(desc, call); \
	\
	if (!error) \
		memcpy(to, digest, crypto_shash_digestsize((desc)->tfm)); \
	error; \
})

static int shash_init(struct shash_desc *desc)
{
	return KEEPS(desc, was->init(desc));
}

static int shash_update(struct shash_desc *desc, const u8 *from, unsigned int bytes)
{
	return KEEPS(desc, was->update(desc, from, bytes));
}

static int shash_final(struct shash_desc *desc, u8 *to)
{
	return KEEPS_DIGEST(desc, to, was->final(desc, digest));
}

static int shash_finup(struct shash_desc *desc, const u8 *from, unsigned int bytes, u8 *to)
{
	return KEEPS_DIGEST(desc, to, was->finup(desc, from, bytes, digest));
}

static int shash_digest(struct shash_desc *desc, const u8 *from, unsigned int bytes, u8 *to)
{
	return KEEPS_DIGEST(desc, to, was->digest(desc, from, bytes, digest));
}

static int shash_export(struct shash_desc *desc, void *to)
{
	return KEEPS(desc, was->export(desc, to));
}

static int shash_import(struct shash_desc *desc, const void *from)
{
	return KEEPS(desc, was->import(desc, from));
}

static int shash_setkey(struct crypto_shash *tfm, const u8 *key, unsigned int bytes)
{
	struct registered *one = of(SHASH, crypto_shash_alg(tfm));
	const struct shash_alg *was = &one->was.shash;

	return WITH_CONTEXT(one, was->setkey, crypto_shash_ctx(tfm), was->base.cra_ctxsize, was->setkey(tfm, key, bytes));
}

static int shash_base_init(struct crypto_tfm *tfm)
{
	struct registered *one = of(SHASH, container_of(tfm->__crt_alg, struct shash_alg, base));
	const struct shash_alg *was = &one->was.shash;

	return WITH_CONTEXT(one, was->base.cra_init, crypto_tfm_ctx(tfm), was->base.cra_ctxsize, was->base.cra_init(tfm));
}

static void shash_base_exit(struct crypto_tfm *tfm)
{
	struct registered *one = of(SHASH, container_of(tfm->__crt_alg, struct shash_alg, base));
	const struct shash_alg *was = &one->was.shash;

	WITH_CONTEXT(one, was->base.cra_exit, crypto_tfm_ctx(tfm), was->base.cra_ctxsize, (was->base.cra_exit(tfm), 0));
}

#define DESC WRITES(sizeof(struct shash_desc) + own->descsize)

static bool copies_shash(struct registered *one)
{
	const struct shash_alg *own = (void *)one->own;
	struct shash_alg *to = one->copy;

	TAKES(descsize);
	TAKES(digestsize);
	TAKES(statesize);
	/* The kernel's own bounds, before somebody adds to them. */
	if (to->descsize > HASH_MAX_DESCSIZE || to->digestsize > HASH_MAX_DIGESTSIZE || to->statesize > HASH_MAX_STATESIZE)
		return false;
	MUST_CALL(init, DESC);
	MUST_CALL(update, DESC, READS_AS(2));
	MUST_CALL(final, DESC, WRITES(HASH_MAX_DIGESTSIZE));
	CALLS(finup, DESC, READS_AS(2), {}, WRITES(HASH_MAX_DIGESTSIZE));
	CALLS(digest, DESC, READS_AS(2), {}, WRITES(HASH_MAX_DIGESTSIZE));
	CALLS(export, DESC, WRITES(own->statesize));
	CALLS(import, DESC, READS(own->statesize));
	CALLS(setkey, READS(sizeof(struct crypto_shash) + own->base.cra_ctxsize), READS_AS(2));
	if (!copies_base(one, &own->base, &to->base))
		return false;
	one->was.shash = *to;
	OURS(init, shash_init);
	OURS(update, shash_update);
	OURS(final, shash_final);
	OURS(finup, shash_finup);
	OURS(digest, shash_digest);
	OURS(export, shash_export);
	OURS(import, shash_import);
	OURS(setkey, shash_setkey);
	OURS(base.cra_init, shash_base_init);
	OURS(base.cra_exit, shash_base_exit);
	return true;
}

static bool copies_scomp(struct registered *one)
{
	const struct scomp_alg *own = (void *)one->own;
	struct scomp_alg *to = one->copy;

	MUST_CALL(alloc_ctx);
	MUST_CALL(free_ctx);
	MUST_CALL(compress, {}, READS_AS(2), {}, WRITES_AS_AT(4), WRITES(sizeof(int)));
	MUST_CALL(decompress, {}, READS_AS(2), {}, WRITES_AS_AT(4), WRITES(sizeof(int)));
	return copies_base(one, &own->base, &to->base);
}

/* The module's function gets the module's structure. */
static int notifies(struct notifier_block *block, unsigned long what, void *data)
{
	struct registered *one = of(NOTIFIER, block);

	return one->was.notifier.notifier_call((struct notifier_block *)one->own, what, data);
}

static bool copies_notifier(struct registered *one)
{
	const struct notifier_block *own = (void *)one->own;
	struct notifier_block *to = one->copy;

	MUST_CALL(notifier_call, {}, {}, READS(sizeof(struct crypto_alg)));
	TAKES(priority);
	one->was.notifier = *to;
	OURS(notifier_call, notifies);
	return true;
}

#define KIND(type, copies) { #type, sizeof(struct type), copies, NULL }

static struct kind kinds[TYPES] = {
	[FILE_SYSTEM] = KIND(file_system_type, copies_file_system),
	[CHARACTERS] = KIND(nls_table, copies_characters),
	[ALGORITHM] = KIND(crypto_alg, copies_algorithm),
	[SHASH] = KIND(shash_alg, copies_shash),
	[SCOMP] = KIND(scomp_alg, copies_scomp),
	[NOTIFIER] = KIND(notifier_block, copies_notifier),
};

/* It lies behind its structure. */
static struct registered **place(const struct kind *kind, void *copy)
{
	return copy + ALIGN(kind->bytes, sizeof(void *));
}

static struct registered *of(enum type type, void *copy)
{
	return *place(&kinds[type], copy);
}

static unsigned long copy(unsigned long domain, int type, unsigned long own)
{
	struct kind *kind = &kinds[type];
	struct registered *one;

	if (mullion_registrations.owner(own, kind->bytes) != domain)
		return 0;
	one = kzalloc(sizeof(*one), GFP_KERNEL | __GFP_NOFAIL);
	one->domain = domain;
	one->type = type;
	one->own = own;
	one->copy = kmem_cache_zalloc(kind->cache, GFP_KERNEL | __GFP_NOFAIL);
	*place(kind, one->copy) = one;
	if (!kind->copies(one)) {
		kmem_cache_free(kind->cache, one->copy);
		kfree(one);
		return 0;
	}
	list_add(&one->all, &all);
	return (unsigned long)one->copy;
}

static void is_in(unsigned long copy, int is)
{
	struct registered *one;

	list_for_each_entry(one, &all, all)
		if ((unsigned long)one->copy == copy)
			one->is_in = is;
}

static unsigned long find(unsigned long domain, int type, unsigned long own)
{
	struct registered *one;

	list_for_each_entry(one, &all, all)
		if (one->domain == domain && one->type == type && one->own == own && one->is_in)
			return (unsigned long)one->copy;
	return 0;
}

static unsigned long bytes(int type)
{
	return kinds[type].bytes;
}

static int is_of_super(unsigned long domain, unsigned long semaphore)
{
	struct file_system_type *type;
	struct registered *one;
	struct super_block *sb;
	int level;

	list_for_each_entry(one, &all, all) {
		if (one->domain != domain || one->type != FILE_SYSTEM)
			continue;
		type = one->copy;
		hlist_for_each_entry(sb, &type->fs_supers, s_instances)
			for (level = 0; level < SB_FREEZE_LEVELS; level++)
				if ((unsigned long)&sb->s_writers.rw_sem[level] == semaphore)
					return 1;
	}
	return 0;
}

static unsigned long mapping(unsigned long inode, unsigned long device)
{
	struct inode *of = inode ? (struct inode *)inode : ((struct block_device *)device)->bd_inode;

	return (unsigned long)&of->i_data;
}

struct mullion_registrations mullion_registrations = {
	.copy = copy,
	.is_in = is_in,
	.find = find,
	.bytes = bytes,
	.is_of_super = is_of_super,
	.mapping = mapping,
};
EXPORT_SYMBOL_GPL(mullion_registrations);

static int __init begin(void)
{
	struct kind *kind;

	for (kind = kinds; kind < kinds + TYPES; kind++) {
		unsigned int bytes = ALIGN(kind->bytes, sizeof(void *)) + sizeof(void *);

		kind->cache = kmem_cache_create(kind->name, bytes, 0, 0, NULL);
		if (!kind->cache)
			return -ENOMEM;
	}
	return 0;
}

module_init(begin);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("What walled modules register");
