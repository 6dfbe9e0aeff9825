#### protection read-write-call
	.text
f:
	.cfi_startproc
	subq	$8, %rsp
	.cfi_def_cfa_offset 16
	call	g
	addq	$8, %rsp
	.cfi_def_cfa_offset 8
	jmp	h@PLT
	.cfi_endproc
#### output
	.text
.Lmullion_start0:
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	call	g
	jmp	h@PLT
	.cfi_endproc
