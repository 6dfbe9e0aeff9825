/* libquadmath: what it computes, writes and reads must be what it does natively, to the last digit. */
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>

static void say(const char *what, __float128 value)
{
	char decimal[64] = "", exact[64] = "";
	quadmath_snprintf(decimal, sizeof decimal, "%.36Qg", value);
	quadmath_snprintf(exact, sizeof exact, "%Qa", value);
	printf("%s %s %s\n", what, decimal, exact);
}
#define OF_ONE(name) say(#name, name(x))

int main(void)
{
	volatile __float128 list[] = {0.3Q, 1.75Q, -2.5Q, 12.0Q, 1e-30Q, 0.0Q, 1234.5678Q, M_PIq};
	for (int at = 0; at < (int)(sizeof list / sizeof *list); at++) {
		__float128 x = list[at];
		say("x", x);
		OF_ONE(sinq); OF_ONE(cosq); OF_ONE(tanq); OF_ONE(atanq); OF_ONE(expq); OF_ONE(expm1q); OF_ONE(exp2q);
		OF_ONE(sinhq); OF_ONE(coshq); OF_ONE(tanhq); OF_ONE(asinhq); OF_ONE(cbrtq); OF_ONE(erfq); OF_ONE(erfcq);
		OF_ONE(floorq); OF_ONE(ceilq); OF_ONE(roundq); OF_ONE(rintq); OF_ONE(truncq); OF_ONE(fabsq);
		if (x > 0) {
			OF_ONE(sqrtq); OF_ONE(logq); OF_ONE(log10q); OF_ONE(log2q); OF_ONE(log1pq); OF_ONE(lgammaq); OF_ONE(tgammaq);
			OF_ONE(j0q); OF_ONE(y1q);
		}
		int exponent;
		say("frexp", frexpq(x, &exponent));
		__float128 whole;
		say("modf", modfq(x, &whole));
		say("whole", whole);
		say("pow", powq(fabsq(x), 0.7Q));
		say("fma", fmaq(x, x, -1));
		say("atan2", atan2q(x, -0.5Q));
		say("hypot", hypotq(x, 3));
		say("fmod", fmodq(x, 0.7Q));
		printf("%d %lld %ld\n", exponent, llroundq(x), lrintq(x));
		__complex128 z = x + 0.25Qi, w = csqrtq(z) + cexpq(z / 100);
		say("real", crealq(w));
		say("imaginary", cimagq(w));
	}
	static const char *texts[] = {"3.14159265358979323846264338327950288", "1e-4950", "0x1.8p3", "-inf", "1e5000", "12abc"};
	for (int at = 0; at < 6; at++) {
		char *end;
		say(texts[at], strtoflt128(texts[at], &end));
		printf("rest \"%s\"\n", end);
	}
	char text[64] = "";
	int length = quadmath_snprintf(text, sizeof text, "%+-#*.20Qe", 46, 1 / 3.0Q);
	printf("%d %s|\n", length, text);
	return 0;
}
