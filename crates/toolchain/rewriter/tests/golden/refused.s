#### protection read-write-call
	.text
f:
	syscall
#APP
	movl	%r11d, %eax
	movq	%rax, %r14
	movl	%eax, %esp
	pushfq
	popfq
	xlatb
	maskmovdqu	%xmm0, %xmm1
	vpgatherdd	%ymm0, (%rax,%ymm1,4), %ymm2
	btl	%eax, (%rdi)
	.byte	0x0f, 0x05
	.altmacro
	.unknown
	jmp	f+4
	jmp	.
	movw	%ax, %fs
	lock movl	%eax, (%rdi)
	loop	f
	enter	$16, $0
	ret	$8
	.popsection
	mov	%cr0, %rax
	movq	%rax, 4(%rax,%rbx,3)
	.intel_syntax noprefix
#### refused
input.s:3: not an instruction that an extension may use: system calls are the host's; call the C library, which asks for them: `syscall`
input.s:7: only the whole 64-bit stack pointer can be moved; use rsp: `movl	%eax, %esp`
input.s:8: not an instruction that an extension may use: flags are not kept as a whole; keep one with setc and its kin: `pushfq`
input.s:9: not an instruction that an extension may use: flags are not kept as a whole; keep one with setc and its kin: `popfq`
input.s:10: not an instruction that an extension may use: write a load with an index: `xlatb`
input.s:11: not an instruction that an extension may use, or not with these operands; write it in C, or with others: `maskmovdqu	%xmm0, %xmm1`
input.s:12: an address register that is not a general register (gathers are not supported): `vpgatherdd	%ymm0, (%rax,%ymm1,4), %ymm2`
input.s:13: a bit string in memory cannot be confined; load the word first: `btl	%eax, (%rdi)`
input.s:14: data in an executable section cannot be checked; move it to a data section, or write the instruction by name: `.byte`
input.s:15: only the plain form of macros is expanded; write what it stands for: `.altmacro`
input.s:16: unknown directive: `.unknown`
input.s:17: a branch goes to a symbol or a local label only: `jmp	f+4`
input.s:18: a branch goes to a symbol or a local label only: `jmp	.`
input.s:19: a register that extensions may not use; general registers, xmm0 to xmm15 and ymm0 to ymm15 remain (no MMX, no AVX-512): `movw	%ax, %fs`
input.s:20: this prefix does not go with this instruction; leave it out: `lock movl	%eax, (%rdi)`
input.s:21: not an instruction that an extension may use: write dec and jnz: `loop	f`
input.s:22: not an instruction that an extension may use: write push, mov and sub: `enter	$16, $0`
input.s:23: not an instruction that an extension may use, or not with these operands; write it in C, or with others: `ret	$8`
input.s:24: no section to go back to: `.popsection`
input.s:25: a register that extensions may not use; general registers, xmm0 to xmm15 and ymm0 to ymm15 remain (no MMX, no AVX-512): `mov	%cr0, %rax`
input.s:26: no such scale: `movq	%rax, 4(%rax,%rbx,3)`
input.s:27: only AT&T syntax is read; assemble it elsewhere and take what objdump -d writes, or the C code: `.intel_syntax`
