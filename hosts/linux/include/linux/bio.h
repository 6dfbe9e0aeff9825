/* Requests to disks that a module makes itself, for walled modules; found before the kernel's own header. The kernel would follow pointers
 * in such a request, and its disk would store to pages that may belong to somebody else by then. Here a request is memory of the module's
 * alone. What is read comes in fresh memory, which the module copies to where it wants it. */
/* How a request went is said by a call: the word that has it counts the request's parts, too. */
#ifndef MULLION_LINUX_BIO_H
#define MULLION_LINUX_BIO_H

#include_next <linux/bio.h>
#include <linux/mm.h>
#include <linux/slab.h>

/* So many bytes of a device, in memory that is the caller's to free. None: they could not be read. */
extern void *mullion_read_sectors(struct block_device *device, sector_t sector, unsigned long bytes);
extern int mullion_write_sectors(struct block_device *device, sector_t sector, const void *from, unsigned long bytes);

static inline struct bio *mullion_bio(unsigned short count, gfp_t how)
{
	struct bio *bio = kmalloc(sizeof(*bio) + count * sizeof(struct bio_vec), how);

	return bio;
}

static inline void mullion_bio_init(struct bio *bio, struct block_device *device, struct bio_vec *list,
				    unsigned short count, blk_opf_t op)
{
	memset(bio, 0, sizeof(*bio));
	bio->bi_bdev = device;
	bio->bi_opf = op;
	bio->bi_io_vec = list;
	bio->bi_max_vecs = count;
}

static inline struct bio *mullion_bio_alloc(struct block_device *device, unsigned short count, blk_opf_t op, gfp_t how)
{
	struct bio *bio = mullion_bio(count, how);

	if (bio)
		mullion_bio_init(bio, device, bio->bi_inline_vecs, count, op);
	return bio;
}

static inline int mullion_bio_add_page(struct bio *bio, struct page *page, unsigned int bytes, unsigned int at)
{
	if (bio->bi_vcnt >= bio->bi_max_vecs)
		return 0;
	bio->bi_io_vec[bio->bi_vcnt++] = (struct bio_vec) { page, bytes, at };
	bio->bi_iter.bi_size += bytes;
	return bytes;
}

static inline void mullion_bio_free_pages(struct bio *bio)
{
	for (unsigned int at = 0; at < bio->bi_vcnt; at++)
		__free_page(bio->bi_io_vec[at].bv_page);
}

/* Between the request's pages and one piece of memory. */
static inline void mullion_bio_copy(struct bio *bio, void *memory, bool reads)
{
	for (unsigned int at = 0; at < bio->bi_vcnt; at++) {
		struct bio_vec *one = &bio->bi_io_vec[at];
		void *own = page_address(one->bv_page) + one->bv_offset;

		memcpy(reads ? own : memory, reads ? memory : own, one->bv_len);
		memory += one->bv_len;
	}
}

static inline int mullion_bio_wait(struct bio *bio)
{
	unsigned long bytes = bio->bi_iter.bi_size;
	bool writes = bio_op(bio) == REQ_OP_WRITE;
	void *memory;
	int error = 0;

	if (!writes && bio_op(bio) != REQ_OP_READ)
		return -EOPNOTSUPP;
	memory = writes ? kmalloc(bytes, GFP_NOIO) : mullion_read_sectors(bio->bi_bdev, bio->bi_iter.bi_sector, bytes);
	if (!memory)
		return -EIO;
	mullion_bio_copy(bio, memory, !writes);
	if (writes)
		error = mullion_write_sectors(bio->bi_bdev, bio->bi_iter.bi_sector, memory, bytes);
	kvfree(memory);
	return error;
}

#undef bio_kmalloc
#define bio_kmalloc mullion_bio
#define bio_init mullion_bio_init
#define bio_uninit(bio) ((void)(bio))
#define bio_alloc mullion_bio_alloc
#define bio_put kfree
#define bio_add_page mullion_bio_add_page
#define bio_free_pages mullion_bio_free_pages
#define submit_bio_wait mullion_bio_wait

extern void mullion_bio_ends(struct bio *bio, unsigned int status);

#define bio_io_error(bio) mullion_bio_ends(bio, BLK_STS_IOERR)
#define bio_wouldblock_error(bio) mullion_bio_ends(bio, BLK_STS_AGAIN)

#endif
