/* printf and scanf, and versions in order. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <wchar.h>

int main(void)
{
	printf("[%5d] [%-5d] [%05d] [%+d] [% d] [%x] [%#X] [%o] [%#o]\n", 42, 42, 42, 42, 42, 0xbeef, 0xbeef, 8, 8);
	printf("[%ld] [%lld] [%hhd] [%hd] [%zu] [%jd] [%td]\n", -1L, -2LL, 300, 70000, sizeof(int), (long)-5, (long)6);
	printf("[%s] [%10s] [%-10s] [%.2s] [%c] [%%]\n", "abc", "abc", "abc", "abc", 'x');
	printf("[%f] [%.3f] [%10.2f] [%-10.1f] [%e] [%G] [%a] [%Lf]\n", 1.5, 2.0 / 3, 99.555, 1.25, 12345.678, 1e-10, 0.1, 1.25L);
	printf("%g %g %g %g\n", 1e100, 1e-5, 123456.0, 1234567.0);
	printf("%.0f %.0f %.0f %.0f\n", 0.5, 1.5, 2.5, 3.5);
	printf("%.40g\n", 0.1);
	int n = 0, a, b;
	char word[20];
	double d;
	printf("abc%n", &n);
	printf(" %d\n", n);
	n = sscanf("12 -7 hello 2.5e3 xyz", "%d %d %19s %lf", &a, &b, word, &d);
	printf("%d: %d %d %s %g\n", n, a, b, word, d);
	char text[64];
	n = snprintf(text, 8, "%s", "0123456789");
	printf("%d %s %zu\n", n, text, strlen(text));
	const char *versions[] = {"UNKNOWN", "4.19.0", "4.2", "4.02", "4", "", "a01", "a1", "a10", "a009", "000", "00"};
	for (int i = 0; i < 12; i++)
		for (int j = 0; j < 12; j++) {
			int order = strverscmp(versions[i], versions[j]);
			putchar("<=>"[(order > 0) - (order < 0) + 1]);
		}
	putchar('\n');
	return 0;
}
