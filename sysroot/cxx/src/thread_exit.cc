// Destructors of thread-locals (Itanium C++ ABI, 3.3.6). In a file of its own: the
// export that an ending thread calls comes with what this asks for.
extern "C" {

extern char __mullion_threads;
int __cxa_atexit(void (*)(void *), void *, void *);
int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);

// Until a program begins another thread, its own end is the program's.
int __cxa_thread_atexit(void (*destructor)(void *), void *object, void *image)
{
	return __mullion_threads ? __cxa_thread_atexit_impl(destructor, object, image)
				 : __cxa_atexit(destructor, object, image);
}

} // extern "C"
