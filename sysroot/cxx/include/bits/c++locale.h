/* The locale model of libstdc++ on musl: there is one locale, "C". */
#ifndef _GLIBCXX_CXX_LOCALE_H
#define _GLIBCXX_CXX_LOCALE_H 1

#pragma GCC system_header
#include <clocale>
#define _GLIBCXX_NUM_CATEGORIES 0

namespace std _GLIBCXX_VISIBILITY(default)
{
_GLIBCXX_BEGIN_NAMESPACE_VERSION

typedef int *__c_locale;

inline int
__convert_from_v(const __c_locale &, char *__out, const int __size, const char *__format, ...)
{
	__builtin_va_list __arguments;
	__builtin_va_start(__arguments, __format);
	const int __length = __builtin_vsnprintf(__out, __size, __format, __arguments);
	__builtin_va_end(__arguments);
	return __length;
}

_GLIBCXX_END_NAMESPACE_VERSION
} // namespace
#endif
