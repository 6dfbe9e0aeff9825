//! The text of `mullion cc --mullion-help`.

/// The text of `mullion cc --mullion-help`.
pub const OPTIONS_HELP: &str = "\
mullion cc and mullion c++ take the options of gcc and g++, and:

  --mullion-protection=LEVEL  write-call, read-write-call (the default) or trap:
                              what is confined besides control flow; trap faults
                              at a wild access where the others wrap
  --wall=word                 makes modules of checked code instead of images (docs/word-form.md):
                              shared objects whose every access is checked word by word, in the
                              address space and with the headers of their host;
                              --protection=LEVEL is then write or read-write (the default):
                              whether stores alone are checked, or loads as well.
                              What a module calls and does not define is imported from the host,
                              but for functions of the C library that only compute
  --heap=own, --heap=host     with --wall=word: where malloc takes memory from. own (the
                              default): the module has a heap of its own, in blocks that the
                              host's malloc gives it. host: each block is the host's, so that
                              the host can free it, and is granted and taken back alone
  --mullion-base=BASE         segment (the default) or register: whether memory may be
                              reached through %gs. Without that, calls between
                              domains are faster, and most computing a little slower;
                              it counts for an image if all that is linked has it
  --mullion-count             counts steps, so that a run can be limited to a number of them
                              and the same input ends at the same instruction
                              (mullion run --max-steps); slower; a tool for replaying, no wall
  --mullion-kind=KIND         program (the default): has main, is run once;
                              extension: has exports that a host calls
  --mullion-export=F,G...     exports these functions, as MULLION_EXPORT does
  --mullion-dlopen=L,M...     puts these shared libraries of -shared, and those in folders that are
                              named, into the image, where dlopen finds them; nothing else is opened
  --mullion-keep=DIRECTORY    keeps the assembler text, before and after rewriting
  --type FILE, --key NAME     signs a compilation record beside each image that is
                              linked (IMAGE.record): of the module type in FILE (or
                              of that identifier in the policy), with that key;
                              also --mullion-type=, --mullion-key=
  --mullion-help              this text

Environment:

  MULLION_PROTECTION          the protection, where the option is not given
                              (otherwise the module type's, if there is one)
  MULLION_WALL                the wall, where the option is not given
  MULLION_HEAP                the heap, where the option is not given
  MULLION_BASE                the base, where the option is not given
  MULLION_COUNT               1: as --mullion-count
  MULLION_DLOPEN              as --mullion-dlopen, with colons; it counts for images
                              that call dlopen
  MULLION_KEYS                the directory of keys (~/.config/mullion/keys)
  MULLION_PASSPHRASE_FILE     the passphrase of the key, where no terminal is
  MULLION_CC, MULLION_CXX     the compilers to use instead of gcc-12 and g++-12, or
                              of gcc and g++ where there is no other
  MULLION_SOURCES             a directory with archives of third-party sources,
                              looked at before any package client is asked
  XDG_CACHE_HOME              where the C library is built, once (~/.cache)

A program whose name does not end in .mx can be started like any other: its
ELF interpreter is `mullion run`, with the options in MULLION_RUN. Scripts made
by autoconf start what they build and have it write a file:

  MULLION_RUN=\"--dir .::/\" CC=\"mullion cc\" ./configure && make

Not possible behind the word wall: -static, names of imported functions of more
than 63 bytes, exceptions that leave a function of the module which the host calls.
configure takes it for a cross compiler (--host), since a module is no program.

-shared makes an object that later links take into the image, as a whole, where they
name it. -fsanitize=undefined traps.

Not possible in a domain: libraries that are loaded from files, 32-bit code (-m32),
-fsplit-stack, the other sanitizers, large code models. -flto, -fstack-protector,
-fcf-protection and -fPIC are accepted and have no effect. -march=native and its
like are taken without AVX-512 (and AVX-VNNI, FMA4, XOP, TBM), which -v tells.
";
