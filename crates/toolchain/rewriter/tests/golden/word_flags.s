#### protection read-write wall word
	.text
hoisted:
	cmpl	$1, %esi
	movq	(%rdi), %rax
	movl	8(%rdi), %ecx
	je	.L1
	ret
.L1:
	cmpl	$1, %esi
	movq	(%rdi), %rdx
	movq	(%rdx), %rcx
	je	.L2
	ret
.L2:
	cmpl	$1, %esi
	movq	(%rdi), %rax
	movq	(%rax), %rcx
	je	.L1
	ret
#### output
	.text
.Lmullion_start0:
hoisted:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	cmpl	$1, %esi
	movq	0(%rdi), %rax
	movl	8(%rdi), %ecx
	je	.L1
	ret
.L1:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion6
.Lmullion4:
	cmpl	$1, %esi
	movq	0(%rdi), %rdx
	movq	%rax, -264(%r15)
	lahf
	seto	%al
	movw	%ax, -256(%r15)
	movq	-264(%r15), %rax
	leaq	0(%rdx), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion9
.Lmullion7:
	movq	%rax, -264(%r15)
	movw	-256(%r15), %ax
	addb	$127, %al
	sahf
	movq	-264(%r15), %rax
	movq	0(%rdx), %rcx
	je	.L2
	ret
.L2:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion12
.Lmullion10:
	cmpl	$1, %esi
	movq	0(%rdi), %rax
	movq	%rdx, -248(%r15)
	leaq	0(%rax), %rdx
	movq	%rax, -264(%r15)
	lahf
	seto	%al
	movw	%ax, -256(%r15)
	movq	-264(%r15), %rax
	leaq	0(%rdx), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion15
.Lmullion13:
	movq	%rax, -264(%r15)
	movw	-256(%r15), %ax
	addb	$127, %al
	sahf
	movq	-264(%r15), %rax
	movq	(%rdx), %rcx
	movq	-248(%r15), %rdx
	je	.L1
	ret
	.text
.Lmullion3:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	4(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	11(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
.Lmullion6:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	4(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	7(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion4
.Lmullion5:
	ud1	%ecx, %eax
.Lmullion9:
	leaq	0(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	4(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	7(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion7
.Lmullion8:
	ud1	%ecx, %eax
.Lmullion12:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion11
	leaq	4(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion11
	leaq	7(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion10
.Lmullion11:
	ud1	%ecx, %eax
.Lmullion15:
	leaq	0(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	4(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	7(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion13
.Lmullion14:
	ud1	%ecx, %eax
