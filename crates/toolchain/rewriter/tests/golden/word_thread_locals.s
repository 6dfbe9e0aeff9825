#### protection read-write wall word
	.text
f:
	movq	%fs:0, %rdx
	movq	x@gottpoff(%rip), %rax
	addl	$1, (%rdx,%rax)
	movl	%fs:y@tpoff, %ecx
	addq	%fs:0, %rax
	ret
#### output
	.text
.Lmullion_start0:
f:
	movq	%r15, %rdx
	orq	$0x7fffff, %rdx
	leaq	-32775(%rdx), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	movq	-32775(%rdx), %rdx
	movq	x@gottpoff(%rip), %rax
	leaq	0(%rdx,%rax,1), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion6
.Lmullion4:
	addl	$1, 0(%rdx,%rax,1)
	movq	%rdx, -248(%r15)
	movq	%r15, %rdx
	orq	$0x7fffff, %rdx
	leaq	-32775(%rdx), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion9
.Lmullion7:
	movq	-32775(%rdx), %rdx
	leaq	y@tpoff(%rdx), %rdx
	leaq	0(%rdx), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion12
.Lmullion10:
	movl	(%rdx), %ecx
	movq	-248(%r15), %rdx
	movq	%rcx, -248(%r15)
	movq	%r15, %rcx
	orq	$0x7fffff, %rcx
	leaq	-32775(%rcx), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion15
.Lmullion13:
	movq	-32775(%rcx), %rcx
	movq	%rcx, -240(%r15)
	addq	-240(%r15), %rax
	movq	-248(%r15), %rcx
	ret
	.text
.Lmullion3:
	leaq	-32775(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	-32771(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion2
	leaq	-32768(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
.Lmullion6:
	leaq	0(%rdx,%rax,1), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion5
	leaq	3(%rdx,%rax,1), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion4
.Lmullion5:
	ud1	%ecx, %eax
.Lmullion9:
	leaq	-32775(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	-32771(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	-32768(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion7
.Lmullion8:
	ud1	%ecx, %eax
.Lmullion12:
	leaq	0(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion11
	leaq	3(%rdx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion10
.Lmullion11:
	ud1	%ecx, %eax
.Lmullion15:
	leaq	-32775(%rcx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	-32771(%rcx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion14
	leaq	-32768(%rcx), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion13
.Lmullion14:
	ud1	%ecx, %eax
