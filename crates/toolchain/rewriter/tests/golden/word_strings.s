#### protection read-write wall word
	.text
f:
	stosb
	rep movsq
	rep stosl
	cmpb	%al, %al
	repe cmpsb
	je	.L2
	repne scasb
.L2:
	ret
#### output
	.text
.Lmullion_start0:
f:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpw	%r14w, %gs:(%r11,%r11)
	jne	.Lmullion3
.Lmullion1:
	stosb
	testq	%rcx, %rcx
	je	.Lmullion6
.Lmullion4:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion9
.Lmullion7:
	leaq	0(%rsi), %r11
	shrq	$2, %r11
	cmpq	%r14, %gs:(%r11,%r11)
	jne	.Lmullion12
.Lmullion10:
	movsq
	subq	$1, %rcx
	jne	.Lmullion4
.Lmullion6:
	testq	%rcx, %rcx
	je	.Lmullion15
.Lmullion13:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpl	%r14d, %gs:(%r11,%r11)
	jne	.Lmullion18
.Lmullion16:
	stosl
	subq	$1, %rcx
	jne	.Lmullion13
.Lmullion15:
	cmpb	%al, %al
	movq	%rax, -264(%r15)
	lahf
	seto	%al
	movw	%ax, -256(%r15)
	movq	-264(%r15), %rax
	testq	%rcx, %rcx
	jne	.Lmullion19
	movq	%rax, -264(%r15)
	movw	-256(%r15), %ax
	addb	$127, %al
	sahf
	movq	-264(%r15), %rax
	jmp	.Lmullion21
.Lmullion19:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpw	%r14w, %gs:(%r11,%r11)
	jne	.Lmullion24
.Lmullion22:
	leaq	0(%rsi), %r11
	shrq	$2, %r11
	cmpw	%r14w, %gs:(%r11,%r11)
	jne	.Lmullion27
.Lmullion25:
	subq	$1, %rcx
	je	.Lmullion20
	cmpsb
	je	.Lmullion19
	jmp	.Lmullion21
.Lmullion20:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpw	%r14w, %gs:(%r11,%r11)
	jne	.Lmullion30
.Lmullion28:
	leaq	0(%rsi), %r11
	shrq	$2, %r11
	cmpw	%r14w, %gs:(%r11,%r11)
	jne	.Lmullion33
.Lmullion31:
	cmpsb
.Lmullion21:
	je	.L2
	testq	%rcx, %rcx
	je	.Lmullion36
.Lmullion34:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpw	%r14w, %gs:(%r11,%r11)
	jne	.Lmullion39
.Lmullion37:
	subq	$1, %rcx
	je	.Lmullion35
	scasb
	jne	.Lmullion34
	jmp	.Lmullion36
.Lmullion35:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	cmpw	%r14w, %gs:(%r11,%r11)
	jne	.Lmullion42
.Lmullion40:
	scasb
.Lmullion36:
.L2:
	ret
	.text
.Lmullion3:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion1
.Lmullion2:
	ud1	%ecx, %eax
.Lmullion9:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	4(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion8
	leaq	7(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion7
.Lmullion8:
	ud1	%ecx, %eax
.Lmullion12:
	leaq	0(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion11
	leaq	4(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	je	.Lmullion11
	leaq	7(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion10
.Lmullion11:
	ud1	%ecx, %eax
.Lmullion18:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	je	.Lmullion17
	leaq	3(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$2, %gs:(%r14d,%r11d)
	jne	.Lmullion16
.Lmullion17:
	ud1	%ecx, %eax
.Lmullion24:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion22
.Lmullion23:
	ud1	%ecx, %eax
.Lmullion27:
	leaq	0(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion25
.Lmullion26:
	ud1	%ecx, %eax
.Lmullion30:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion28
.Lmullion29:
	ud1	%ecx, %eax
.Lmullion33:
	leaq	0(%rsi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion31
.Lmullion32:
	ud1	%ecx, %eax
.Lmullion39:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion37
.Lmullion38:
	ud1	%ecx, %eax
.Lmullion42:
	leaq	0(%rdi), %r11
	shrq	$2, %r11
	movzwl	%gs:(%r11,%r11), %r11d
	testb	$1, %gs:(%r14d,%r11d)
	jne	.Lmullion40
.Lmullion41:
	ud1	%ecx, %eax
