#### protection read-write-call
	.text
f:
	subq	$24, %rsp
	prefetcht0	8(%rsp)
	call	g
	addq	$24, %rsp
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	-32(%r15), %r15
	prefetcht0	8(%r15)
	movl	-8(%r15), %r11d
	call	g
	leaq	32(%r15), %r15
	movl	-8(%r15), %r11d
	ret
