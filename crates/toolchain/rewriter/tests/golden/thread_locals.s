#### protection read-write-call
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
	movl	%gs:(%r11d), %ecx
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	x@tpoff(%r11), %r11
	cmpl	$3, %gs:(%r11d)
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
	movl	%gs:(%r11d), %ecx
	je	.L2
	movq	z@gottpoff(%rip), %rdx
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	movl	%ecx, %gs:(%r11d,%edx,1)
	movl	$0x7ffff8, %r11d
	orl	%r15d, %r11d
	movl	(%r14,%r11), %r11d
	leaq	(%r11,%rdx), %r11
	movl	%ecx, %gs:4(%r11d,%ebx,8)
.L2:
	ret
