/* The quotient of two complex numbers, for one format: robust against overflow and underflow of the parts of the
 * computation where the quotient itself is representable.
 *
 * R. L. Smith, "Algorithm 116: complex division" (1962), with what M. Baudin and R. L. Smith, "A robust complex division
 * in Scilab" (arXiv:1210.4539), and P. McGehearty, "Improving complex division" (2020), add: scaling by powers of two at
 * both ends of the range, and another order of operations where d/c underflows. Infinities are recovered as in C11,
 * annex G.5.1.
 *
 * The file that includes this defines REAL and COMPLEX; ABS and SIGN (fabs and copysign); LARGEST, SMALLEST (normal) and
 * STEP (between 1 and the next number), all of REAL; or PLAIN, if its numbers are far from both ends of REAL's range.
 */

static inline COMPLEX quotient(REAL a, REAL b, REAL c, REAL d)
{
#ifdef PLAIN
	REAL divisor = c * c + d * d, x = (a * c + b * d) / divisor, y = (b * c - a * d) / divisor;
#else
	const REAL half_range = LARGEST / 2, scale_up = 1 / STEP, scalable = half_range * STEP;
	/* With |c| < |d|, both are turned by -i: the quotient stays. */
	if (ABS(c) < ABS(d)) {
		REAL real = a, divisor = c;
		a = b;
		b = -real;
		c = d;
		d = -divisor;
	}
	if (ABS(c) >= half_range) {
		/* c + d * (d / c) could overflow. */
		a /= 2;
		b /= 2;
		c /= 2;
		d /= 2;
	}
	/* What is lost to subnormal numbers is regained where the others leave room for it. */
	int small = (ABS(a) < SMALLEST && ABS(b) < scalable) || (ABS(b) < SMALLEST && ABS(a) < scalable);
	if (ABS(c) < STEP || (small && ABS(c) < scalable)) {
		a *= scale_up;
		b *= scale_up;
		c *= scale_up;
		d *= scale_up;
	}
	REAL ratio = d / c, divisor = c + d * ratio, x, y;
	if (ABS(ratio) > SMALLEST) {
		x = (a + b * ratio) / divisor;
		y = (b - a * ratio) / divisor;
	} else {
		x = (a + d * (b / c)) / divisor;
		y = (b - d * (a / c)) / divisor;
	}
#endif
	if (__builtin_isnan(x) && __builtin_isnan(y)) {
		if (c == 0 && d == 0 && !(__builtin_isnan(a) && __builtin_isnan(b))) {
			x = SIGN((REAL)__builtin_inff(), c) * a;
			y = SIGN((REAL)__builtin_inff(), c) * b;
		} else if ((__builtin_isinf(a) || __builtin_isinf(b)) && __builtin_isfinite(c) && __builtin_isfinite(d)) {
			a = SIGN((REAL)!!__builtin_isinf(a), a);
			b = SIGN((REAL)!!__builtin_isinf(b), b);
			x = (REAL)__builtin_inff() * (a * c + b * d);
			y = (REAL)__builtin_inff() * (b * c - a * d);
		} else if ((__builtin_isinf(c) || __builtin_isinf(d)) && __builtin_isfinite(a) && __builtin_isfinite(b)) {
			c = SIGN((REAL)!!__builtin_isinf(c), c);
			d = SIGN((REAL)!!__builtin_isinf(d), d);
			x = 0 * (a * c + b * d);
			y = 0 * (b * c - a * d);
		}
	}
	COMPLEX result;
	__real__ result = x;
	__imag__ result = y;
	return result;
}
