/* System calls leave the domain through one import, __mullion_system: number
 * in %rax, arguments in %rdi %rsi %rdx %rcx %r8 %r9, result in %rax. There is
 * no vdso. An import changes every register that a C function may change. */

#define __SYSCALL_LL_E(x) (x)
#define __SYSCALL_LL_O(x) (x)

static __inline long __syscall6(long n, long a1, long a2, long a3, long a4, long a5, long a6)
{
	register long fifth __asm__("r8") = a5;
	register long sixth __asm__("r9") = a6;
	__asm__ __volatile__ ("call __mullion_system"
		: "+a"(n), "+D"(a1), "+S"(a2), "+d"(a3), "+c"(a4), "+r"(fifth), "+r"(sixth)
		:
		: "r10", "cc", "memory",
		  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
		  "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return n;
}

static __inline long __syscall0(long n)
{
	return __syscall6(n, 0, 0, 0, 0, 0, 0);
}

static __inline long __syscall1(long n, long a1)
{
	return __syscall6(n, a1, 0, 0, 0, 0, 0);
}

static __inline long __syscall2(long n, long a1, long a2)
{
	return __syscall6(n, a1, a2, 0, 0, 0, 0);
}

static __inline long __syscall3(long n, long a1, long a2, long a3)
{
	return __syscall6(n, a1, a2, a3, 0, 0, 0);
}

static __inline long __syscall4(long n, long a1, long a2, long a3, long a4)
{
	return __syscall6(n, a1, a2, a3, a4, 0, 0);
}

static __inline long __syscall5(long n, long a1, long a2, long a3, long a4, long a5)
{
	return __syscall6(n, a1, a2, a3, a4, a5, 0);
}

#define IPC_64 0
