/* Ends the calling thread, and unmaps what was mapped for it, if there is something. */
hidden _Noreturn void __mullion_leave(void *map, size_t size);
