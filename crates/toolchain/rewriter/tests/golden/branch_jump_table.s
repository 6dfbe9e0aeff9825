#### protection read-write-call
	.text
	.globl	f
	.type	f, @function
f:
	cmpl	$2, %edi
	ja	.L5
	leaq	.L4(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	addq	%rdx, %rax
	jmp	*%rax
	.section	.rodata
	.align 4
.L4:
	.long	.L1-.L4
	.long	.L2-.L4
	.long	.L5-.L4
	.text
	.p2align 4,,10
.L1:
	movl	%edx, %eax
	ret
.L2:
	movl	%esi, %eax
.L5:
	ret
	.size	f, .-f
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
	cmpl	$2, %edi
	ja	.L5
	leaq	.L4(%rip), %rdx
	movslq	%gs:(%edx,%edi,4), %rax
	addq	%rdx, %rax
	movl	$0xb1938ab3, %r11d
	addl	%gs:-4(%eax), %r11d
	jne	.Lmullion1
	movl	%eax, %r11d
	addq	%r14, %r11
	jmp	*%r11
	.section	.rodata
	.align	4
.L4:
	.long	.L1-.L4
	.long	.L2-.L4
	.long	.L5-.L4
	.text
	.p2align	4,,10
	nopl	0x4e6c754d(%rax)
.L1:
	movl	%edx, %eax
	ret
	nopl	0x4e6c754d(%rax)
.L2:
	movl	%esi, %eax
	nopl	0x4e6c754d(%rax)
.L5:
	ret
.Lmullion1:
	ud1	%eax, %eax
	.size	f, .-f
