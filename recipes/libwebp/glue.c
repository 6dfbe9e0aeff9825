#include "walled_libwebp.h"
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>
#include <webp/encode.h>

int32_t measure(const uint8_t *file, uint64_t length, struct measures *found)
{
	int width, height;
	if (!WebPGetInfo(file, length, &width, &height))
		return -1;
	found->width = width;
	found->height = height;
	return 0;
}

int32_t decode(const uint8_t *file, uint64_t length, uint8_t *pixels, uint64_t size)
{
	int width, height;
	if (!WebPGetInfo(file, length, &width, &height) || size != (uint64_t)width * height * 4)
		return -1;
	return WebPDecodeRGBAInto(file, length, pixels, size, width * 4) ? 0 : -1;
}

int64_t encode(const uint8_t *pixels, uint64_t size, uint32_t width, uint32_t height, int32_t quality, uint8_t *room, uint64_t bytes)
{
	uint8_t *file = NULL;
	size_t written;
	if (width > WEBP_MAX_DIMENSION || height > WEBP_MAX_DIMENSION || size != (uint64_t)width * height * 4)
		return -1;
	written = WebPEncodeRGBA(pixels, width, height, width * 4, quality, &file);
	if (written && written <= bytes)
		memcpy(room, file, written);
	WebPFree(file);
	return written && written <= bytes ? (int64_t)written : -1;
}
