/* libwebp behind a wall: a picture is encoded and decoded, and a damaged file is refused.
 *     cc host.c $(pkg-config --cflags --libs mullion) -o host && ./host libwebp.mx [PICTURE] */
#include "walled_libwebp_host.h"
#include <stdio.h>
#include <stdlib.h>

#define SIDE 64

static int failed(void)
{
	fprintf(stderr, "%s\n", mullion_error_message());
	return 1;
}

/* Decodes a file of the user's. */
static int show(const struct walled_libwebp_extension *library, const char *name)
{
	static uint8_t file[1 << 24];
	FILE *stream = fopen(name, "rb");
	uint64_t length = stream ? fread(file, 1, sizeof file, stream) : 0, size;
	struct measures measures;
	uint8_t *pixels;
	int32_t error;
	if (!stream) {
		perror(name);
		return 1;
	}
	fclose(stream);
	if (walled_libwebp_measure(library, &error, file, length, &measures))
		return failed();
	/* A domain may answer anything: look at what it says before memory is had for it. */
	if (error || measures.width > 16384 || measures.height > 16384) {
		printf("%s: no WebP file\n", name);
		return 1;
	}
	size = (uint64_t)measures.width * measures.height * 4;
	pixels = malloc(size ? size : 1);
	if (!pixels || walled_libwebp_decode(library, &error, file, length, pixels, size))
		return failed();
	printf("%s: %u times %u pixels%s\n", name, measures.width, measures.height, error ? ", damaged" : "");
	free(pixels);
	return error != 0;
}

int main(int count, char **words)
{
	static uint8_t pixels[SIDE * SIDE * 4], again[sizeof pixels], file[200000];
	struct walled_libwebp_extension library;
	struct measures measures;
	mullion_image image;
	mullion_domain domain;
	int64_t length;
	int32_t error;
	int furthest = 0;

	for (int i = 0; i < SIDE * SIDE; i++) {
		pixels[4 * i] = 4 * (i % SIDE);
		pixels[4 * i + 1] = 4 * (i / SIDE);
		pixels[4 * i + 2] = 128;
		pixels[4 * i + 3] = 255;
	}
	if (mullion_image_open(count > 1 ? words[1] : "libwebp.mx", &image)
	    || mullion_domain_load(image, NULL, MULLION_NO_IMPORTS, NULL, &domain)
	    || walled_libwebp_find(domain, &library))
		return failed();
	if (count > 2)
		return show(&library, words[2]);
	if (walled_libwebp_encode(&library, &length, pixels, sizeof pixels, SIDE, SIDE, 90, file, sizeof file))
		return failed();
	if (length <= 0 || length > (int64_t)sizeof file)
		return 1;
	if (walled_libwebp_measure(&library, &error, file, length, &measures))
		return failed();
	printf("a file of %u times %u pixels\n", measures.width, measures.height);
	if (walled_libwebp_decode(&library, &error, file, length, again, sizeof again))
		return failed();
	for (size_t i = 0; i < sizeof pixels; i++)
		if (abs(pixels[i] - again[i]) > furthest)
			furthest = abs(pixels[i] - again[i]);
	printf("decoded, %s\n", !furthest ? "the same" : furthest <= 24 ? "alike" : "different");
	if (walled_libwebp_decode(&library, &error, file, length / 2, again, sizeof again))
		return failed();
	printf("half of it: %s\n", error ? "damaged" : "decoded");
	return 0;
}
