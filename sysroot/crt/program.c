/* The entry of a program: called once, as a function, with a block laid out as
 * the initial stack of a Linux process. */

/* The C++ run-time's name for this image. */
__attribute__((visibility("hidden"))) void *__dso_handle;

/* The C library's: signals do more to a program than to a library. */
extern __attribute__((visibility("hidden"))) char __mullion_is_program;

int main(int, char **, char **);
int __libc_start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void));

void _start(long *block)
{
	__mullion_is_program = 1;
	__libc_start_main(main, (int)block[0], (char **)(block + 1), 0, 0, 0);
	__builtin_trap();
}
