#### protection read-write-call
	.text
# A nop in front of a landing pad, at the start of a cold part, is reached by nothing.
	.globl	f
	.type	f, @function
f:
	.cfi_startproc
	.cfi_lsda 0x1b,.LLSDA1
	pushq	%rbx
	.cfi_def_cfa_offset 16
	movq	%rdi, %rbx
.LEHB0:
	call	g
.LEHE0:
	popq	%rbx
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.section	.gcc_except_table,"a",@progbits
.LLSDA1:
	.byte	0xff
	.byte	0xff
	.byte	0x1
	.uleb128 .LLSDACSE1-.LLSDACSB1
.LLSDACSB1:
	.uleb128 .LEHB0-f
	.uleb128 .LEHE0-.LEHB0
	.uleb128 .L3-f.cold
	.uleb128 0
.LLSDACSE1:
	.section	.text.unlikely
	.cfi_startproc
	.cfi_lsda 0x1b,.LLSDAC1
	.type	f.cold, @function
f.cold:
	nop
.L3:
	.cfi_def_cfa_offset 16
	movq	%rax, %rdi
	call	h
	.cfi_endproc
#### output
	.text
# A nop in front of a landing pad, at the start of a cold part, is reached by nothing.
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	.cfi_lsda 0x1b,.LLSDA1
	leaq	-8(%r15), %r15
	.cfi_def_cfa_offset 8
	leaq	-8(%r15), %r15
	.cfi_def_cfa_offset 16
	movq	%rbx, (%r15)
	movq	%rdi, %rbx
.LEHB0:
	call	g
.LEHE0:
	leaq	8(%r15), %r15
	.cfi_def_cfa_offset 8
	movq	-8(%r15), %rbx
	leaq	8(%r15), %r15
	.cfi_def_cfa_offset 0
	movl	-8(%r15), %r11d
	ret
	.cfi_def_cfa_offset 8
	.cfi_endproc
	.section	.gcc_except_table,"a",@progbits
.LLSDA1:
	.byte	0xff
	.byte	0xff
	.byte	0x1
	.uleb128	.LLSDACSE1-.LLSDACSB1
.LLSDACSB1:
	.uleb128	.LEHB0-f
	.uleb128	.LEHE0-.LEHB0
	.uleb128	.L3-f.cold
	.uleb128	0
.LLSDACSE1:
	.section	.text.unlikely
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 8
	.cfi_lsda 0x1b,.LLSDAC1
	.type	f.cold, @function
.Lmullion_start1:
f.cold:
	nop
	nopl	0x4e6c754d(%rax)
.L3:
	.cfi_def_cfa 15, 16
	movq	%rax, %rdi
	call	h
	.cfi_endproc
