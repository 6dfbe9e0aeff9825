#### protection read-write-call
	.text
	.globl	f
	.type	f, @function
f:
.LFB0:
	.cfi_startproc
	pushq	%r13
	.cfi_def_cfa_offset 16
	.cfi_offset 13, -16
	movl	%edi, %r13d
	pushq	%rbx
	.cfi_def_cfa_offset 24
	.cfi_offset 3, -24
	subq	$24, %rsp
	.cfi_def_cfa_offset 48
	movq	%rsi, 8(%rsp)
	leaq	8(%rsp), %rdi
	call	g@PLT
	addq	$24, %rsp
	.cfi_def_cfa_offset 24
	movl	%r13d, %eax
	popq	%rbx
	.cfi_def_cfa_offset 16
	popq	%r13
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
.LFE0:
	.size	f, .-f
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
.LFB0:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	leaq	-48(%r15), %r15
	.cfi_def_cfa_offset 48
	movq	%r13, 32(%r15)
	.cfi_offset 13, -16
	movl	%edi, %r13d
	movq	%rbx, 24(%r15)
	.cfi_offset 3, -24
	movq	%rsi, 8(%r15)
	leaq	8(%r15), %rdi
	call	g@PLT
	leaq	48(%r15), %r15
	.cfi_def_cfa_offset 0
	movl	%r13d, %eax
	movq	-24(%r15), %rbx
	movq	-16(%r15), %r13
	ret
	.cfi_endproc
.LFE0:
	.size	f, .-f
