#### protection read-write wall word
	.text
	.globl	f
	.type	f, @function
f:
	cmpl	$2, %edi
	ja	.L1
	leaq	.L4(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	addq	%rdx, %rax
	jmp	*%rax
	.section	.rodata
	.align 4
.L4:
	.long	.L5-.L4
	.long	.L6-.L4
	.long	.L1-.L4
	.text
.L5:
	movl	$1, %eax
	ret
.L6:
	movl	$2, %eax
	ret
.L1:
	xorl	%eax, %eax
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
	cmpl	$2, %edi
	ja	.L1
	leaq	.L4(%rip), %rdx
	leaq	0(%rdx,%rdi,4), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	movslq	0(%rdx,%rdi,4), %rax
	addq	%rdx, %rax
	leaq	.Lmullion_start0+4(%rip), %r11
	subq	%rax, %r11
	cmpq	$.Lmullion_start0+4-.Lmullion_end0, %r11
	jbe	.Lmullion4
	movl	$0xb1938ab3, %r11d
	addl	-4(%rax), %r11d
	jne	.Lmullion4
	jmp	*%rax
	.section	.rodata
	.align	4
.L4:
	.long	.L5-.L4
	.long	.L6-.L4
	.long	.L1-.L4
	.text
	nopl	0x4e6c754d(%rax)
.L5:
	movl	$1, %eax
	ret
	nopl	0x4e6c754d(%rax)
.L6:
	movl	$2, %eax
	ret
	nopl	0x4e6c754d(%rax)
.L1:
	xorl	%eax, %eax
	ret
.Lmullion4:
	ud1	%eax, %eax
.Lmullion3:
	leaq	0(%rdx,%rdi,4), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	3(%rdx,%rdi,4), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
	.size	__mullion_call.f, .-__mullion_call.f
	.size	f, .-f
	.text
.Lmullion_end0:
