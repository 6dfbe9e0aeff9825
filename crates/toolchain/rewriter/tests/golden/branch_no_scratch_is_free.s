#### protection read-write-call
	.text
f:
	movl	$1, %r10d
	jmp	*%rbx
	.section	.rodata
	.quad	.L1
	.text
.L1:
	addq	%rax, %r10
	addq	%rcx, %r10
	addq	%rdx, %r10
	addq	%rbx, %r10
	leaq	(%r10,%rsi), %rax
	addq	%rdi, %rax
	addq	%r8, %rax
	addq	%r9, %rax
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	$1, %r10d
	movl	$0xb1938ab3, %r11d
	addl	%gs:-4(%ebx), %r11d
	jne	.Lmullion1
	movl	%ebx, %r11d
	addq	%r14, %r11
	jmp	*%r11
	.section	.rodata
	.quad	.L1
	.text
	nopl	0x4e6c754d(%rax)
.L1:
	addq	%rax, %r10
	addq	%rcx, %r10
	addq	%rdx, %r10
	addq	%rbx, %r10
	leaq	(%r10,%rsi), %rax
	addq	%rdi, %rax
	addq	%r8, %rax
	addq	%r9, %rax
	ret
	.text
.Lmullion1:
	ud1	%eax, %eax
