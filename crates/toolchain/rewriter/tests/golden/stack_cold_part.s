#### protection read-write-call
	.text
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	pushq	%rbx
	.cfi_def_cfa_offset 16
	testl	%edi, %edi
	js	.L2
	popq	%rbx
	.cfi_remember_state
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.section	.text.unlikely,"ax",@progbits
	.cfi_startproc
	.type	f.cold, @function
f.cold:
.L2:
	.cfi_def_cfa_offset 16
	call	abort@PLT
	.cfi_endproc
	.text
	.size	f, .-f
	.section	.text.unlikely
	.size	f.cold, .-f.cold
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	leaq	-16(%r15), %r15
	.cfi_def_cfa_offset 16
	movq	%rbx, (%r15)
	testl	%edi, %edi
	js	.L2
	leaq	16(%r15), %r15
	.cfi_def_cfa_offset 0
	movq	-16(%r15), %rbx
	.cfi_remember_state
	ret
	.cfi_endproc
	.section	.text.unlikely,"ax",@progbits
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 8
	.type	f.cold, @function
.Lmullion_start1:
f.cold:
.L2:
	.cfi_def_cfa 15, 16
	call	abort@PLT
	.cfi_endproc
	.text
	.size	f, .-f
	.section	.text.unlikely
	.size	f.cold, .-f.cold
