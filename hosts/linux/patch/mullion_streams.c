// SPDX-License-Identifier: GPL-2.0
/*
 * Calls compressors that work in steps, as nothing else in these tests does: an ordinary module, and no part of the patch. What
 * was folded is unfolded again, through buffers of the kernel's that end at other places each time.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/zlib.h>
#include <linux/zstd.h>

/* They are there if their modules are. */
#define MAYBE(function) extern typeof(function) function __attribute__((weak))
MAYBE(zlib_deflate);
MAYBE(zlib_deflateEnd);
MAYBE(zlib_deflateInit2);
MAYBE(zlib_deflateReset);
MAYBE(zlib_deflate_workspacesize);
MAYBE(zlib_inflate);
MAYBE(zlib_inflateEnd);
MAYBE(zlib_inflateInit2);
MAYBE(zlib_inflateReset);
MAYBE(zlib_inflate_blob);
MAYBE(zlib_inflate_workspacesize);
MAYBE(zstd_compress_bound);
MAYBE(zstd_compress_stream);
MAYBE(zstd_cstream_workspace_bound);
MAYBE(zstd_decompress_stream);
MAYBE(zstd_dstream_workspace_bound);
MAYBE(zstd_end_stream);
MAYBE(zstd_flush_stream);
MAYBE(zstd_get_error_name);
MAYBE(zstd_get_frame_header);
MAYBE(zstd_find_frame_compressed_size);
MAYBE(zstd_get_params);
MAYBE(zstd_init_cstream);
MAYBE(zstd_init_dstream);
MAYBE(zstd_is_error);
MAYBE(zstd_max_clevel);
MAYBE(zstd_reset_cstream);
MAYBE(zstd_reset_dstream);
extern unsigned int ZSTD_isError(size_t code) __attribute__((weak));
extern const char *ZSTD_getErrorName(size_t code) __attribute__((weak));
extern size_t FSE_readNCount(short *counters, unsigned int *most, unsigned int *logarithm, const void *bytes,
			     size_t count) __attribute__((weak));

#define TEXT 40000

static u8 *text, *folded, *again;

/* Words that fold to about half. */
static void fill(u32 seed)
{
	static const char words[] = "of the wall that is in a pane and no other word to be had ";
	unsigned int at;

	for (at = 0; at < TEXT; at += 8) {
		seed = seed * 1664525u + 1013904223u;
		memcpy(text + at, words + (seed >> 16) % (sizeof(words) - 9), 8);
	}
	memset(again, 0, TEXT);
}

/* How long the folded text is, in steps of so many bytes; 0: something failed. */
static unsigned int deflate(z_stream *stream, unsigned int step)
{
	int done = Z_OK;

	stream->next_in = text;
	stream->next_out = folded;
	stream->avail_in = stream->avail_out = 0;
	while (done == Z_OK) {
		unsigned int in = stream->next_in - text, out = stream->next_out - folded;

		if (!stream->avail_in)
			stream->avail_in = min(step, TEXT - in);
		if (!stream->avail_out)
			stream->avail_out = min(step / 3 + 1, 2 * TEXT - out);
		done = zlib_deflate(stream, in + stream->avail_in == TEXT ? Z_FINISH : Z_NO_FLUSH);
	}
	return done == Z_STREAM_END ? stream->total_out : 0;
}

static unsigned int inflate(z_stream *stream, unsigned int bytes, unsigned int step)
{
	int done = Z_OK;

	stream->next_in = folded;
	stream->next_out = again;
	stream->avail_in = stream->avail_out = 0;
	while (done == Z_OK) {
		unsigned int in = stream->next_in - folded, out = stream->next_out - again;

		if (!stream->avail_in)
			stream->avail_in = min(step, bytes - in);
		if (!stream->avail_out)
			stream->avail_out = min(step * 2, TEXT - out);
		done = zlib_inflate(stream, Z_SYNC_FLUSH);
	}
	return done == Z_STREAM_END ? stream->total_out : 0;
}

