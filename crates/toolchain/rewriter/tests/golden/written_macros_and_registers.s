#### protection read-write-call
	.text
	.macro	step from, to, by=8
	movq	\by(\from), \to
	.if \by > 8
	addq	$\by, \to
	.endif
	.endm
	.globl	f
	.type	f, @function
f:
	pushq	%r14
	movq	%rdi, %r14
	step	%r14, %rax
	step	%r14, %rax, 16
	.rept 2
	incq	%r11
	.endr
	popq	%r14
	.byte	0xf3, 0xc3
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
	leaq	-16(%r15), %r15
	movq	%r12, (%r15)
	movl	%edi, %r12d
	movl	8(%r14,%r12), %eax
	movq	16(%r14,%r12), %rax
	addq	$16, %rax
	incl	%r10d
	incl	%r10d
	leaq	16(%r15), %r15
	movq	-16(%r15), %r12
	ret
