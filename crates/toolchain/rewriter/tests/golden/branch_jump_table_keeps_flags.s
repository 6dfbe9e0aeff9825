#### protection read-write-call
	.text
	.globl	f
	.type	f, @function
f:
	leaq	.L4(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rax
	addq	%rdx, %rax
	cmpl	%esi, %ecx
	jmp	*%rax
	.section	.rodata
	.align 4
.L4:
	.long	.L1-.L4
	.long	.L2-.L4
	.text
.L1:
	jnb	.L5
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
	leaq	.L4(%rip), %rdx
	movslq	%gs:(%edx,%edi,4), %rax
	addq	%rdx, %rax
	cmpl	%esi, %ecx
	movq	%rax, -264(%r15)
	lahf
	seto	%al
	movw	%ax, -256(%r15)
	movq	-264(%r15), %rax
	movl	$0xb1938ab3, %r11d
	addl	%gs:-4(%eax), %r11d
	jne	.Lmullion1
	movl	%eax, %r11d
	leaq	(%r14,%r11), %r11
	movq	%rax, -264(%r15)
	movw	-256(%r15), %ax
	addb	$127, %al
	sahf
	movq	-264(%r15), %rax
	jmp	*%r11
	.section	.rodata
	.align	4
.L4:
	.long	.L1-.L4
	.long	.L2-.L4
	.text
	nopl	0x4e6c754d(%rax)
.L1:
	jnb	.L5
	movl	%edx, %eax
	ret
	nopl	0x4e6c754d(%rax)
.L2:
	movl	%esi, %eax
.L5:
	ret
.Lmullion1:
	ud1	%eax, %eax
	.size	f, .-f