static void zlib(unsigned int rounds)
{
	z_stream in = { .workspace = vmalloc(zlib_deflate_workspacesize(-MAX_WBITS, DEF_MEM_LEVEL)) };
	z_stream out = { .workspace = kmalloc(zlib_inflate_workspacesize(), GFP_KERNEL) };
	unsigned int right = 0, blobs = 0, small = 0, round, bytes;

	if (!in.workspace || !out.workspace || zlib_inflateInit2(&out, -MAX_WBITS) != Z_OK ||
	    zlib_deflateInit2(&in, 6, Z_DEFLATED, -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		goto end;
	for (round = 0; round < rounds; round++) {
		fill(round);
		bytes = deflate(&in, 300 + 977 * round);
		small += bytes && bytes < TEXT * 3 / 4;
		right += inflate(&out, bytes, 100 + 577 * round) == TEXT && !memcmp(text, again, TEXT);
		memset(again, 0, TEXT);
		blobs += zlib_inflate_blob(again, TEXT, folded, bytes) == TEXT && !memcmp(text, again, TEXT);
		zlib_deflateReset(&in);
		zlib_inflateReset(&out);
	}
	zlib_deflateEnd(&in);
	zlib_inflateEnd(&out);
end:
	vfree(in.workspace);
	kfree(out.workspace);
	pr_err("mullion: zlib: %u of %u right, %u at once, %u smaller\n", right, rounds, blobs, small);
}

static size_t pack(zstd_cstream *stream, unsigned int step)
{
	zstd_in_buffer in = { .src = text };
	zstd_out_buffer out = { .dst = folded };
	size_t left = 1;

	while (in.pos < TEXT || left) {
		in.size = min_t(size_t, in.pos + step, TEXT);
		out.size = min_t(size_t, out.pos + step / 3 + 1, 2 * TEXT);
		left = in.pos < TEXT ? zstd_compress_stream(stream, &out, &in) : zstd_end_stream(stream, &out);
		if (zstd_is_error(left) || out.pos == 2 * TEXT)
			return 0;
		if (in.pos == TEXT / 2)
			zstd_flush_stream(stream, &out);
	}
	return out.pos;
}

static bool unpack(zstd_dstream *stream, size_t bytes, unsigned int step)
{
	zstd_in_buffer in = { .src = folded };
	zstd_out_buffer out = { .dst = again };
	size_t left = 1;

	while (left && in.pos < bytes) {
		in.size = min_t(size_t, in.pos + step, bytes);
		out.size = min_t(size_t, out.pos + step * 2, TEXT);
		left = zstd_decompress_stream(stream, &out, &in);
		if (zstd_is_error(left))
			return false;
	}
	return out.pos == TEXT && !memcmp(text, again, TEXT);
}

static void zstd(unsigned int rounds)
{
	zstd_parameters how = zstd_get_params(3, TEXT);
	size_t one = zstd_cstream_workspace_bound(&how.cParams), other = zstd_dstream_workspace_bound(1 << 17);
	void *in = vmalloc(one), *out = vmalloc(other);
	zstd_cstream *packs = in ? zstd_init_cstream(&how, 0, in, one) : NULL;
	zstd_dstream *unpacks = out ? zstd_init_dstream(1 << 17, out, other) : NULL;
	unsigned int right = 0, small = 0, frames = 0, round;
	zstd_frame_header header;

	for (round = 0; packs && unpacks && round < rounds; round++) {
		size_t bytes;

		fill(round);
		zstd_reset_cstream(packs, TEXT);
		zstd_reset_dstream(unpacks);
		bytes = pack(packs, 300 + 977 * round);
		small += bytes && bytes < TEXT * 3 / 4 && bytes <= zstd_compress_bound(TEXT);
		right += unpack(unpacks, bytes, 100 + 577 * round);
		frames += !zstd_get_frame_header(&header, folded, bytes) && header.frameContentSize == TEXT &&
			  zstd_find_frame_compressed_size(folded, bytes) == bytes;
	}
	vfree(in);
	vfree(out);
	pr_err("mullion: zstd: %u of %u right, %u frames, %u smaller, level %d, %s\n", right, rounds, frames, small,
	       zstd_max_clevel(), zstd_get_error_name(-(size_t)72));
}

/* A table of codes as one end writes it, and one that is none. */
static void codes(void)
{
	static const u8 table[] = { 0x10, 0x60, 0x8c, 0x31, 0x06, 0, 0, 0, 0, 0, 0, 0 }, none[8] = { 15 };
	unsigned int most = 31, logarithm = 0;
	short counters[32] = { 0 };
	size_t read = FSE_readNCount(counters, &most, &logarithm, table, sizeof(table)), fails;
	unsigned int other = 31;

	fails = FSE_readNCount(counters, &other, &logarithm, none, sizeof(none));
	pr_err("mullion: codes: %zd, %u symbols, %s\n", (ssize_t)read, most,
	       ZSTD_isError(fails) ? ZSTD_getErrorName(fails) : "read");
}

static int __init begin(void)
{
	text = vmalloc(TEXT + 64);
	folded = vmalloc(2 * TEXT);
	again = vmalloc(TEXT);
	if (text && folded && again) {
		if (zlib_deflate && zlib_inflate)
			zlib(12);
		if (zstd_compress_stream && zstd_decompress_stream)
			zstd(12);
		if (ZSTD_isError && ZSTD_getErrorName && FSE_readNCount)
			codes();
	}
	vfree(text);
	vfree(folded);
	vfree(again);
	return 0;
}

static void __exit end(void)
{
}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Compressors in steps");
