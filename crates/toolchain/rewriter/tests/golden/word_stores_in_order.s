#### protection write wall word
	.text
	.globl f
	.type f, @function
f:
	movnti %eax, (%rdi)
	movntiq %rax, 8(%rdi)
	movntdq %xmm0, 16(%rdi)
	vmovntps %ymm0, 32(%rdi)
	ret
	.size f, .-f
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
	.balign	16, 0xcc
	.p2align	6,,13
f:
	endbr64
	leaq	__mullion_call.f(%rip), %r11
	jmp	*__mullion_slots+8(%rip)
	.skip	15, 0xcc
	.globl	__mullion_call.f
	.hidden	__mullion_call.f
	.type	__mullion_call.f, @function
__mullion_call.f:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	mov	%eax, 0(%rdi)
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion6
	cmpq	%r14, %gs:8(%r11,%r11)
	jne	.Lmullion6
	cmpq	%r14, %gs:16(%r11,%r11)
	jne	.Lmullion6
	cmpl	%r14d, %gs:24(%r11,%r11)
	jne	.Lmullion6
.Lmullion4:
	movq	%rax, 8(%rdi)
	movdqa	%xmm0, 16(%rdi)
	vmovaps	%ymm0, 32(%rdi)
	ret
.Lmullion3:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	3(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
.Lmullion6:
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	12(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	16(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	20(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	24(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	28(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	32(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	36(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	40(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	44(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	48(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	52(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	56(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	60(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	63(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion4
.Lmullion5:
	ud1	%ecx, %eax
	.size	__mullion_call.f, .-__mullion_call.f
	.size	f, .-f
