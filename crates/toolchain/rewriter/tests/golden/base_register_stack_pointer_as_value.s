#### protection read-write-call base register
	.text
f:
	movq	%rsp, %rax
	movl	%esp, %ecx
	pushq	%rbx
	movq	%rsp, %rdx
	cmpq	%rsp, %rdx
	movq	%rsp, (%rdi)
	popq	%rbx
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	-8(%r15), %rax
	leaq	-8(%r15), %r11
	movl	%r11d, %ecx
	leaq	-16(%r15), %r15
	movq	%rbx, (%r15)
	movq	%r15, %rdx
	cmpq	%r15, %rdx
	movl	%edi, %r11d
	movq	%r15, (%r14,%r11)
	leaq	16(%r15), %r15
	movq	-16(%r15), %rbx
	ret
