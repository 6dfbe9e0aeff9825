#include "walled_libpng.h"
#include <png.h>
#include <string.h>

#define LARGEST 16384

/* Reads the head of a file. */
static int begin(png_image *image, const uint8_t *file, uint64_t length)
{
	memset(image, 0, sizeof *image);
	image->version = PNG_IMAGE_VERSION;
	if (!png_image_begin_read_from_memory(image, file, length))
		return 0;
	if (image->width <= LARGEST && image->height <= LARGEST)
		return 1;
	png_image_free(image);
	return 0;
}

int32_t measure(const uint8_t *file, uint64_t length, struct measures *found)
{
	png_image image;
	if (!begin(&image, file, length))
		return -1;
	found->width = image.width;
	found->height = image.height;
	png_image_free(&image);
	return 0;
}

int32_t decode(const uint8_t *file, uint64_t length, uint8_t *pixels, uint64_t size)
{
	png_image image;
	if (!begin(&image, file, length))
		return -1;
	image.format = PNG_FORMAT_RGBA;
	if (size != (uint64_t)image.width * image.height * 4) {
		png_image_free(&image);
		return -1;
	}
	return png_image_finish_read(&image, NULL, pixels, 0, NULL) ? 0 : -1;
}

int64_t encode(const uint8_t *pixels, uint64_t size, uint32_t width, uint32_t height, uint8_t *room, uint64_t bytes)
{
	png_image image;
	png_alloc_size_t written = bytes;
	if (width > LARGEST || height > LARGEST || size != (uint64_t)width * height * 4)
		return -1;
	memset(&image, 0, sizeof image);
	image.version = PNG_IMAGE_VERSION;
	image.width = width;
	image.height = height;
	image.format = PNG_FORMAT_RGBA;
	return png_image_write_to_memory(&image, room, &written, 0, pixels, 0, NULL) ? (int64_t)written : -1;
}
