/* For modules that `mullion compile` compiles: what a module sees stands in the environment of its type
 * (environment.c), in front of it. So the same source is built by `mullion cc` with the other packets.h. */
