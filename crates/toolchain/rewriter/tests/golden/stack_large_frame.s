#### protection read-write-call
	.text
f:
	.cfi_startproc
	subq	$100008, %rsp
	.cfi_def_cfa_offset 100016
	movl	%edi, 12(%rsp)
	movl	%edi, 90000(%rsp)
	movq	%rsp, %rdi
	call	g
	addq	$100008, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
#### output
	.text
.Lmullion_start0:
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	leal	-100016(%r15), %r11d
	leaq	(%r14,%r11), %r15
	.cfi_def_cfa_offset 100016
	movl	%edi, 12(%r15)
	movl	%edi, %gs:90000(%r15d)
	movq	%r15, %rdi
	call	g
	leal	100016(%r15), %r11d
	leaq	(%r14,%r11), %r15
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
