/* Arguments, environment-free start, exit status. */
#include <stdio.h>

int main(int count, char **arguments)
{
	printf("%d arguments\n", count);
	for (int i = 1; i < count; i++)
		printf("%d: %s\n", i, arguments[i]);
	fprintf(stderr, "to standard error\n");
	return count * 10 + 3;
}
