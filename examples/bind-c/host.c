/* The host of bind/ in C: the same interface, the stubs made for C.
 *
 *     mullion bind --c examples/bind/spell.h -o spell_host.h
 *     cc -I. -I examples/bind examples/bind-c/host.c -o spell $(pkg-config --cflags --libs mullion)
 *     ./spell spell.mx       (built as in bind/host.rs)
 */
#include "spell_host.h"
#include <stdio.h>
#include <string.h>

/* The host's side of the interface. */
static mullion_status is_known(void *user, _Bool *result, const char *letters, uint32_t length)
{
	static const char *const words[] = { "A", "wall", "keeps", "neighbours", "friends" };
	size_t i;
	(void)user;
	for (i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i]) == length && !memcmp(words[i], letters, length))
			*result = 1;
	return MULLION_OK;
}

static mullion_status print(void *user, const char *text)
{
	printf("%s: %s\n", (const char *)user, text);
	return MULLION_OK;
}

int main(int count, char **words)
{
	static char name[] = "spell";
	struct spell_host functions = { NULL, is_known, print };
	const char *text = "A wall keeps neigbours frends";
	struct spell_extension extension;
	struct mistake mistakes[10];
	uint32_t letters[26] = { 0 }, found, i;
	mullion_image image;
	mullion_imports imports;
	mullion_domain domain;

	functions.user = name;
	if (mullion_image_open(count > 1 ? words[1] : "spell.mx", &image)
	    || mullion_imports_new(&imports)
	    || spell_offer(imports, &functions)
	    || mullion_domain_load(image, NULL, imports, NULL, &domain)
	    || spell_find(domain, &extension)
	    || spell_check(&extension, &found, text, mistakes, 10)
	    || spell_count_letters(&extension, (const uint8_t *)text, strlen(text), letters)
	    || spell_count_letters(&extension, (const uint8_t *)"e", 1, letters)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	for (i = 0; i < found && i < 10; i++) {
		/* Numbers of the domain's: they are indices only after they were looked at. */
		uint32_t start = mistakes[i].start, length = mistakes[i].length;
		if (start > strlen(text) || length > strlen(text) - start)
			start = length = 0;
		printf("%.*s: %s\n", (int)length, text + start, mistakes[i].severity > 1 ? "really?" : "hm");
	}
	printf("%u times e\n", (unsigned)letters[4]);
	return 0;
}
