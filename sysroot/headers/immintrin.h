/* A domain has no AVX-512. A program that asks for it by a pragma learns that here, and not from what it compiles to. */
#ifdef __AVX512F__
#error "a domain has no AVX-512: leave out the code for it, or compile it without `#pragma GCC target`"
#endif
#include_next <immintrin.h>
