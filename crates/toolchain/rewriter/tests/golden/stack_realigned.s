#### protection read-write-call
	.text
f:
	leaq	8(%rsp), %r10
	andq	$-32, %rsp
	pushq	-8(%r10)
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%r10
	subq	$40, %rsp
	movl	%edi, -48(%rbp)
	call	g
	movq	-8(%rbp), %r10
	leave
	leaq	-8(%r10), %rsp
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	0(%r15), %r10
	leal	-8(%r15), %r11d
	andl	$-32, %r11d
	leaq	(%r14,%r11), %r15
	leaq	-64(%r15), %r15
	movq	%gs:-8(%r10d), %r11
	movq	%r11, 56(%r15)
	movq	%rbp, 48(%r15)
	leaq	48(%r15), %rbp
	movq	%r10, 40(%r15)
	movl	%edi, %gs:-48(%ebp)
	call	g
	movl	%ebp, %r11d
	movq	-8(%r14,%r11), %r10
	leal	8(%rbp), %r11d
	movq	-8(%r14,%r11), %rbp
	leaq	(%r14,%r11), %r15
	leal	0(%r10), %r11d
	leaq	(%r14,%r11), %r15
	ret
