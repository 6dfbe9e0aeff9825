#### protection trap
	.text
	.type	f, @function
f:
	.cfi_startproc
	.file 1 "f.c"
	.loc 1 3 1 view .LVU1
	pushq	%rbx
	.cfi_def_cfa_offset 16
	movl	8(%rdi), %eax
	movl	%eax, 12(%rdi)
	.loc 1 4 1 view .LVU2
	movl	(%rsi), %edx
	movl	16(%rdi), %ecx
	movl	20(%rsi,%rcx,4), %ebx
	addq	$1, %rsi
	movl	(%rsi), %edx
	movl	20(%rsi,%rcx,4), %ebx
	addq	$1, %rcx
	movl	%ebx, 16(%rsi,%rcx,4)
	movl	%ebx, 12(%rsi,%rcx,8)
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size	f, .-f
#### output
	.text
	.type	f, @function
.Lmullion_start0:
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	.file	1 "f.c"
	.loc	1 3 1 view .LVU1
	leaq	-16(%r15), %r15
	.cfi_def_cfa_offset 16
	movq	%rbx, (%r15)
	movl	%edi, %r11d
	addq	%r14, %r11
	cmpq	%rdi, %r11
	jne	.Lmullion1
	movl	8(%r11), %eax
	movl	%eax, 12(%r11)
	.loc	1 4 1 view .LVU2
	movl	%esi, %r11d
	addq	%r14, %r11
	cmpq	%rsi, %r11
	jne	.Lmullion2
	movl	(%r11), %edx
	movl	%gs:16(%edi), %ecx
	leaq	20(%rsi,%rcx,4), %r11
	subq	%r14, %r11
	shrq	$32, %r11
	jne	.Lmullion3
	movl	%gs:20(%esi,%ecx,4), %ebx
	addq	$1, %rsi
	movl	%gs:(%esi), %edx
	movl	%gs:20(%esi,%ecx,4), %ebx
	addq	$1, %rcx
	movl	%ebx, %gs:16(%esi,%ecx,4)
	leaq	12(%rsi,%rcx,8), %r11
	subq	%r14, %r11
	shrq	$32, %r11
	jne	.Lmullion4
	movl	%ebx, %gs:12(%esi,%ecx,8)
	leaq	16(%r15), %r15
	.cfi_def_cfa_offset 0
	movq	-16(%r15), %rbx
	ret
	.loc	1 3 1
	.cfi_def_cfa 15, 16
.Lmullion1:
	ud1	%ecx, %eax
	.loc	1 4 1
.Lmullion2:
	ud1	%ecx, %eax
	.loc	1 4 1
.Lmullion3:
	ud1	%ecx, %eax
	.loc	1 4 1
.Lmullion4:
	ud1	%ecx, %eax
	.cfi_endproc
	.size	f, .-f
