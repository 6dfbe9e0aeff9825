#include "walled_zstd.h"
#include <zstd.h>
#include <zstd_errors.h>

static int64_t result(size_t written)
{
	return ZSTD_isError(written) ? -(int64_t)ZSTD_getErrorCode(written) : (int64_t)written;
}

uint64_t pack_bound(uint64_t length)
{
	return ZSTD_compressBound(length);
}

int64_t pack(const uint8_t *data, uint64_t length, int32_t level, uint8_t *room, uint64_t size)
{
	return result(ZSTD_compress(room, size, data, length, level));
}

int64_t unpack(const uint8_t *data, uint64_t length, uint8_t *room, uint64_t size)
{
	return result(ZSTD_decompress(room, size, data, length));
}

int64_t unpacked_size(const uint8_t *data, uint64_t length)
{
	return (int64_t)ZSTD_getFrameContentSize(data, length);
}
