#include <stdio.h>

unsigned long crowded(unsigned long first, unsigned char *bytes);
unsigned long second(long at);
unsigned long absorbed(const void *bytes);

int main(void)
{
	unsigned char bytes[33] = "0123456789abcdefghijklmnopqrstu";

	for (unsigned long first = 1; first < 200; first += 13)
		printf("%lx\n", crowded(first, bytes));
	for (int at = 0; at < 32; at++)
		printf("%02x", bytes[at]);
	for (long at = -1; at < 2; at++)
		printf(" %lu", second(at));
	printf(" %lx\n", absorbed(bytes));
	return 0;
}
