#### protection read-write-call base register
	.text
f:
	movb	%ah, 8(%rsp)
	movb	%ah, (%rdi)
	addb	(%r8), %bh
	movzbl	%ah, %ecx
	ret
#### output
	.text
.Lmullion_start0:
f:
	xchgb	%al, %ah
	movb	%al, (%r15)
	xchgb	%al, %ah
	leal	(%rdi), %r11d
	xchgb	%al, %ah
	movb	%al, (%r14,%r11)
	xchgb	%al, %ah
	leal	(%r8), %r11d
	xchgb	%bl, %bh
	addb	(%r14,%r11), %bl
	xchgb	%bl, %bh
	movzbl	%ah, %ecx
	ret
