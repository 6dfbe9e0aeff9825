# The import through which the C library asks for the system interface; see
# docs/window.md, "Gates".
	.section	.mullion.gates,"axG",@nobits,__mullion_system,comdat
	.globl	__mullion_system
	.type	__mullion_system, @function
__mullion_system:
	.skip	32
	.section	.mullion.imports,"aG",@progbits,__mullion_system,comdat
	.asciz	"__mullion_system"
	.skip	64 - 17
	.section	.note.GNU-stack,"",@progbits
