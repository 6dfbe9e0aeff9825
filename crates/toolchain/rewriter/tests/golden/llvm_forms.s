#### protection read-write-call
	.att_syntax
	.section	.text.f,"ax",@progbits
	.globl	f
	.prefalign	4, .Lfunc_end0, nop
	.type	f,@function
f:
	.cfi_startproc
	rep		movsb	(%rsi), %es:(%rdi)
	rep		stosq	%rax, %es:(%rdi)
	scasb	%es:(%rdi), %al
	callq	*malloc@GOTPCREL(%rip)
	movq	%fs:(%rdx), %rcx
	retq
.Lfunc_end0:
	.size	f, .Lfunc_end0-f
	.cfi_endproc
#### output
	.att_syntax
	.section	.text.f,"ax",@progbits
	.globl	f
	.balign	16
.Lmullion_start1:
	.skip	(-7-(.-.Lmullion_start1))&15, 0x90
	nopl	0x4e6c754d(%rax)
	.type	f,@function
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	movl	%esi, %esi
	leaq	(%r14,%rsi), %rsi
	rep movsb
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	rep stosq
	movl	%edi, %edi
	leaq	(%r14,%rdi), %rdi
	scasb
	callq	malloc@PLT
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	movq	%gs:(%r11d,%edx,1), %rcx
	ret
.Lfunc_end0:
	.size	f, .Lfunc_end0-f
	.cfi_endproc
