#### protection write wall word
	.text
f:
	movups	%xmm0, (%rdi)
	movups	%xmm0, 16(%rdi)
	movups	%xmm0, 32(%rdi)
	movups	%xmm0, 48(%rdi)
	movups	%xmm0, (%rsi,%rcx,8)
	movups	%xmm0, 16(%rsi,%rcx,8)
	movups	%xmm0, 32(%rsi,%rcx,8)
	movaps	%xmm0, 16(%rdx)
	movaps	%xmm0, 32(%rdx)
	movaps	%xmm0, 48(%rdx)
	movaps	%xmm0, 64(%rdx)
	movaps	%xmm0, 80(%rdx)
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	0(%rdi), %r11
	notq	%r11
	sarq	$6, %r11
	cmpl	%r14d, %gs:-2(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	movups	%xmm0, 0(%rdi)
	movups	%xmm0, 16(%rdi)
	movups	%xmm0, 32(%rdi)
	movups	%xmm0, 48(%rdi)
	leaq	0(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion6
	cmpq	%r14, %gs:8(%r11,%r11)
	jne	.Lmullion6
	cmpq	%r14, %gs:16(%r11,%r11)
	jne	.Lmullion6
	cmpw	%r14w, %gs:24(%r11,%r11)
	jne	.Lmullion6
.Lmullion4:
	movups	%xmm0, 0(%rsi,%rcx,8)
	movups	%xmm0, 16(%rsi,%rcx,8)
	movups	%xmm0, 32(%rsi,%rcx,8)
	leaq	16(%rdx), %r11
	notq	%r11
	sarq	$6, %r11
	cmpq	%r14, %gs:-6(%r11,%r11)
	jne	.Lmullion9
.Lmullion7:
	movaps	%xmm0, 16(%rdx)
	movaps	%xmm0, 32(%rdx)
	movaps	%xmm0, 48(%rdx)
	movaps	%xmm0, 64(%rdx)
	movaps	%xmm0, 80(%rdx)
	ret
	.text
.Lmullion3:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	4(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	12(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	16(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	20(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	24(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	28(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	32(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	36(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	40(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	44(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	48(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	52(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	56(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	60(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	63(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
.Lmullion6:
	leaq	0(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	4(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	8(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	12(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	16(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	20(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	24(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	28(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	32(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	36(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	40(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	44(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	47(%rsi,%rcx,8), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion4
.Lmullion5:
	ud1	%ecx, %eax
.Lmullion9:
	leaq	16(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	20(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	24(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	28(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	32(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	36(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	40(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	44(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	48(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	52(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	56(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	60(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	64(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	68(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	72(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	76(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	80(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	84(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	88(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	92(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	95(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion7
.Lmullion8:
	ud1	%ecx, %eax
