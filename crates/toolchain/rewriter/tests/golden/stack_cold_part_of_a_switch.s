#### protection read-write-call
	.text
	.globl f
	.type	f, @function
f:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	pushq	%rbx
	.cfi_def_cfa_offset 24
	.cfi_offset 3, -24
	subq $8, %rsp
	.cfi_def_cfa_offset 32
	call	printf@PLT
	leaq	.L124(%rip), %rdx
	movslq	(%rdx,%rax,4), %rax
	addq	%rdx, %rax
	jmp	*%rax
	.section	.rodata
	.align 4
.L124:
	.long	.L122-.L124
	.long	.L123-.L124
	.text
.L122:
	call	printf@PLT
	addq $8, %rsp
	.cfi_def_cfa_offset 24
	popq	%rbx
	.cfi_def_cfa_offset 16
	popq	%rbp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.section	.text.unlikely
	.cfi_startproc
	.type	f.cold, @function
f.cold:
.LFSB3611:
.L123:
	.cfi_def_cfa_offset 32
	.cfi_offset 3, -24
	.cfi_offset 6, -16
	movl	$8, %edi
	call	g@PLT
	call	abort@PLT
	.cfi_endproc
	.size	f.cold, .-f.cold
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	leaq	-32(%r15), %r15
	.cfi_def_cfa_offset 32
	movq	%rbp, 16(%r15)
	.cfi_offset 6, -16
	movq	%rbx, 8(%r15)
	.cfi_offset 3, -24
	call	printf@PLT
	leaq	.L124(%rip), %rdx
	leal	(%rdx,%rax,4), %r11d
	movl	(%r14,%r11), %eax
	addl	%edx, %eax
	movl	$0xb1938ab3, %r11d
	addl	-4(%r14,%rax), %r11d
	jne	.Lmullion1
	addq	%r14, %rax
	jmp	*%rax
	.section	.rodata
	.align	4
.L124:
	.long	.L122-.L124
	.long	.L123-.L124
	.text
	nopl	0x4e6c754d(%rax)
.L122:
	call	printf@PLT
	leaq	32(%r15), %r15
	.cfi_def_cfa_offset 0
	movq	-24(%r15), %rbx
	movq	-16(%r15), %rbp
	ret
	.cfi_endproc
	.section	.text.unlikely
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 8
	.type	f.cold, @function
.Lmullion_start1:
f.cold:
.LFSB3611:
	nopl	0x4e6c754d(%rax)
.L123:
	.cfi_def_cfa 15, 32
	.cfi_offset 3, -24
	.cfi_offset 6, -16
	movl	$8, %edi
	call	g@PLT
	call	abort@PLT
	.cfi_endproc
	.size	f.cold, .-f.cold
	.text
.Lmullion1:
	ud1	%eax, %eax
