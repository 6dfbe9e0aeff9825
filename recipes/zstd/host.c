/* zstd behind a wall: a text is packed, unpacked, and damaged.
 *     cc host.c $(pkg-config --cflags --libs mullion) -o host && ./host zstd.mx */
#include "walled_zstd_host.h"
#include <stdio.h>
#include <string.h>

static int failed(void)
{
	fprintf(stderr, "%s\n", mullion_error_message());
	return 1;
}

int main(int count, char **words)
{
	static uint8_t text[100000], packed[100100], unpacked[sizeof text];
	struct walled_zstd_extension zstd;
	mullion_image image;
	mullion_domain domain;
	int64_t length, restored, refused;
	int64_t said;

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = "abcdefg "[i % 8 ^ i / 1000 % 8];
	if (mullion_image_open(count > 1 ? words[1] : "zstd.mx", &image)
	    || mullion_domain_load(image, NULL, MULLION_NO_IMPORTS, NULL, &domain)
	    || walled_zstd_find(domain, &zstd)
	    || walled_zstd_pack(&zstd, &length, text, sizeof text, 3, packed, sizeof packed))
		return failed();
	/* A domain may answer anything: look at what it says before it is a length. */
	if (length < 0 || length > (int64_t)sizeof packed)
		return 1;
	if (walled_zstd_unpack(&zstd, &restored, packed, length, unpacked, sizeof unpacked)
	    || walled_zstd_unpacked_size(&zstd, &said, packed, length))
		return failed();
	printf("%d bytes became %s, and again %d, %s\n", (int)sizeof text, length < 2000 ? "less than 2000" : "many",
	       (int)restored, memcmp(text, unpacked, sizeof text) ? "others" : "the same");
	printf("it said that it would be %d\n", (int)said);
	packed[0] ^= 0x55;
	if (walled_zstd_unpack(&zstd, &refused, packed, length, unpacked, sizeof unpacked))
		return failed();
	printf("damaged: %d\n", (int)refused);
	return 0;
}
