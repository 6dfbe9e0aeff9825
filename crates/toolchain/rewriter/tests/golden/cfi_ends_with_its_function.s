#### protection read-write-call
	.text
f:
	.cfi_startproc
	ret
	.cfi_endproc
g:
	pushq	%rbx
	popq	%rbx
	ret
#### output
	.text
.Lmullion_start0:
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	ret
	.cfi_endproc
g:
	leaq	-16(%r15), %r15
	movq	%rbx, (%r15)
	leaq	16(%r15), %r15
	movq	-16(%r15), %rbx
	ret
