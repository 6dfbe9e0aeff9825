#### protection read-write-call
	.text
	.p2align 4
	.globl	f
	.type	f, @function
f:
	ret
	.size	f, .-f
	.p2align 4
	.type	local, @function
local:
	ret
	.size	local, .-local
	.p2align 4
	.type	taken, @function
taken:
	call	local
	ret
	.size	taken, .-taken
	.globl	alias
	.set	alias, other
other:
	leaq	taken(%rip), %rax
	ret
	.section	.debug_info,"",@progbits
	.quad	local
#### output
	.text
	.balign	16
.Lmullion_start0:
	.skip	(-7-(.-.Lmullion_start0))&15, 0x90
	nopl	0x4e6c754d(%rax)
	.globl	f
	.type	f, @function
f:
	ret
	.size	f, .-f
	.p2align	4
	.type	local, @function
local:
	ret
	.size	local, .-local
	.skip	(-7-(.-.Lmullion_start0))&15, 0x90
	nopl	0x4e6c754d(%rax)
	.type	taken, @function
taken:
	call	local
	ret
	.size	taken, .-taken
	.globl	alias
	alias = other
	nopl	0x4e6c754d(%rax)
other:
	leaq	taken(%rip), %rax
	ret
	.section	.debug_info,"",@progbits
	.quad	local
