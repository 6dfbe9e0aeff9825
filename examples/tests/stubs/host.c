/* The host of the test in C. */
#include "all_host.h"
#include <stdio.h>

static mullion_status weigh_here(void *user, int64_t *result, int32_t a, int32_t b, int32_t c, int32_t d,
                                 int32_t e, int32_t f, char g, int64_t h)
{
	(void)user;
	*result = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
	return MULLION_OK;
}

static mullion_status grow_here(void *user, struct size *size, const struct size *by, struct size *old)
{
	(void)user;
	*old = *size;
	size->width += by->width;
	size->height += by->height;
	return MULLION_OK;
}

int main(int count, char **words)
{
	const struct all_host functions = { NULL, weigh_here, grow_here };
	struct size size = { 3, 4 }, by = { 10, 20 }, old = { 0, 0 };
	struct all_extension extension;
	mullion_image image;
	mullion_imports imports;
	mullion_domain domain;
	int64_t sum = 0;
	int32_t gained = 0;

	if (count != 2
	    || mullion_image_open(words[1], &image)
	    || mullion_imports_new(&imports)
	    || all_offer(imports, &functions)
	    || mullion_domain_load(image, NULL, imports, NULL, &domain)
	    || all_find(domain, &extension)
	    || all_pass_on(&extension, &sum, 1, 2, 3, 4, 5, 6, -7, -3000000000)
	    || all_grow(&extension, &size, &by, &old)
	    || all_gain(&extension, &gained, 5, 6)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	printf("%lld, %ux%u was %ux%u, %d\n", (long long)sum, size.width, size.height, old.width, old.height, gained);
	return 0;
}
