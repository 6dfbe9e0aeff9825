/* expat behind a wall: a document as a stream of calls of the host, and documents that are wrong.
 *     cc host.c $(pkg-config --cflags --libs mullion) -o host && ./host expat.mx */
#include "walled_expat_host.h"
#include <stdio.h>
#include <string.h>

static int depth;

static mullion_status has_attribute(void *user, const char *name, const char *value)
{
	(void)user;
	printf("%*s@%s=%s\n", 2 * depth + 2, "", name, value);
	return MULLION_OK;
}

static mullion_status begins(void *user, const char *name)
{
	(void)user;
	printf("%*s%s\n", 2 * depth++, "", name);
	return MULLION_OK;
}

static mullion_status ends(void *user, const char *name)
{
	(void)user, (void)name;
	depth--;
	return MULLION_OK;
}

static mullion_status has_text(void *user, const char *letters, uint32_t length)
{
	(void)user;
	printf("%*s\"%.*s\"\n", 2 * depth, "", (int)length, letters);
	return MULLION_OK;
}

static int show(const struct walled_expat_extension *expat, const char *document)
{
	struct place place;
	char said[100];
	int32_t error;
	uint64_t length;
	depth = 0;
	if (walled_expat_parse(expat, &error, (const uint8_t *)document, strlen(document), &place)
	    || walled_expat_explain(expat, &length, error, said, sizeof said)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	/* What a domain writes need not end. */
	said[sizeof said - 1] = 0;
	if (error)
		printf("line %u: %s\n", (unsigned)place.line, said);
	return 0;
}

int main(int count, char **words)
{
	struct walled_expat_host functions = { 0 };
	struct walled_expat_extension expat;
	mullion_image image;
	mullion_imports imports;
	mullion_domain domain;

	functions.attribute = has_attribute;
	functions.element_begins = begins;
	functions.element_ends = ends;
	functions.text = has_text;
	if (mullion_image_open(count > 1 ? words[1] : "expat.mx", &image)
	    || mullion_imports_new(&imports)
	    || walled_expat_offer(imports, &functions)
	    || mullion_domain_load(image, NULL, imports, NULL, &domain)
	    || walled_expat_find(domain, &expat)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	return show(&expat, "<list owner='me'><item>milk</item><item/></list>") || show(&expat, "<a>\n<b>\n</a>");
}
