/* Whether several threads may be in this domain: in an extension, not in a program. */
char __mullion_threads;
