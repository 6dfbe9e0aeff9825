#### protection write wall word
	.text
	.globl	f
	.type	f, @function
f:
	movl	8(%rdi), %eax
	movl	%eax, 8(%rdi)
	cmpl	$3, 12(%rdi)
	je	.L2
	addq	%rax, 16(%rdi)
.L2:
	movl	%eax, 8(%rdi)
	addq	$8, %rdi
	movl	%eax, (%rdi)
	ret
	.size	f, .-f
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
	movl	8(%rdi), %eax
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	movl	%eax, 8(%rdi)
	cmpl	$3, 12(%rdi)
	je	.L2
	leaq	16(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion6
.Lmullion4:
	addq	%rax, 16(%rdi)
.L2:
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion9
.Lmullion7:
	movl	%eax, 8(%rdi)
	addq	$8, %rdi
	movl	%eax, 0(%rdi)
	ret
.Lmullion3:
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	11(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
.Lmullion6:
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
	leaq	23(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion4
.Lmullion5:
	ud1	%ecx, %eax
.Lmullion9:
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	11(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion7
.Lmullion8:
	ud1	%ecx, %eax
	.size	__mullion_call.f, .-__mullion_call.f
	.size	f, .-f
