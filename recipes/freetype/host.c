/* FreeType behind a wall: a letter of a font, drawn by characters.
 *     cc host.c $(pkg-config --cflags --libs mullion) -o host && ./host freetype.mx [FONT] */
#include "walled_freetype_host.h"
#include <stdio.h>
#include <string.h>

/* A font with one letter, if nobody names a better one. */
static const char small[] =
	"STARTFONT 2.1\nFONT -x-small-medium-r-normal--8-80-75-75-c-80-iso10646-1\nSIZE 8 75 75\nFONTBOUNDINGBOX 8 8 0 0\n"
	"STARTPROPERTIES 5\nFAMILY_NAME \"Small\"\nCHARSET_REGISTRY \"ISO10646\"\nCHARSET_ENCODING \"1\"\nFONT_ASCENT 8\n"
	"FONT_DESCENT 0\nENDPROPERTIES\nCHARS 1\nSTARTCHAR M\nENCODING 77\nSWIDTH 1000 0\nDWIDTH 8 0\nBBX 8 8 0 0\nBITMAP\n"
	"82\nC6\nAA\n92\n82\n82\n82\n00\nENDCHAR\nENDFONT\n";

int main(int count, char **words)
{
	static uint8_t file[1 << 24], grey[100 * 100];
	uint64_t length = sizeof small - 1, named;
	struct walled_freetype_extension freetype;
	uint32_t high = 8;
	mullion_image image;
	mullion_domain domain;
	struct glyph glyph;
	char name[100] = "";
	int32_t error;

	memcpy(file, small, length);
	if (count > 2) {
		FILE *stream = fopen(words[2], "rb");
		if (!stream) {
			perror(words[2]);
			return 1;
		}
		length = fread(file, 1, sizeof file, stream);
		fclose(stream);
		high = 24;
	}
	if (mullion_image_open(count > 1 ? words[1] : "freetype.mx", &image)
	    || mullion_domain_load(image, NULL, MULLION_NO_IMPORTS, NULL, &domain)
	    || walled_freetype_find(domain, &freetype)
	    || walled_freetype_take(&freetype, &error, file, length)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	if (error) {
		printf("no font: error %d\n", (int)error);
		return 1;
	}
	if (walled_freetype_name(&freetype, &named, name, sizeof name)
	    || walled_freetype_render(&freetype, &error, 'M', high, &glyph, grey, sizeof grey)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	name[sizeof name - 1] = 0;
	/* Numbers of the domain's: they are lengths only after they were looked at. */
	if (error || glyph.width > 100 || glyph.height > 100) {
		printf("%s: error %d\n", name, (int)error);
		return 1;
	}
	printf("%s, %u times %u pixels%s\n", name, glyph.width, glyph.height, glyph.known ? "" : ", which has no M");
	for (uint32_t row = 0; row < glyph.height; row++) {
		for (uint32_t column = 0; column < glyph.width; column++)
			putchar(".:+oO"[grey[row * glyph.width + column] / 52]);
		putchar('\n');
	}
	return 0;
}
