#### protection read-write-call
	.text
f:
	subq	$8, %rsp
	call	_setjmp@PLT
	call	setjmpish
	addq	$8, %rsp
	ret
#### output
	.text
.Lmullion_start0:
f:
	call	_setjmp@PLT
	nopl	0x4e6c754d(%rax)
	call	setjmpish
	ret
