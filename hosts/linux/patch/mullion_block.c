// SPDX-License-Identifier: GPL-2.0
/*
 * Disks of modules behind Mullion's word wall: an ordinary module, and no part of the patch.
 *
 * A request (`struct bio`) is the driver's from the call of `submit_bio` until the driver says that it is done. Meanwhile the
 * driver may read the request and its list of pieces, and the memory that is to be written to the disk. It may write the memory
 * that is to be read from the disk. How it went, it says by a call: in the same word the kernel counts parts of the request.
 *
 * A file system that makes requests of its own has functions here that do so for it, with memory of ours.
 *
 * When the driver is ended, its disks answer with errors at once. A little later they go, and its requests fail.
 */

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

/* Some memory that is lent. */
struct mullion_piece {
	unsigned long start, bytes, write;
};

/* What the library and this module tell each other. */
struct mullion_block {
	/* Of this module. */
	void (*kill)(unsigned long domain);
	void (*undo)(unsigned long domain);
	/* The module has made a disk, or has it no more. */
	void (*made)(unsigned long domain, struct gendisk *disk);
	/* Not 0: it is added, and the kernel makes requests for it. */
	int (*gone)(struct gendisk *disk);
	/* Before it is added. 0: it is added already; -1: what it says of its functions is not the module's own data. */
	int (*adds)(struct gendisk *disk);
	/* The kernel could not add it. */
	void (*not_added)(struct gendisk *disk);
	int (*is_queue)(unsigned long domain, struct request_queue *queue);
	void (*fail)(struct bio *bio);
	/* Where the memory of a page is. */
	unsigned long (*memory)(struct page *page);
	/* What the module may read and write of a disk, before it is added and then. How many pieces, of at most 8. */
	int (*fields)(struct gendisk *disk, int is_added, struct mullion_piece *pieces);
	/* Of the library: the module in whose data so many bytes lie, or 0. */
	unsigned long (*owner)(unsigned long address, unsigned long bytes);
	void (*lend)(unsigned long domain, unsigned long what, const struct mullion_piece *pieces, unsigned long count);
	/* What the module has left in this task: how much, and an end to it if there is more. */
	unsigned long (*marks)(unsigned long domain);
	void (*leaves)(unsigned long domain, unsigned long before);
	/* Whether the kernel may call it with these arguments. Whether it is the kernel's structure of the module. */
	int (*may_call)(unsigned long domain, unsigned long function, const struct mullion_argument *arguments);
	int (*is_module)(unsigned long domain, unsigned long address);
};

extern struct mullion_block mullion_block;

/* A disk of a walled module; `ops` is what the kernel calls. */
struct watched {
	struct list_head all;
	struct gendisk *disk;
	unsigned long domain;
	/* The module's, as it was when the disk was added. */
	void (*submit)(struct bio *bio);
	struct block_device_operations ops;
	bool is_added;
};

static LIST_HEAD(disks);

static struct watched *find(struct gendisk *disk)
{
	struct watched *watched;

	list_for_each_entry(watched, &disks, all)
		if (watched->disk == disk)
			return watched;
	return NULL;
}

static void made(unsigned long domain, struct gendisk *disk)
{
	struct watched *watched = kzalloc(sizeof(*watched), GFP_KERNEL | __GFP_NOFAIL);

	watched->disk = disk;
	watched->domain = domain;
	list_add(&watched->all, &disks);
}

static int gone(struct gendisk *disk)
{
	struct watched *watched = find(disk);

	if (disk_live(disk))
		return -EBUSY;
	/* Whoever has the disk open may still look at `ops`: its few bytes stay. */
	if (watched)
		list_del(&watched->all);
	return 0;
}

static int is_queue(unsigned long domain, struct request_queue *queue)
{
	struct watched *watched;

	list_for_each_entry(watched, &disks, all)
		if (watched->domain == domain && watched->disk->queue == queue)
			return 1;
	return 0;
}

/*
 * The kernel follows what lies between: a module reads that, and no more. What it says of its disk before that is added counts, and
 * is copied, or is a number.
 */
