#### protection trap
	.text
f:
	pushq	%rbx
	movq	%rsp, (%rdx)
	pushq	$5
	addq	$16, %rsp
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	-24(%r15), %r15
	movq	%rbx, 8(%r15)
	leaq	8(%r15), %r15
	movl	-8(%r15), %r11d
	movl	%edx, %r11d
	addq	%r14, %r11
	cmpq	%rdx, %r11
	jne	.Lmullion1
	movq	%r15, (%r11)
	leaq	-8(%r15), %r15
	movq	$5, (%r15)
	leaq	24(%r15), %r15
	movl	-8(%r15), %r11d
	ret
	.text
.Lmullion1:
	ud1	%ecx, %eax
