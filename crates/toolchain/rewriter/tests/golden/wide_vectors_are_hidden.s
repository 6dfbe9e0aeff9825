#### protection read-write-call
	.text
f:
	xgetbv
	movl	%eax, (%rdi)
	cmpl	%esi, %edi
	xgetbv
	jb	.L1
	addl	%edx, %eax
.L1:
	ret
#### output
	.text
.Lmullion_start0:
f:
	xgetbv
	andl	$0xffffff1f, %eax
	movl	%eax, %gs:(%edi)
	cmpl	%esi, %edi
	xgetbv
	movq	%rax, -264(%r15)
	lahf
	seto	%al
	movw	%ax, -256(%r15)
	movq	-264(%r15), %rax
	andl	$0xffffff1f, %eax
	movq	%rax, -264(%r15)
	movw	-256(%r15), %ax
	addb	$127, %al
	sahf
	movq	-264(%r15), %rax
	jb	.L1
	addl	%edx, %eax
.L1:
	ret
