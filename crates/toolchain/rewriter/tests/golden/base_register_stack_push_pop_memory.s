#### protection read-write-call base register
	.text
f:
	pushq	8(%rdi)
	pushq	8(%rsp)
	pushq	x@GOTPCREL(%rip)
	pushq	$3
	pushq	%rsp
	call	g
	addq	$32, %rsp
	popq	(%rax)
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	-48(%r15), %r15
	movl	%edi, %r11d
	movq	8(%r14,%r11), %r11
	movq	%r11, 32(%r15)
	movq	40(%r15), %r11
	movq	%r11, 24(%r15)
	movq	x@GOTPCREL(%rip), %r11
	movq	%r11, 16(%r15)
	movq	$3, 8(%r15)
	leaq	8(%r15), %r11
	movq	%r11, (%r15)
	call	g
	leaq	48(%r15), %r15
	movl	%eax, %r11d
	movq	%rax, -272(%r15)
	movq	-16(%r15), %rax
	movq	%rax, (%r14,%r11)
	movq	-272(%r15), %rax
	ret
