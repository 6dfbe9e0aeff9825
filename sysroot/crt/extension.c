/* The entry of an extension: starts the C library, runs the constructors, and
 * returns to the host, which may then call the exports; and sets up what belongs
 * to a further thread: 0, or a negative error number. */

/* The C++ run-time's name for this image. */
__attribute__((visibility("hidden"))) void *__dso_handle;

long __mullion_extension_start(long *);

long _start(long *block)
{
	return __mullion_extension_start(block);
}
