#include "walled_libjpeg_turbo.h"
#include <turbojpeg.h>

#define LARGEST 16384

/* Reads the head of a file. */
static int begin(tjhandle handle, const uint8_t *file, uint64_t length, struct measures *found)
{
	int width, height, sampling, colours;
	if (!handle || tjDecompressHeader3(handle, file, length, &width, &height, &sampling, &colours))
		return 0;
	if (width <= 0 || height <= 0 || width > LARGEST || height > LARGEST)
		return 0;
	found->width = width;
	found->height = height;
	return 1;
}

int32_t measure(const uint8_t *file, uint64_t length, struct measures *found)
{
	tjhandle handle = tjInitDecompress();
	int good = begin(handle, file, length, found);
	tjDestroy(handle);
	return good ? 0 : -1;
}

int32_t decode(const uint8_t *file, uint64_t length, uint8_t *pixels, uint64_t size)
{
	tjhandle handle = tjInitDecompress();
	struct measures found;
	int good = begin(handle, file, length, &found) && size == (uint64_t)found.width * found.height * 4
	           && !tjDecompress2(handle, file, length, pixels, found.width, 0, found.height, TJPF_RGBA, TJFLAG_STOPONWARNING);
	tjDestroy(handle);
	return good ? 0 : -1;
}

int64_t encode(const uint8_t *pixels, uint64_t size, uint32_t width, uint32_t height, int32_t quality, uint8_t *room, uint64_t bytes)
{
	tjhandle handle;
	unsigned long written = bytes;
	int good;
	if (!width || !height || width > LARGEST || height > LARGEST || size != (uint64_t)width * height * 4)
		return -1;
	if (quality < 1 || quality > 100)
		return -1;
	handle = tjInitCompress();
	/* With TJFLAG_NOREALLOC it asks for the worst case. */
	good = handle && bytes >= tjBufSize(width, height, TJSAMP_420)
	       && !tjCompress2(handle, pixels, width, 0, height, TJPF_RGBA, &room, &written, TJSAMP_420, quality, TJFLAG_NOREALLOC);
	tjDestroy(handle);
	return good ? (int64_t)written : -1;
}
