/* The smallest host in C, for the extension of hello/.
 *
 *     mullion cc --mullion-kind=extension examples/hello/extension.c -o hello.mx
 *     cc examples/hello-c/host.c -o hello $(pkg-config --cflags --libs mullion)
 *     ./hello hello.mx
 */
#include <mullion.h>
#include <stdio.h>

int main(int count, char **words)
{
	mullion_image image;
	mullion_domain domain;
	mullion_function add;
	mullion_value numbers[] = { mullion_integer(2), mullion_integer(3) };
	mullion_value sum = MULLION_INTEGER_RESULT;

	if (mullion_image_open(count > 1 ? words[1] : "hello.mx", &image)
	    || mullion_domain_load(image, NULL, MULLION_NO_IMPORTS, NULL, &domain)
	    || mullion_function_find(domain, "add", &add)
	    || mullion_call(add, numbers, 2, &sum)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	printf("2 + 3 = %d\n", (int)sum.as.integer);
	return 0;
}
