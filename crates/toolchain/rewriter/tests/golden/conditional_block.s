#### protection read-write-call
	.text
	.globl	merge
	.type	merge, @function
merge:
	subq	$24, %rsp
	movq	%rdi, 8(%rsp)
	movq	%rsi, (%rsp)
	testl	%edx, %edx
	cmovg	8(%rsp), %rax
	.loc 1 51 54
	cmovg	%r13, %rbx
	movq	%rbx, (%r12)
	movq	%rcx, (%rax)
	testl	%edx, %edx
	cmovg	8(%rsp), %rcx
	cmovle	%r13, %rsi
	cmovg	8(%rsp), %edi
	cmovg	%r13d, %ebx
	movq	%rcx, %rax
	addq	%rsi, %rax
	addq	%rdi, %rax
	addq	%rbx, %rax
	addq	$24, %rsp
	ret
	.size	merge, .-merge
#### output
	.text
	.globl	merge
	.type	merge, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
merge:
	leaq	-32(%r15), %r15
	movq	%rdi, 8(%r15)
	movq	%rsi, (%r15)
	testl	%edx, %edx
	jle	.Lmullion1
	mov	8(%r15), %eax
	.loc	1 51 54
	mov	%r13, %rbx
.Lmullion1:
	movq	%rbx, %gs:(%r12d)
	movq	%rcx, %gs:(%eax)
	testl	%edx, %edx
	cmovg	8(%r15), %rcx
	cmovle	%r13, %rsi
	cmovg	8(%r15), %edi
	cmovg	%r13d, %ebx
	movq	%rcx, %rax
	addq	%rsi, %rax
	addq	%rdi, %rax
	addq	%rbx, %rax
	leaq	32(%r15), %r15
	movl	-8(%r15), %r11d
	ret
	.size	merge, .-merge
