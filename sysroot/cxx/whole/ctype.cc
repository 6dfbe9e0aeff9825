// Classes of characters of the C locale, in the bits of bits/ctype_base.h.
#include <locale>

namespace std {

namespace {

struct Tables {
	ctype_base::mask classes[256];
	int upper[256], lower[256];

	constexpr Tables() : classes(), upper(), lower()
	{
		for (int c = 0; c < 256; c++) {
			bool big = c >= 'A' && c <= 'Z', small = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
			bool shown = c > 32 && c < 127;
			upper[c] = small ? c - 'a' + 'A' : c;
			lower[c] = big ? c - 'A' + 'a' : c;
			int found = 0;
			if (big)
				found |= ctype_base::upper | ctype_base::alpha;
			if (small)
				found |= ctype_base::lower | ctype_base::alpha;
			if (digit)
				found |= ctype_base::digit;
			if (digit || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f'))
				found |= ctype_base::xdigit;
			if (shown && !big && !small && !digit)
				found |= ctype_base::punct;
			if (shown || c == ' ')
				found |= ctype_base::print;
			if (c < 32 || c == 127)
				found |= ctype_base::cntrl;
			if (c == ' ' || (c >= '\t' && c <= '\r'))
				found |= ctype_base::space;
			if (c == ' ' || c == '\t')
				found |= ctype_base::blank;
			classes[c] = ctype_base::mask(found);
		}
	}
};

constexpr Tables tables;

} // namespace

const ctype_base::mask *ctype<char>::classic_table() throw() { return tables.classes; }

ctype<char>::ctype(__c_locale, const mask *table, bool owned, size_t users) : ctype(table, owned, users) {}

ctype<char>::ctype(const mask *table, bool owned, size_t users)
	: facet(users), _M_c_locale_ctype(_S_get_c_locale()), _M_del(table && owned), _M_toupper(tables.upper),
	  _M_tolower(tables.lower), _M_table(table ? table : tables.classes), _M_widen_ok(0), _M_narrow_ok(0)
{
	__builtin_memset(_M_widen, 0, sizeof _M_widen);
	__builtin_memset(_M_narrow, 0, sizeof _M_narrow);
}

char ctype<char>::do_toupper(char c) const { return char(_M_toupper[static_cast<unsigned char>(c)]); }

const char *ctype<char>::do_toupper(char *from, const char *to) const
{
	for (; from < to; from++)
		*from = do_toupper(*from);
	return to;
}

char ctype<char>::do_tolower(char c) const { return char(_M_tolower[static_cast<unsigned char>(c)]); }

const char *ctype<char>::do_tolower(char *from, const char *to) const
{
	for (; from < to; from++)
		*from = do_tolower(*from);
	return to;
}

} // namespace std
