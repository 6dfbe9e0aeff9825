#include "walled_zlib.h"
#include <zlib.h>

uint64_t pack_bound(uint64_t length)
{
	return compressBound(length);
}

int64_t pack(const uint8_t *data, uint64_t length, int32_t level, uint8_t *room, uint64_t size)
{
	uLongf written = size;
	int error = compress2(room, &written, data, length, level);
	return error ? error : (int64_t)written;
}

int64_t unpack(const uint8_t *data, uint64_t length, uint8_t *room, uint64_t size)
{
	uLongf written = size;
	int error = uncompress(room, &written, data, length);
	return error ? error : (int64_t)written;
}

uint32_t checksum(uint32_t start, const uint8_t *data, uint64_t length)
{
	return crc32_z(start, data, length);
}
