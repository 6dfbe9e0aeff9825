#### protection read-write wall word
	.text
	.globl	f
	.type	f, @function
f:
	pushq	%rbp
	movq	%rsp, %rbp
	subq	$100000, %rsp
	movl	-4(%rbp), %eax
	movl	%eax, 40000(%rsp)
	movl	(%rsp,%rcx,4), %edx
	subq	%rdi, %rsp
	andq	$-16, %rsp
	pushq	(%rdi)
	popq	8(%rdi)
	leave
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
	.skip	14, 0xcc
	nop
	.globl	__mullion_call.f
	.hidden	__mullion_call.f
	.type	__mullion_call.f, @function
__mullion_call.f:
	leaq	-28672(%r15), %r15
	movl	-8(%r15), %r11d
	leaq	-28672(%r15), %r15
	movl	-8(%r15), %r11d
	leaq	-28672(%r15), %r15
	movl	-8(%r15), %r11d
	leaq	-14000(%r15), %r15
	movl	-8(%r15), %r11d
	leaq	100000(%r15), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	movq	%rbp, 100000(%r15)
	leaq	100000(%r15), %rbp
	leaq	-4(%rbp), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion6
.Lmullion4:
	movl	-4(%rbp), %eax
	leaq	40000(%r15), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion9
.Lmullion7:
	movl	%eax, 40000(%r15)
	leaq	0(%r15,%rcx,4), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion12
.Lmullion10:
	movl	0(%r15,%rcx,4), %edx
	leaq	0(%r15), %r11
	subq	%rdi, %r11
	xorq	%r15, %r11
	andl	$0x7fffff, %r11d
	xorq	%r11, %r15
	leaq	0(%r15), %r11
	andq	$-16, %r11
	xorq	%r15, %r11
	andl	$0x7fffff, %r11d
	xorq	%r11, %r15
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion15
.Lmullion13:
	leaq	-8(%r15), %r15
	movq	0(%rdi), %r11
	movq	%r11, (%r15)
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion18
.Lmullion16:
	leaq	8(%r15), %r15
	movq	-8(%r15), %r11
	movq	%r11, 8(%rdi)
	leaq	16(%rbp), %r11
	xorq	%r15, %r11
	andl	$0x7fffff, %r11d
	xorq	%r11, %r15
	movq	-16(%r15), %rbp
	ret
.Lmullion3:
	leaq	100000(%r15), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	100004(%r15), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	100007(%r15), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
.Lmullion6:
	leaq	-4(%rbp), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	-1(%rbp), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion4
.Lmullion5:
	ud1	%ecx, %eax
.Lmullion9:
	leaq	40000(%r15), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	40003(%r15), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion7
.Lmullion8:
	ud1	%ecx, %eax
.Lmullion12:
	leaq	0(%r15,%rcx,4), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion11
	leaq	3(%r15,%rcx,4), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion10
.Lmullion11:
	ud1	%ecx, %eax
.Lmullion15:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	4(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	7(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion13
.Lmullion14:
	ud1	%ecx, %eax
.Lmullion18:
	leaq	8(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion17
	leaq	12(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion17
	leaq	15(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion16
.Lmullion17:
	ud1	%ecx, %eax
	.size	__mullion_call.f, .-__mullion_call.f
	.size	f, .-f
