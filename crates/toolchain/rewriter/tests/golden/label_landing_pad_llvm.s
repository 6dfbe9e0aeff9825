#### protection read-write-call
	.text
	.globl	f
	.type	f, @function
f:
.LFB0:
	.cfi_startproc
	.cfi_personality 0x9b,DW.ref.__gxx_personality_v0
	.cfi_lsda 0x1b,.LLSDA0
	pushq	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
.LEHB0:
	call	g@PLT
.LEHE0:
	popq	%rbx
	.cfi_remember_state
	.cfi_def_cfa_offset 8
	ret
.L3:
	.cfi_restore_state
	movq	%rax, %rdi
.LEHB1:
	call	_Unwind_Resume@PLT
.LEHE1:
	.cfi_endproc
	.section	.gcc_except_table,"a",@progbits
.LLSDA0:
	.byte	0xff
	.byte	0xff
	.byte	0x1
	.uleb128 .LLSDACSE0-.LLSDACSB0
.LLSDACSB0:
	.uleb128 .LEHB1-.LFB0
	.uleb128 .LEHE1-.LEHB1
	.byte	0
	.byte	0
	.uleb128 .LEHB0-.LFB0
	.uleb128 .LEHE0-.LEHB0
	.uleb128 .L3-.LFB0
	.byte	0
.LLSDACSE0:
	.text
	.size	f, .-f
#### output
	.text
	.globl	f
	.type	f, @function
.Lmullion_start0:
	nopl	0x4e6c754d(%rax)
f:
.LFB0:
	.cfi_startproc
	.cfi_escape 0x10,0x10,0x2,0x77,0,0x16,0x7,0x2,0x77,0x8,0x14,0xf,0
	.cfi_def_cfa 15, 0
	.cfi_personality 0x9b,DW.ref.__gxx_personality_v0
	.cfi_lsda 0x1b,.LLSDA0
	leaq	-16(%r15), %r15
	.cfi_def_cfa_offset 16
	movq	%rbx, (%r15)
	.cfi_offset 3, -16
.LEHB0:
	call	g@PLT
.LEHE0:
	leaq	16(%r15), %r15
	.cfi_def_cfa_offset 0
	movq	-16(%r15), %rbx
	.cfi_remember_state
	ret
	nopl	0x4e6c754d(%rax)
.L3:
	.cfi_restore_state
	.cfi_def_cfa 15, 16
	movq	%rax, %rdi
.LEHB1:
	call	_Unwind_Resume@PLT
.LEHE1:
	.cfi_endproc
	.section	.gcc_except_table,"a",@progbits
.LLSDA0:
	.byte	0xff
	.byte	0xff
	.byte	0x1
	.uleb128	.LLSDACSE0-.LLSDACSB0
.LLSDACSB0:
	.uleb128	.LEHB1-.LFB0
	.uleb128	.LEHE1-.LEHB1
	.byte	0
	.byte	0
	.uleb128	.LEHB0-.LFB0
	.uleb128	.LEHE0-.LEHB0
	.uleb128	.L3-.LFB0
	.byte	0
.LLSDACSE0:
	.text
	.size	f, .-f
