#### protection read-write-call
	.text
	.globl	add
	.type	add, @function
add:
.LFB0:
	.file 1 "one.c"
	.loc 1 2 23
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register 6
	movl	%edi, -4(%rbp)
	.loc 1 2 34
	movl	-4(%rbp), %eax
	.loc 1 2 39
	popq	%rbp
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
	.size	add, .-add
	.type	unseen, @function
unseen:
	.loc 1 3 1
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register 6
	.loc 1 4 1
	call	add
	popq	%rbp
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
	.size	unseen, .-unseen
	.globl	optimised
	.type	optimised, @function
optimised:
	.loc 1 5 1 view -0
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register 6
	.loc 1 6 1 is_stmt 0 view .LVU1
	popq	%rbp
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
	.size	optimised, .-optimised
#### output
	.text
	.globl	add
	.type	add, @function
.Lmullion_start0:
	.file	1 "one.c"
	.loc	1 2 23 is_stmt 0
	nopl	0x4e6c754d(%rax)
add:
.LFB0:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	leaq	-16(%r15), %r15
	.cfi_def_cfa_offset 16
	movq	%rbp, (%r15)
	.cfi_offset 6, -16
	movq	%r15, %rbp
	.cfi_def_cfa 6, 16
	movl	%edi, -4(%r15)
	.loc	1 2 34 is_stmt 1
	movl	-4(%r15), %eax
	.loc	1 2 39
	leaq	16(%r15), %r15
	movq	-16(%r15), %rbp
	.cfi_def_cfa 15, 0
	ret
	.cfi_endproc
	.size	add, .-add
	.type	unseen, @function
	.loc	1 3 1 is_stmt 0
	nop
unseen:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	leaq	-16(%r15), %r15
	.cfi_def_cfa_offset 16
	movq	%rbp, (%r15)
	.cfi_offset 6, -16
	movq	%r15, %rbp
	.cfi_def_cfa 6, 16
	.loc	1 4 1 is_stmt 1
	call	add
	leaq	16(%r15), %r15
	movq	-16(%r15), %rbp
	.cfi_def_cfa 15, 0
	ret
	.cfi_endproc
	.size	unseen, .-unseen
	.globl	optimised
	.type	optimised, @function
	nopl	0x4e6c754d(%rax)
optimised:
	.loc	1 5 1 view -0
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	leaq	-16(%r15), %r15
	.cfi_def_cfa_offset 16
	movq	%rbp, (%r15)
	.cfi_offset 6, -16
	movq	%r15, %rbp
	.cfi_def_cfa 6, 16
	.loc	1 6 1 is_stmt 0 view .LVU1
	leaq	16(%r15), %r15
	movq	-16(%r15), %rbp
	.cfi_def_cfa 15, 0
	ret
	.cfi_endproc
	.size	optimised, .-optimised
