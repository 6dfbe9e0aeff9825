/* What libquadmath's configure script would write, in a domain: musl has no hooks in printf, and no digits of other locales. */
#define HAVE_CBRTL 1
#define HAVE_CTYPE_H 1
#define HAVE_ERRNO_H 1
#define HAVE_FENV_H 1
#define HAVE_FEHOLDEXCEPT 1
#define HAVE_FESETENV 1
#define HAVE_FESETROUND 1
#define HAVE_FETESTEXCEPT 1
#define HAVE_FEUPDATEENV 1
#define HAVE_HIDDEN_VISIBILITY 1
#define HAVE_LIMITS_H 1
#define HAVE_LOCALE_H 1
#define HAVE_SQRTL 1
#define HAVE_STRTOULL 1
#define HAVE_WCHAR_H 1
#define HAVE_WCTYPE_H 1
#define USE_LOCALECONV 1
