    .section .slots, "aw", @progbits
    .zero   8 * (16 + mullion_imports)
    .section .note.GNU-stack, "", @progbits
