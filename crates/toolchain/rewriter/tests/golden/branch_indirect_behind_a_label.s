#### protection read-write-call
	.text
f:
	movl	(%rsi), %eax
	jmp	.L2
.L1:
	movq	%rbx, %rax
	testl	%ecx, %ecx
	je	.L2
	addl	%edi, %eax
.L2:
	jmp	*%rax
	.section	.rodata
	.quad	.L3
	.text
.L3:
	addq	%rax, %r10
	addq	%rcx, %r10
	addq	%rdx, %r10
	addq	%rbx, %r10
	leaq	(%r10,%rsi), %rax
	addq	%rdi, %rax
	addq	%r8, %rax
	addq	%r9, %rax
	jmp	.L1
#### output
	.text
.Lmullion_start0:
f:
	movl	%esi, %r11d
	movl	(%r14,%r11), %eax
	jmp	.L2
.L1:
	movl	%ebx, %eax
	testl	%ecx, %ecx
	je	.L2
	addl	%edi, %eax
.L2:
	movq	%rax, %rax
	movl	$0xb1938ab3, %r11d
	addl	%gs:-4(%eax), %r11d
	jne	.Lmullion1
	movl	%eax, %r11d
	addq	%r14, %r11
	jmp	*%r11
	.section	.rodata
	.quad	.L3
	.text
	nopl	0x4e6c754d(%rax)
.L3:
	addl	%eax, %r10d
	addl	%ecx, %r10d
	addl	%edx, %r10d
	addl	%ebx, %r10d
	leal	(%r10,%rsi,1), %eax
	addl	%edi, %eax
	addl	%r8d, %eax
	addl	%r9d, %eax
	jmp	.L1
	.text
.Lmullion1:
	ud1	%eax, %eax
