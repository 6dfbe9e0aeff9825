#### protection read-write-call
	.text
f:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register 6
	subq	$16, %rsp
	movl	%edi, -4(%rbp)
	call	g
	leave
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
#### output
	.text
.Lmullion_start0:
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	leaq	-32(%r15), %r15
	.cfi_def_cfa_offset 32
	movq	%rbp, 16(%r15)
	.cfi_offset 6, -16
	leaq	16(%r15), %rbp
	.cfi_def_cfa 6, 16
	movl	%edi, 12(%r15)
	call	g
	leaq	32(%r15), %r15
	movq	-16(%r15), %rbp
	.cfi_def_cfa 15, 0
	ret
	.cfi_endproc