static int fields(struct gendisk *disk, int is_added, struct mullion_piece *pieces)
{
	static const unsigned long marks[] = {
		offsetof(struct gendisk, major), offsetof(struct gendisk, part_tbl),
		offsetof(struct gendisk, fops), offsetof(struct gendisk, queue),
		offsetof(struct gendisk, private_data), offsetof(struct gendisk, bio_split),
		offsetof(struct gendisk, flags), offsetofend(struct gendisk, flags),
		sizeof(struct gendisk),
	};
	int at;

	BUILD_BUG_ON(offsetof(struct gendisk, major));
	if (is_added) {
		pieces[0] = (struct mullion_piece) { (unsigned long)disk, sizeof(*disk), 0 };
		return 1;
	}
	for (at = 0; at + 1 < ARRAY_SIZE(marks); at++)
		pieces[at] = (struct mullion_piece) {
			(unsigned long)disk + marks[at], marks[at + 1] - marks[at], !(at & 1)
		};
	return at;
}

/* The driver is done with a request, in the place of code in line. The library has taken it away. */
void mullion_bio_ends(struct bio *bio, unsigned int status)
{
	bio->bi_status = (__force blk_status_t)status;
	bio_endio(bio);
}
EXPORT_SYMBOL_GPL(mullion_bio_ends);

static void fail(struct bio *bio)
{
	bio_io_error(bio);
}

static unsigned long memory(struct page *page)
{
	return (unsigned long)page_address(page);
}

static void submit(struct bio *bio)
{
	struct watched *watched = container_of(bio->bi_bdev->bd_disk->fops, struct watched, ops);
	unsigned long vectors = bio->bi_iter.bi_idx, count = 0, domain = watched->domain, before;
	struct mullion_piece *pieces;
	struct bvec_iter iter;
	struct bio_vec vec;

	bio_for_each_segment(vec, bio, iter)
		count++;
	pieces = kmalloc_array(count + 2, sizeof(*pieces), GFP_NOIO);
	if (!pieces) {
		bio_io_error(bio);
		return;
	}
	count = 0;
	pieces[count++] = (struct mullion_piece) { (unsigned long)bio, sizeof(*bio), 0 };
	if (bio_has_data(bio)) {
		bio_for_each_bvec(vec, bio, iter)
			vectors++;
		pieces[count++] = (struct mullion_piece) {
			(unsigned long)bio->bi_io_vec, vectors * sizeof(struct bio_vec), 0
		};
		bio_for_each_segment(vec, bio, iter)
			pieces[count++] = (struct mullion_piece) {
				(unsigned long)page_address(vec.bv_page) + vec.bv_offset, vec.bv_len,
				!op_is_write(bio_op(bio))
			};
	}
	mullion_block.lend(domain, (unsigned long)bio, pieces, count);
	kfree(pieces);
	before = mullion_block.marks(domain);
	watched->submit(bio);
	mullion_block.leaves(domain, before);
}

static void dead_submit(struct bio *bio)
{
	bio_io_error(bio);
}

/* Whether the kernel may call what a copy of the module's table says: its words are its owner and functions. */
static bool is_right(unsigned long domain, const struct block_device_operations *ops)
{
	/* The library lends requests, and nothing else. */
	static const struct mullion_argument nothing[6];
	const unsigned long *word = (const unsigned long *)ops;
	unsigned int at;

	for (at = 0; at < sizeof(*ops) / sizeof(*word); at++) {
		if (!word[at])
			continue;
		if (at == offsetof(struct block_device_operations, owner) / sizeof(*word)) {
			if (!mullion_block.is_module(domain, word[at]))
				return false;
		} else if (!mullion_block.may_call(domain, word[at], nothing)) {
			return false;
		}
	}
	return true;
}

static int adds(struct gendisk *disk)
{
	struct watched *watched = find(disk);

	/* The kernel does not look: a second time would harm its list of devices, and put our functions in their own place. */
	if (!watched || watched->is_added)
		return 0;
	if (disk->fops == &watched->ops) {
		watched->is_added = true;
		return 1;
	}
	if (mullion_block.owner((unsigned long)disk->fops, sizeof(*disk->fops)) != watched->domain)
		return -1;
	watched->ops = *disk->fops;
	if (!is_right(watched->domain, &watched->ops))
		return -1;
	watched->is_added = true;
	watched->submit = watched->ops.submit_bio;
	if (watched->submit)
		watched->ops.submit_bio = submit;
	/* The kernel makes requests in the place of these. */
	watched->ops.rw_page = NULL;
	disk->fops = &watched->ops;
	return 1;
}

