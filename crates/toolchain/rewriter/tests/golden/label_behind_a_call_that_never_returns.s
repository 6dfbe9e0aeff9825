#### protection read-write-call
	.text
	.p2align 4
	.type	fails, @function
fails:
	.cfi_startproc
	subq	$8, %rsp
	call	abort@PLT
	.cfi_endproc
	.size	fails, .-fails
	.p2align 4
	.globl	g
	.type	g, @function
g:
	.cfi_startproc
	jmp	elsewhere
	.cfi_endproc
	.size	g, .-g
#### output
	.text
	.balign	16
.Lmullion_start0:
	.p2align	4
	.type	fails, @function
fails:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 8
	leaq	-8(%r15), %r15
	.cfi_def_cfa_offset 16
	movl	-8(%r15), %r11d
	call	abort@PLT
	leaq	8(%r15), %r15
	.cfi_def_cfa_offset 8
	.cfi_endproc
	.size	fails, .-fails
	movl	-8(%r15), %r11d
	.skip	(-7-(.-.Lmullion_start0))&15, 0x90
	nopl	0x4e6c754d(%rax)
	.globl	g
	.type	g, @function
g:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	jmp	elsewhere
	.cfi_endproc
	.size	g, .-g
