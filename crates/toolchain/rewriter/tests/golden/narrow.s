#### protection read-write-call
	.text
	.globl	follow
	.type	follow, @function
follow:
	movq	8(%rdi), %rax
	addq	$16, %rax
	movl	(%rax), %ecx
	addl	4(%rax), %ecx
	movslq	%ecx, %rcx
	movq	(%rdi,%rcx,8), %rdx
	movq	%rdx, %rax
	ret
	.size	follow, .-follow
	.globl	wanted
	.type	wanted, @function
wanted:
	movq	8(%rdi), %rax
	testq	%rax, %rax
	je	.L1
	movq	(%rax), %rbx
	addq	$8, %rbx
	jc	.L1
	movq	(%rbx), %rdi
	call	g@PLT
.L1:
	ret
	.size	wanted, .-wanted
	.globl	switch
	.type	switch, @function
switch:
	leaq	.L5(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rcx
	addq	%rdx, %rcx
	jmp	*%rcx
	.section	.rodata
	.align 4
.L5:
	.long	.L6-.L5
	.long	.L7-.L5
	.text
.L6:
	movl	$1, %eax
	ret
.L7:
	movl	%esi, %eax
	ret
	.size	switch, .-switch
	.globl	table
	.type	table, @function
table:
	leaq	handlers.0(%rip), %rdx
	movslq	(%rdx,%rdi,4), %rcx
	addq	%rdx, %rcx
	jmp	*%rcx
	.size	table, .-table
#### output
	.text
	.globl	follow
	.type	follow, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
follow:
	movl	%edi, %r11d
	movl	8(%r14,%r11), %eax
	addl	$16, %eax
	movl	(%r14,%rax), %ecx
	addl	4(%r14,%rax), %ecx
	movl	%ecx, %ecx
	movq	%gs:(%edi,%ecx,8), %rdx
	movq	%rdx, %rax
	ret
	.size	follow, .-follow
	.globl	wanted
	.type	wanted, @function
	nopl	0x4e6c754d(%rax)
wanted:
	movl	%edi, %r11d
	movq	8(%r14,%r11), %rax
	testq	%rax, %rax
	je	.L1
	movl	%eax, %r11d
	movq	(%r14,%r11), %rbx
	addq	$8, %rbx
	jc	.L1
	movl	%ebx, %r11d
	movq	(%r14,%r11), %rdi
	call	g@PLT
.L1:
	ret
	.size	wanted, .-wanted
	.globl	switch
	.type	switch, @function
	nopl	0x4e6c754d(%rax)
switch:
	leaq	.L5(%rip), %rdx
	movl	%gs:(%edx,%edi,4), %ecx
	addl	%edx, %ecx
	movl	$0xb1938ab3, %r11d
	addl	-4(%r14,%rcx), %r11d
	jne	.Lmullion1
	addq	%r14, %rcx
	jmp	*%rcx
	.section	.rodata
	.align	4
.L5:
	.long	.L6-.L5
	.long	.L7-.L5
	.text
	nopl	0x4e6c754d(%rax)
.L6:
	movl	$1, %eax
	ret
	nopl	0x4e6c754d(%rax)
.L7:
	movl	%esi, %eax
	ret
.Lmullion1:
	ud1	%eax, %eax
	.size	switch, .-switch
	.globl	table
	.type	table, @function
	nopl	0x4e6c754d(%rax)
table:
	leaq	handlers.0(%rip), %rdx
	movslq	%gs:(%edx,%edi,4), %rcx
	addq	%rdx, %rcx
	movl	%ecx, %r11d
	movl	$0xb1938ab3, %r10d
	addl	-4(%r14,%r11), %r10d
	jne	.Lmullion2
	addq	%r14, %r11
	jmp	*%r11
.Lmullion2:
	ud1	%eax, %eax
	.size	table, .-table
