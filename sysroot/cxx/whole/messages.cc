// Catalogues of messages: a domain has none, so each message is its default.
#include <locale>

namespace std {

#define MESSAGES(character, text) \
	template <> messages<character>::catalog messages<character>::do_open(const string &, const locale &) const \
	{ \
		return -1; \
	} \
	template <> text messages<character>::do_get(catalog, int, int, const text &usual) const { return usual; } \
	template <> void messages<character>::do_close(catalog) const {}

MESSAGES(char, string)
MESSAGES(wchar_t, wstring)

} // namespace std
