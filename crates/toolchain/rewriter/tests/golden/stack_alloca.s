#### protection read-write-call
	.text
f:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rbx
	subq	$8, %rsp
	subq	%rdi, %rsp
	movq	%rsp, %rdi
	call	g
	movq	-8(%rbp), %rbx
	leave
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	-32(%r15), %r15
	movq	%rbp, 16(%r15)
	leaq	16(%r15), %rbp
	movq	%rbx, 8(%r15)
	leal	0(%r15), %r11d
	subl	%edi, %r11d
	leaq	(%r14,%r11), %r15
	movq	%r15, %rdi
	call	g
	movl	%ebp, %r11d
	movq	-8(%r14,%r11), %rbx
	leal	16(%rbp), %r11d
	movq	-16(%r14,%r11), %rbp
	leaq	(%r14,%r11), %r15
	ret
