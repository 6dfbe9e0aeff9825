/* libxml2 behind a wall: a document is asked by XPath, and put into its canonical form.
 *     cc host.c $(pkg-config --cflags --libs mullion) -o host && ./host libxml2.mx */
#include "walled_libxml2_host.h"
#include <stdio.h>
#include <string.h>

static char room[100000];

static int failed(void)
{
	fprintf(stderr, "%s\n", mullion_error_message());
	return 1;
}

static void print(const char *what, int64_t length)
{
	if (length >= 0 && length <= (int64_t)sizeof room)
		printf("%s: %.*s\n", what, (int)length, room);
	else
		printf("%s: %d\n", what, (int)length);
}

int main(int count, char **words)
{
	static const char good[] = "<shelf><book year='1972'>Mondrian</book><book   year=\"2002\">Mondrix</book></shelf>";
	static const char bad[] = "<shelf>\n<book>\n</shelf>";
	struct walled_libxml2_extension xml;
	mullion_image image;
	mullion_domain domain;
	int32_t line;
	int64_t length;
	uint64_t said;

	if (mullion_image_open(count > 1 ? words[1] : "libxml2.mx", &image)
	    || mullion_domain_load(image, NULL, MULLION_NO_IMPORTS, NULL, &domain)
	    || walled_libxml2_find(domain, &xml)
	    || walled_libxml2_take(&xml, &line, (const uint8_t *)good, sizeof good - 1))
		return failed();
	if (walled_libxml2_ask(&xml, &length, "//book[@year > 2000]", room, sizeof room))
		return failed();
	print("after 2000", length);
	if (walled_libxml2_ask(&xml, &length, "count(//book)", room, sizeof room))
		return failed();
	print("books", length);
	if (walled_libxml2_ask(&xml, &length, "//book[", room, sizeof room))
		return failed();
	print("a wrong question", length);
	if (walled_libxml2_canonical(&xml, &length, room, sizeof room))
		return failed();
	print("canonical", length);
	if (walled_libxml2_take(&xml, &line, (const uint8_t *)bad, sizeof bad - 1)
	    || walled_libxml2_explain(&xml, &said, room, sizeof room))
		return failed();
	room[sizeof room - 1] = 0;
	printf("line %d: %s\n", (int)line, room);
	return 0;
}
