#### protection read-write-call
	.text
	.globl	f
	.type	f, @function
# What writes a part of a register, or perhaps nothing, leaves the upper half of what was there.
f:
	movq	%rdi, %rdx
	mulb	%cl
	movq	%rdx, 8(%rsi)
	movq	%rdi, %rdx
	imulw	%cx
	movq	%rdx, 8(%rsi)
	movq	%rdi, %rdx
	cwtd
	movq	%rdx, 8(%rsi)
	movq	%rdi, %rcx
	bsfl	%r8d, %ecx
	movq	%rcx, 8(%rsi)
	movq	%rdi, %rcx
	pcmpestrm	$0, %xmm0, %xmm1
	movq	%rcx, 8(%rsi)
	movq	%rdi, %rcx
	cmpxchgl	%r8d, %ecx
	movq	%rcx, 8(%rsi)
	movq	%rdi, %rax
	fnstsw
	movq	%rax, 8(%rsi)
# Here nothing is left.
	movq	%rdi, %rdx
	mull	%ecx
	movq	%rdx, 8(%rsi)
	movq	%rdi, %rdx
	cltd
	movq	%rdx, 8(%rsi)
	ret
	.size	f, .-f
#### output
	.text
	.globl	f
	.type	f, @function
# What writes a part of a register, or perhaps nothing, leaves the upper half of what was there.
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
	movq	%rdi, %rdx
	mulb	%cl
	movl	%esi, %r11d
	movq	%rdx, 8(%r14,%r11)
	movq	%rdi, %rdx
	imulw	%cx
	movq	%rdx, 8(%r14,%r11)
	movq	%rdi, %rdx
	cwtd
	movq	%rdx, 8(%r14,%r11)
	movq	%rdi, %rcx
	bsfl	%r8d, %ecx
	movq	%rcx, 8(%r14,%r11)
	movq	%rdi, %rcx
	pcmpestrm	$0, %xmm0, %xmm1
	movq	%rcx, 8(%r14,%r11)
	movq	%rdi, %rcx
	cmpxchgl	%r8d, %ecx
	movq	%rcx, 8(%r14,%r11)
	movq	%rdi, %rax
	fnstsw
	movq	%rax, 8(%r14,%r11)
# Here nothing is left.
	movl	%edi, %edx
	mull	%ecx
	movq	%rdx, 8(%r14,%r11)
	movl	%edi, %edx
	cltd
	movq	%rdx, 8(%r14,%r11)
	ret
	.size	f, .-f
