#### protection read-write-call base register
	.text
f:
	movl	$0x4e6c754d, %eax
	cmpl	$0x4e6c754d, %ecx
	cmpl	$1315730765, 4(%rdi)
	movabsq	$0x4e6c754d00, %rax
	movl	$0x4e6c754d, (%rsp)
	pushq	$0x4e6c754d
	popq	%rax
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	$2979236530, %r11d
	notl	%r11d
	movl	%r11d, %eax
	movl	$2979236530, %r11d
	notl	%r11d
	cmpl	%r11d, %ecx
	movl	%edi, %r11d
	movq	%rax, -264(%r15)
	movl	$2979236530, %eax
	notl	%eax
	cmpl	%eax, 4(%r14,%r11)
	movq	-264(%r15), %rax
	movabsq	$-336827075841, %r11
	notq	%r11
	movq	%r11, %rax
	movl	$2979236530, %r11d
	notl	%r11d
	movl	%r11d, -8(%r15)
	leaq	-16(%r15), %r15
	movabsq	$-1315730766, %r11
	notq	%r11
	movq	%r11, (%r15)
	leaq	16(%r15), %r15
	movq	-16(%r15), %rax
	ret
