/* The floating-point environment: the x87 and the SSE control and status words
 * together, as <fenv.h> demands of a machine that has both. */
#include <fenv.h>

static unsigned short x87_status(void)
{
	unsigned short status;
	__asm__ __volatile__ ("fnstsw %0" : "=a"(status));
	return status;
}

static unsigned short x87_control(void)
{
	unsigned short control;
	__asm__ __volatile__ ("fnstcw %0" : "=m"(control));
	return control;
}

static void set_x87_control(unsigned short control)
{
	__asm__ __volatile__ ("fldcw %0" : : "m"(control));
}

static unsigned mxcsr(void)
{
	unsigned value;
	__asm__ __volatile__ ("stmxcsr %0" : "=m"(value));
	return value;
}

static void set_mxcsr(unsigned value)
{
	__asm__ __volatile__ ("ldmxcsr %0" : : "m"(value));
}

int feclearexcept(int mask)
{
	unsigned status;
	mask &= FE_ALL_EXCEPT;
	status = x87_status() & FE_ALL_EXCEPT;
	if (status & mask) {
		/* fnclex clears all; what must stay is kept in the SSE word. */
		__asm__ __volatile__ ("fnclex");
		set_mxcsr((mxcsr() | status) & ~(unsigned)mask);
	} else {
		set_mxcsr(mxcsr() & ~(unsigned)mask);
	}
	return 0;
}

int feraiseexcept(int mask)
{
	set_mxcsr(mxcsr() | (mask & FE_ALL_EXCEPT));
	return 0;
}

int fetestexcept(int mask)
{
	return (x87_status() | mxcsr()) & mask & FE_ALL_EXCEPT;
}

int fegetround(void)
{
	return x87_control() & 0xc00;
}

int __fesetround(int mode)
{
	set_x87_control((x87_control() & ~0xc00) | mode);
	set_mxcsr((mxcsr() & ~0x6000u) | (unsigned)mode << 3);
	return 0;
}

int fegetenv(fenv_t *environment)
{
	__asm__ __volatile__ ("fnstenv %0\n\tfldenv %0" : "=m"(*environment));
	environment->__mxcsr = mxcsr();
	return 0;
}

int fesetenv(const fenv_t *environment)
{
	if (environment == FE_DFL_ENV) {
		__asm__ __volatile__ ("fninit");
		set_mxcsr(0x1f80);
	} else {
		__asm__ __volatile__ ("fldenv %0" : : "m"(*environment));
		set_mxcsr(environment->__mxcsr);
	}
	return 0;
}
