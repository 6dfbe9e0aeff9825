/* mullion/ext.h: what an extension offers to its host, and what it asks for.
 *
 *     #include <mullion/ext.h>
 *
 *     MULLION_IMPORT(long, host_log, (const char *text, unsigned long length));
 *
 *     MULLION_EXPORT(long, sum, (const long *values, long count))
 *     {
 *         long total = 0;
 *         for (long i = 0; i < count; i++)
 *             total += values[i];
 *         host_log("summed", 6);
 *         return total;
 *     }
 *
 *     mullion cc --mullion-kind=extension sum.c -o sum.mx
 *
 * The host calls an export by its name. Arguments are integers and pointers
 * (at most six) and floating-point numbers (at most eight), in registers; a
 * pointer must point into the extension's own memory, or the access that
 * follows it faults, or meets the extension's own memory at the same offset.
 *
 * An import is a function of the host's. The image names it; the host decides
 * at load time whether to give it. It may change every register that a C
 * function may change, and nothing else.
 */
#ifndef MULLION_EXT_H
#define MULLION_EXT_H

#ifdef __cplusplus
#define MULLION_EXTERN_C extern "C"
#else
#define MULLION_EXTERN_C extern
#endif

/* Records have 64 bytes: for an export 4 bytes of place and 60 of name with
 * its terminating zero; for an import all 64 are the name's. */
#define MULLION_EXPORT_RECORD(name)                                            \
    __asm__(".pushsection .mullion.exports,\"a\",@progbits\n"                  \
            "\t.balign 4\n"                                                    \
            "661:\n"                                                           \
            "\t.long " #name " - .\n"                                          \
            "\t.asciz \"" #name "\"\n"                                         \
            "\t.skip 661b + 64 - .\n"                                          \
            "\t.popsection\n")

#define MULLION_IMPORT_RECORD(name)                                            \
    __asm__(".pushsection .mullion.gates,\"axG\",@nobits," #name ",comdat\n"   \
            "\t.globl " #name "\n"                                             \
            "\t.type " #name ", @function\n"                                   \
            #name ":\n"                                                        \
            "\t.skip 32\n"                                                     \
            "\t.popsection\n"                                                  \
            "\t.pushsection .mullion.imports,\"aG\",@progbits," #name ",comdat\n" \
            "661:\n"                                                           \
            "\t.asciz \"" #name "\"\n"                                         \
            "\t.skip 661b + 64 - .\n"                                          \
            "\t.popsection\n")

/* MULLION_EXPORT(type, name, (parameters)) { ... } defines a function that the
 * host can call. */
#define MULLION_EXPORT(type, name, parameters)                                 \
    MULLION_EXPORT_RECORD(name);                                               \
    MULLION_EXTERN_C __attribute__((used)) type name parameters;               \
    type name parameters

/* MULLION_IMPORT(type, name, (parameters)); declares a function of the host's. */
#define MULLION_IMPORT(type, name, parameters)                                 \
    MULLION_IMPORT_RECORD(name);                                               \
    MULLION_EXTERN_C type name parameters

#endif
