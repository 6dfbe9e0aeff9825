#### protection read-write-call base register
	.text
f:
	movq	%fs:0, %rax
	movl	x@tpoff(%rax), %ecx
	cmpl	$3, %fs:x@tpoff
	movl	%fs:y@tpoff, %ecx
	je	.L2
	movq	z@gottpoff(%rip), %rdx
	movl	%ecx, %fs:(%rdx)
	movl	%ecx, %fs:4(%rdx,%rbx,8)
.L2:
	ret
#### output
	.text
.Lmullion_start0:
f:
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movq	(%r14,%r11), %rax
	leaq	x@tpoff(%rax), %r11
	movl	%r11d, %r11d
	movl	(%r14,%r11), %ecx
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	x@tpoff(%r11), %r11
	movl	%r11d, %r11d
	cmpl	$3, (%r14,%r11)
	movq	%rax, -264(%r15)
	lahf
	seto	%al
	movw	%ax, -256(%r15)
	movq	-264(%r15), %rax
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movq	%rax, -264(%r15)
	movw	-256(%r15), %ax
	addb	$127, %al
	sahf
	movq	-264(%r15), %rax
	movl	(%r14,%r11), %r11d
	leaq	y@tpoff(%r11), %r11
	movl	%r11d, %r11d
	movl	(%r14,%r11), %ecx
	je	.L2
	movq	z@gottpoff(%rip), %rdx
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leal	(%r11,%rdx,1), %r11d
	movl	%ecx, (%r14,%r11)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	(%r11,%rdx), %r11
	leal	4(%r11,%rbx,8), %r11d
	movl	%ecx, (%r14,%r11)
.L2:
	ret
