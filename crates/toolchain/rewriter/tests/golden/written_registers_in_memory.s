#### protection read-write-call
	.text
	.globl	f
	.type	f, @function
f:
	pushq	%r12
	pushq	%r13
	pushq	%rbx
	pushq	%rbp
	pushq	%r14
	movl	%r10d, %r14d
	addq	%r14, 8(%rdi,%r14)
	movq	%r14, %rax
	popq	%r14
	popq	%rbp
	popq	%rbx
	popq	%r13
	popq	%r12
	ret
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
	leaq	-48(%r15), %r15
	movq	%r12, 32(%r15)
	movq	%r13, 24(%r15)
	movq	%rbx, 16(%r15)
	movq	%rbp, 8(%r15)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+24(%r11), %r11
	movq	%r8, %gs:(%r11d)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%gs:(%r11d), %r8
	movq	%r8, (%r15)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%r8, %gs:(%r11d)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+24(%r11), %r11
	movq	%gs:(%r11d), %r8
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+24(%r11), %r11
	movq	%r8, %gs:(%r11d)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%gs:(%r11d), %r8
	movl	%r10d, %r8d
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%r8, %gs:(%r11d)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+24(%r11), %r11
	movq	%gs:(%r11d), %r8
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+24(%r11), %r11
	movq	%r8, %gs:(%r11d)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%gs:(%r11d), %r8
	addq	%r8, %gs:8(%edi,%r8d,1)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%r8, %gs:(%r11d)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+24(%r11), %r11
	movq	%gs:(%r11d), %r8
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%gs:(%r11d), %rax
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+24(%r11), %r11
	movq	%r8, %gs:(%r11d)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%gs:(%r11d), %r8
	leaq	48(%r15), %r15
	movq	-48(%r15), %r8
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+8(%r11), %r11
	movq	%r8, %gs:(%r11d)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	__mullion_registers@tpoff+24(%r11), %r11
	movq	%gs:(%r11d), %r8
	movq	-40(%r15), %rbp
	movq	-32(%r15), %rbx
	movq	-24(%r15), %r13
	movq	-16(%r15), %r12
	ret
	.section	.tbss.__mullion_registers,"awTG",@nobits,__mullion_registers,comdat
	.weak	__mullion_registers
	.hidden	__mullion_registers
	.type	__mullion_registers, @object
	.size	__mullion_registers, 48
	.balign	8
__mullion_registers:
	.zero	48
