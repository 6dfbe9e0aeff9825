#### protection read-write-call
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
	movb	%ah, %gs:(%edi)
	xchgb	%bl, %bh
	addb	%gs:(%r8d), %bl
	xchgb	%bl, %bh
	movzbl	%ah, %ecx
	ret