static void not_added(struct gendisk *disk)
{
	struct watched *watched = find(disk);

	if (watched)
		watched->is_added = false;
}

/* At once, in the task whose call was ended. */
static void kill(unsigned long domain)
{
	struct watched *watched;

	list_for_each_entry(watched, &disks, all) {
		if (watched->domain != domain)
			continue;
		watched->ops = (struct block_device_operations) {
			.owner = watched->ops.owner,
			.submit_bio = dead_submit,
		};
	}
}

/* Later: the disks go. The library puts what the module has made. */
static void undo(unsigned long domain)
{
	struct watched *watched;

again:
	list_for_each_entry(watched, &disks, all) {
		if (watched->domain != domain || !watched->is_added)
			continue;
		watched->is_added = false;
		del_gendisk(watched->disk);
		goto again;
	}
}

struct mullion_block mullion_block = {
	.kill = kill,
	.undo = undo,
	.made = made,
	.gone = gone,
	.adds = adds,
	.not_added = not_added,
	.is_queue = is_queue,
	.fail = fail,
	.memory = memory,
	.fields = fields,
};
EXPORT_SYMBOL_GPL(mullion_block);

/* At most: a block of the file systems that ask, and what lies before and behind it. */
#define MOST (2ul << 20)

/* Between a device and memory of ours, which nobody else knows. */
static int transfer(struct block_device *device, sector_t sector, void *memory, unsigned long bytes, blk_opf_t op)
{
	int error = 0;

	while (bytes && !error) {
		unsigned long count = min_t(unsigned long, DIV_ROUND_UP(bytes, PAGE_SIZE) + 1, BIO_MAX_VECS);
		struct bio *bio = bio_alloc(device, count, op, GFP_NOIO);

		bio->bi_iter.bi_sector = sector;
		while (bytes) {
			unsigned int at = offset_in_page(memory), some = min_t(unsigned long, bytes, PAGE_SIZE - at);
			struct page *page = is_vmalloc_addr(memory) ? vmalloc_to_page(memory) : virt_to_page(memory);

			if (bio_add_page(bio, page, some, at) != some)
				break;
			memory += some;
			bytes -= some;
			sector += some >> SECTOR_SHIFT;
		}
		error = bio->bi_iter.bi_size ? submit_bio_wait(bio) : -EIO;
		bio_put(bio);
	}
	return error;
}

static bool is_whole(unsigned long bytes)
{
	return bytes && bytes <= MOST && !(bytes & (SECTOR_SIZE - 1));
}

/* What a walled module reads of its device (include/linux/bio.h): the memory is its own from then on. */
void *mullion_read_sectors(struct block_device *device, sector_t sector, unsigned long bytes);
void *mullion_read_sectors(struct block_device *device, sector_t sector, unsigned long bytes)
{
	void *memory = is_whole(bytes) ? kvmalloc(bytes, GFP_KERNEL) : NULL;

	if (memory && transfer(device, sector, memory, bytes, REQ_OP_READ)) {
		kvfree(memory);
		memory = NULL;
	}
	return memory;
}
EXPORT_SYMBOL_GPL(mullion_read_sectors);

/* The module may free its memory while the disk works, so this is a copy. Making it does not wait. */
int mullion_write_sectors(struct block_device *device, sector_t sector, const void *from, unsigned long bytes);
int mullion_write_sectors(struct block_device *device, sector_t sector, const void *from, unsigned long bytes)
{
	void *copy = is_whole(bytes) ? kmemdup(from, bytes, GFP_NOWAIT) : NULL;
	int error = copy ? transfer(device, sector, copy, bytes, REQ_OP_WRITE | REQ_SYNC) : -EIO;

	kfree(copy);
	return error;
}
EXPORT_SYMBOL_GPL(mullion_write_sectors);

static int __init begin(void)
{
	/* The library lets a module write it in its pages. */
	BUILD_BUG_ON(offsetof(struct page, index) != 32);
	return 0;
}

module_init(begin);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Disks of walled modules");
