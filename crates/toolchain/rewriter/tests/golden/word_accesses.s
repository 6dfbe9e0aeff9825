#### protection read-write wall word
	.text
	.globl	f
	.type	f, @function
f:
	movl	8(%rdi), %eax
	movl	12(%rdi), %edx
	movl	%edx, (%rsi)
	movq	%rax, 4(%rsi)
	movb	$1, 24(%rsi)
	addl	$1, counter(%rip)
	movsd	8(%rdi,%rcx,8), %xmm0
	movaps	%xmm0, (%rdx)
	fldt	(%rdx)
	fstpt	16(%rdx)
	lock xaddq	%rax, 32(%rdx)
	prefetcht0	64(%rdx)
	vmovdqu	(%rdi), %ymm1
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
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion3
	cmpq	%r14, %gs:8(%r11,%r11)
	jne	.Lmullion3
	cmpw	%r14w, %gs:16(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	movl	8(%rdi), %eax
	movl	12(%rdi), %edx
	leaq	0(%rsi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion6
.Lmullion4:
	movl	%edx, 0(%rsi)
	movq	%rax, 4(%rsi)
	leaq	24(%rsi), %r11
	shrq	$2, %r11
	cmpw	%r14w, %gs:(%r11,%r11)
	jne	.Lmullion9
.Lmullion7:
	movb	$1, 24(%rsi)
	addl	$1, counter(%rip)
	leaq	8(%rdi,%rcx,8), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion12
.Lmullion10:
	movsd	8(%rdi,%rcx,8), %xmm0
	leaq	0(%rdx), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion15
	cmpq	%r14, %gs:8(%r11,%r11)
	jne	.Lmullion15
.Lmullion13:
	movaps	%xmm0, 0(%rdx)
	fldt	0(%rdx)
	fstpt	16(%rdx)
	leaq	32(%rdx), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion18
.Lmullion16:
	lock xaddq	%rax, 32(%rdx)
	leaq	64(%rdx), %r11
	shrq	$2, %r11
	prefetcht0	%gs:(%r11,%r11)
	prefetcht0	64(%rdx)
	vmovdqu	0(%rdi), %ymm1
	ret
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
	leaq	12(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	16(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	20(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	24(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	28(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	31(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
.Lmullion6:
	leaq	0(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	4(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	8(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	11(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion4
.Lmullion5:
	ud1	%ecx, %eax
.Lmullion9:
	leaq	24(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion7
.Lmullion8:
	ud1	%ecx, %eax
.Lmullion12:
	leaq	8(%rdi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion11
	leaq	12(%rdi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion11
	leaq	15(%rdi,%rcx,8), %r11
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
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	4(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	8(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	12(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	16(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	20(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	24(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	25(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion13
.Lmullion14:
	ud1	%ecx, %eax
.Lmullion18:
	leaq	32(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion17
	leaq	36(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion17
	leaq	39(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion16
.Lmullion17:
	ud1	%ecx, %eax
	.size	__mullion_call.f, .-__mullion_call.f
	.size	f, .-f
